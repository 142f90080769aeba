"""Every statement touches rows by key or index: asserted on SQLite's own plans, with statistics and without."""

import re
from collections.abc import Iterator
from contextlib import closing

import apsw
import apsw.ext
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Configure, ProduceMany
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.relational.connection import FILES
from forq_trio.storage.relational.statements import load
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.open import open_reader
from support.actors import T0
from support.batches import do, run
from support.words import ack, claim, nack

BY_NUMBER = re.compile(r"SEARCH \w+ USING INTEGER PRIMARY KEY \(rowid=\?\)")
"""A step of what every statement may do without being named here: it finds a row by its number, or inserts."""

# What each other statement is to use. "" stands for one that reads a single value.
EXPECTED = {
    "last_sequence": "SCAN forgotten_sequence",
    "load_counts": "SCAN queue_counts",
    "save_last_sequence": "SCAN forgotten_sequence",
    "save_maker": "SEARCH queue_counts USING PRIMARY KEY (queue=?)",
    "forget_counts": "SEARCH queue_counts USING PRIMARY KEY (queue=?)",
    "load_settings": "SCAN queues",
    "forget_settings": "SEARCH queues USING PRIMARY KEY (queue=?)",
    "load_tokens": "SCAN tokens",
    "revoke_token": "SEARCH tokens USING PRIMARY KEY (name=?)",
    "note_token_use": "SEARCH tokens USING PRIMARY KEY (name=?)",
    "load_sessions": "SCAN ui_sessions",
    "end_session": "SEARCH ui_sessions USING PRIMARY KEY (digest=?)",
    "note_session_use": "SEARCH ui_sessions USING PRIMARY KEY (digest=?)",
    "load_redrives": "SCAN redrives",
    "forget_redrive": "SEARCH redrives USING INDEX sqlite_autoindex_redrives_1 (id=?)",
    "load_consumers": "SCAN consumers",
    "forget_consumer": "SEARCH consumers USING PRIMARY KEY (queue=? AND name=?)",
    "lease_page": "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)",
    "move_messages": "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)",
    "move_range": "SEARCH messages USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    "last_moved": "SEARCH moved_pages USING INDEX sqlite_autoindex_moved_pages_1 (queue=?)",
    "newest_moved": "SEARCH moved_pages USING INDEX sqlite_autoindex_moved_pages_1 (queue=? AND first_seq<?)",
    "oldest_moved": "SEARCH moved_pages USING INDEX moved_pages_last (queue=? AND last_seq>?)",
    "drop_moved": "(queue=? AND consumer=? AND number=? AND page=?)",
    "moved_by_id": "SEARCH moved_pages USING INDEX moved_pages_id (queue=? AND first_id<?)",
    "moved_id": "SEARCH moved_pages USING INDEX moved_pages_id (queue=? AND first_id<?)",
    "page_body": "(queue=? AND consumer=? AND number=? AND page=?)",
    "find_leased_page": "(queue=? AND consumer=? AND number=? AND page=?)",
    "drop_page": "(queue=? AND consumer=? AND number=? AND page=?)",
    "read_pages": "(queue=? AND consumer=? AND number=? AND page>?)",
    "find_dedup": "SEARCH dedup USING PRIMARY KEY (queue=? AND dedup_id=?)",
    "dedup_of_queue": "SEARCH dedup USING PRIMARY KEY (queue=?)",
    "forget_dedup": "SEARCH dedup USING PRIMARY KEY (queue=? AND dedup_id<?)",
    "expire_dedup": "dedup USING COVERING INDEX dedup_expires (expires_at<?)",
    "load_schedules": "SCAN schedules USING COVERING INDEX schedules_made_by",
    "next_schedule": "schedules USING COVERING INDEX schedules_due",
    "due_schedule": "SEARCH schedules USING COVERING INDEX schedules_due (due_at<?)",
    "due_schedule_of": "SEARCH schedules USING COVERING INDEX schedules_made_by (made_by=? AND due_at<?)",
    "next_maker": "SEARCH schedules USING COVERING INDEX schedules_made_by (made_by>?)",
    "find_schedule": "SEARCH schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)",
    "forget_runs": "SEARCH schedule_runs USING PRIMARY KEY (schedule_id=? AND number<?)",
    "runs_of_schedule": "SEARCH schedule_runs USING PRIMARY KEY (schedule_id=?)",
    "schedule_of_queue": "SCAN schedules",
    "list_schedules": "SEARCH schedules USING INDEX sqlite_autoindex_schedules_1 (name>?)",
    "load_message_batches": "SCAN message_batches",
    "count_batch_members": "SCAN batch_members",
    "first_message_batch": "SEARCH message_batches USING COVERING INDEX message_batches_due (due_at>?)",
    "first_count": "SEARCH message_batches USING COVERING INDEX message_batches_counts (counts_at>?)",
    "due_message_batch": "SEARCH message_batches USING INDEX message_batches_due (due_at>? AND due_at<?)",
    "message_batch_to_count": "USING INDEX message_batches_counts (counts_at>? AND counts_at<?)",
    "oldest_message_batch": "SEARCH message_batches USING INDEX message_batches_over (due_at>?)",
    "read_message_batch": "SEARCH message_batches USING INTEGER PRIMARY KEY (rowid=?)",
    "read_message_batches": "SEARCH message_batches USING INTEGER PRIMARY KEY (rowid=?)",
    "find_message_batch": "SEARCH message_batches USING INDEX sqlite_autoindex_message_batches_1 (id=?)",
    "await_counts": "SEARCH message_batches USING INTEGER PRIMARY KEY (rowid=?)",
    "list_message_batches": "SEARCH message_batches USING INTEGER PRIMARY KEY (rowid<?)",
    "list_message_batches_of": "SEARCH message_batches USING INDEX message_batches_made_by (made_by=? AND number<?)",
    "find_batch_members": "SEARCH member USING INTEGER PRIMARY KEY (rowid=?)",
    "members_to_count": "SEARCH batch_members USING INDEX batch_members_became (batch=?)",
    "await_count_of_members": "SEARCH batch_members USING INTEGER PRIMARY KEY (rowid=?)",
    "mark_batch_members": "SEARCH batch_members USING INTEGER PRIMARY KEY (rowid=?)",
    "forget_batch_members": "SEARCH batch_members USING INTEGER PRIMARY KEY (rowid=?)",
    "find_outbox": "SEARCH outboxes USING PRIMARY KEY (outbox=?)",
    "count_outboxes": "SCAN outboxes",
    "find_bucket": "SEARCH rate_buckets USING PRIMARY KEY (queue=? AND group_id=?)",
    "save_wake": "SEARCH rate_buckets USING PRIMARY KEY (queue=? AND group_id=?)",
    "take_wakes": "rate_buckets USING COVERING INDEX rate_buckets_wake (wake_at<?)",
    "next_wake": "rate_buckets USING COVERING INDEX rate_buckets_wake",
    "expire_buckets": "rate_buckets USING INDEX rate_buckets_full (full_ms<?)",
    "expire_some_buckets": "rate_buckets USING INDEX rate_buckets_full (full_ms<?)",
    "has_buckets": "SCAN rate_buckets",
    "select_ready": "SEARCH messages USING INDEX messages_claim (queue=?)",
    "select_ready_but": "SEARCH messages USING INDEX messages_claim (queue=?)",
    "find_by_sequence": "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)",
    "find_by_id": "SEARCH messages USING INDEX messages_id (id=?)",
    "delete_messages": "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)",
    "next_due": "SEARCH messages USING INDEX messages_due (due_at>? AND due_at<?)",
    "next_due_but": "SEARCH messages USING INDEX messages_due (due_at>? AND due_at<?)",
    "select_due_but": "SEARCH messages USING INDEX messages_due (due_at>? AND due_at<?)",
    "select_failed_but": "SEARCH messages USING INDEX messages_failed (is_dlq=?)",
    "select_due": "SEARCH messages USING INDEX messages_due (due_at>? AND due_at<?)",
    "select_failed": "SEARCH messages USING INDEX messages_failed (is_dlq=?)",
    "join_rounds": "SEARCH messages USING COVERING INDEX messages_claim (queue=? AND priority=?)",
    "last_of_group": "messages_group (queue=? AND group_id=? AND status=? AND priority=?)",
    "next_priority": "SEARCH messages USING COVERING INDEX messages_claim (queue=? AND priority>?)",
    "ready_newest_last": "SEARCH messages USING INDEX messages_claim (queue=? AND priority=?)",
    "ready_newest_first": "SEARCH messages USING INDEX messages_claim (queue=? AND priority=?)",
    "count_in_process": "SEARCH messages USING COVERING INDEX messages_group (queue=? AND group_id=? AND status=?)",
    "first_delayed_of_group": "USING COVERING INDEX messages_group (queue=? AND group_id=? AND status=?)",
    "select_held_of_group": "SEARCH messages USING INDEX messages_group (queue=? AND group_id=? AND status=?)",
    "held_groups": "SEARCH messages USING COVERING INDEX messages_group (queue=? AND group_id>?)",
    "select_held": "SEARCH messages USING INDEX messages_held (queue=? AND rowid>?)",
    "select_to_match": "SEARCH messages USING INDEX messages_claim (queue=? AND priority<?)",
    "select_to_match_at": "SEARCH messages USING INDEX messages_claim (queue=? AND priority=? AND position>?)",
    "select_purged": "SEARCH messages USING INDEX messages_queue (queue=? AND rowid<?)",
    "ping": "SEARCH messages",
    "keep_finished": "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)",
    "keep_with_result": "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)",
    "newest_without_result": "SEARCH history USING INTEGER PRIMARY KEY (rowid>?)",
    "stored_message": "SEARCH messages USING INDEX messages_id (id=?)",
    "finished_from": "SEARCH history USING INDEX history_message (message_id=?)",
    "load_history": "SEARCH history USING COVERING INDEX history_queue (queue=?)",
    "load_forgotten_consumers": "SCAN consumers_forgotten",
    "save_forgotten_consumers": "SCAN consumers_forgotten",
    "find_consumer_numbers": "SEARCH consumer_numbers USING INDEX sqlite_autoindex_consumer_numbers_1 (consumer=?)",
    "drop_consumer_numbers": "SEARCH consumer_numbers USING INTEGER PRIMARY KEY (rowid<?)",
    "load_history_ends": "SCAN history_ends",
    "save_history_ends": "SCAN history_ends",
    "oldest_finished": "SEARCH history USING INTEGER PRIMARY KEY (rowid>?)",
    "oldest_finished_of_queue": "SEARCH history USING INDEX history_queue (queue=? AND rowid<?)",
    "forget_finished": "SEARCH history USING INTEGER PRIMARY KEY (rowid=?)",
    "history_ends": "SCAN history_ends",
    "history_lines": "SEARCH history USING COVERING INDEX history_queue (queue=? AND rowid>?)",
    "history_next": "SEARCH history USING INTEGER PRIMARY KEY (rowid>?)",
    "find_finished": "SEARCH history USING COVERING INDEX history_queue (queue=? AND rowid<?)",
    "scanned_finished": "SEARCH history USING COVERING INDEX history_queue (queue=? AND rowid>? AND rowid<?)",
    "finished_below": "SEARCH history USING COVERING INDEX history_queue (queue=? AND rowid<?)",
    "count_finished": "SEARCH history USING INDEX history_queue (queue=?)",
    "finished": "SEARCH history USING INDEX history_message (message_id=?)",
    "queues": "SCAN queue_counts",
    "queue": "SEARCH queue_counts USING PRIMARY KEY (queue=?)",
    "oldest_ready": "SEARCH messages USING COVERING INDEX messages_claim (queue=?)",
    "message": "SEARCH messages USING INDEX messages_id (id=?)",
    "keyed_message": "SEARCH messages USING INDEX messages_key (queue=? AND kind=? AND key=?)",
    "next_kind": "SEARCH messages USING COVERING INDEX messages_key (queue=? AND kind>?)",
    "count_keys": "SEARCH messages USING COVERING INDEX messages_key (queue=?)",
    "keyed_messages": "SEARCH messages USING INDEX messages_key (queue=? AND kind=? AND key>? AND key<?)",
    "find_pending": "SEARCH messages USING INDEX messages_key (queue=? AND kind=? AND key=?)",
    "read_all_waiting": "SEARCH message_keys USING INTEGER PRIMARY KEY (rowid=?)",
    "delete_keys": "SEARCH message_keys USING INTEGER PRIMARY KEY (rowid=?)",
    "is_pending": "SEARCH messages USING COVERING INDEX messages_key (queue=? AND kind=? AND key=?)",
    "select_of_kind": "SEARCH messages USING INDEX messages_key (queue=? AND kind=? AND key>?)",
    "peek": "SEARCH messages USING INDEX messages_claim (queue=?)",
    "browse": "SEARCH messages USING INDEX messages_queue (queue=? AND rowid<?)",
    "find": "SEARCH messages USING COVERING INDEX messages_queue (queue=? AND rowid>? AND rowid<?)",
    "count_matching": "SEARCH messages USING COVERING INDEX messages_queue (queue=? AND rowid>? AND rowid<?)",
    "scanned": "SEARCH messages USING COVERING INDEX messages_queue (queue=? AND rowid>? AND rowid<?)",
    "next_scanned": "SEARCH messages USING COVERING INDEX messages_queue (queue=? AND rowid>? AND rowid<?)",
    "error_groups": "SEARCH messages USING COVERING INDEX messages_queue (queue=? AND rowid<?)",
    "error_texts": "SEARCH messages USING COVERING INDEX messages_queue (queue=? AND rowid<?)",
    "list_all": "SEARCH messages USING COVERING INDEX messages_queue (queue=? AND rowid<?)",
    "list_processing": "SEARCH messages USING COVERING INDEX messages_in_flight (queue=? AND rowid<?)",
    "list_delayed": "SEARCH messages USING COVERING INDEX messages_delayed (queue=? AND rowid<?)",
    "list_held": "SEARCH messages USING COVERING INDEX messages_held (queue=? AND rowid<?)",
    "list_failed": "SEARCH messages USING INDEX messages_failed (is_dlq=? AND rowid<?)",
    "list_ready_at": "COVERING INDEX messages_claim (queue=? AND priority=? AND position=? AND rowid>?)",
    "list_ready_behind": "SEARCH messages USING COVERING INDEX messages_claim (queue=? AND priority=? AND position>?)",
    "list_ready_below": "SEARCH messages USING COVERING INDEX messages_claim (queue=? AND priority<?)",
    "rows": "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)",
    "message_by_sequence": "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)",
    "queues_of": "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)",
    "load_staging": "SCAN stages",
    "find_stage": "SEARCH stages USING INDEX stages_name (queue=? AND stage=?)",
    "find_stages": "SEARCH stages USING INDEX stages_name (queue=? AND stage=?) LEFT-JOIN",
    "find_staged_page": "SEARCH staged_parts USING INDEX staged_parts_order (stage_id=? AND page=?)",
    "find_expired_stages": "SEARCH stages USING INDEX stages_expire (expires_at<?)",
    "on_the_way": "SEARCH stages USING INDEX stages_on_the_way (queue=?)",
    "next_stage": "SCAN stages USING INDEX stages_work",
    "first_entry": "SEARCH stages USING COVERING INDEX stages_work (published=? AND turn>?)",
    "next_part": "SEARCH staged_parts USING INDEX staged_parts_order (stage_id=?)",
    "find_apps": "SEARCH apps USING INDEX apps_name (app=?)",
    "load_stages": "SCAN stages",
    "count_apps": "SCAN apps USING COVERING INDEX apps_made_by",
    "oldest_empty_stage": "SEARCH stages USING INDEX stages_made_by (made_by=?)",
    "oldest_app": "SEARCH apps USING INDEX apps_once (once=?)",
    "oldest_app_of": "SEARCH apps USING INDEX apps_made_by (made_by=? AND once=?)",
    "export_end": "SEARCH messages USING INDEX messages_queue (queue=? AND rowid>? AND rowid<?)",
    "export_lines": "SEARCH messages USING INDEX messages_queue (queue=? AND rowid>? AND rowid<?)",
    "exported_behind": "SEARCH messages USING COVERING INDEX messages_queue (queue=? AND rowid>? AND rowid<?)",
    "newest": "SEARCH messages USING COVERING INDEX messages_queue (queue=?)",
    "export_bound": "SEARCH messages USING COVERING INDEX messages_queue (queue=? AND rowid>?)",
    "bounds_with_moved": "SEARCH messages USING COVERING INDEX messages_queue (queue=?)",
    "apps_named": "SEARCH apps USING INDEX apps_name (app=?)",
    "list_apps": "SEARCH apps USING INTEGER PRIMARY KEY (rowid>?)",
    "ready_sequences": "SEARCH messages USING COVERING INDEX messages_claim (queue=?)",
    "ready_priorities": "SEARCH messages USING COVERING INDEX messages_claim (queue=? AND priority<?)",
    "ready_positions": "SEARCH messages USING COVERING INDEX messages_claim (queue=? AND priority=?)",
    "ready_from": "SEARCH messages USING COVERING INDEX messages_claim (queue=? AND priority=? AND position>?)",
    "first_event": "SEARCH events USING INTEGER PRIMARY KEY (rowid>?)",
    "last_event": "SEARCH events USING INTEGER PRIMARY KEY (rowid>?)",
    "first_event_to_keep": "SEARCH events USING INTEGER PRIMARY KEY (rowid>?)",
    "delete_events": "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    "event_range": "SEARCH events",
    "event_lines": "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    "message_events": "SEARCH events USING INDEX events_message (message_id=? AND rowid>?)",
}

# Scans that are meant: of the one row about forgotten queues, of one small row per queue at start (or to list the
# queues), of a few stages, of the rows of a JSON list or a common table expression.
ALLOWED_SCANS = (
    "schedules_made_by",
    "outboxes",
    "message_batches",
    "stages",
    "apps",
    "redrives",
    "consumers",
    "forgotten_sequence",
    "queue_counts",
    "queues",
    "tokens",
    "ui_sessions",
    "json_each",
    "wanted",
    "had",
    "scanned",
    "priorities",
    "groups",
    "SUBQUERY",
    "(subquery-1)",
    "(subquery-3)",
    "(subquery-4)",
    "(subquery-2)",
    "CONSTANT ROW",
    "history_ends",
    "load_forgotten_consumers",
    "save_forgotten_consumers",
    "page",
)

FIRST_ROWS = {
    "drop_consumer_numbers": "SCAN consumer_numbers",
    "count_batch_members": "SCAN batch_members",
    "load_history": "SCAN history USING COVERING INDEX history_queue",
    "has_buckets": "SCAN rate_buckets USING COVERING INDEX rate_buckets_full",
}
"""Statements that read the first rows of a table or index, as many as their LIMIT says."""

WHOLE = {"schedule_of_queue": "SCAN schedules"}
"""Statements that read a table whole: before a queue is bound."""

SORTS = {
    "error_texts": ("scanned",),
    "error_groups": ("scanned", "grouped", "placed", "(subquery-5)"),
    "count_outboxes": (),
    "load_message_batches": (),
    "moved_by_id": (),
    "bounds_with_moved": ("SCAN placed", "SCAN places", "(subquery"),
    "queues_of": ("SCAN consumers", "SCAN leasing", "SCAN moved EXISTS"),
}
"""Statements that sort, or begin with the few consumers; LIMIT or the batch bounds them. What of theirs is scanned."""


def fill(engine: SqliteEngine) -> None:
    """10,000 messages in all states, in a few queues of very different sizes, with priorities, delays and deaths."""
    for number in range(10):
        plain = tuple(NewMessage(f"m{n}", priority=n % 3) for n in range(500))
        delayed = tuple(
            NewMessage(f"d{n}", T0 + 60_000 + n, deduplication_id=f"{number}.{n}") for n in range(500)
        )
        do(engine, ProduceMany("large", plain))
        do(engine, ProduceMany(f"small-{number}", delayed))
    deliveries = do(engine, claim(queue="large", most=2_000))
    run(engine, ack(*deliveries[:500], queue="large"), nack(*deliveries[500:900], queue="large", delay_ms=5))
    dying = limits.ATTEMPTS_MAX_DEFAULT
    for _ in range(dying):
        again = do(engine, claim(queue="large", most=50))
        do(engine, nack(*again, queue="large", delay_ms=0))
    do(engine, Configure("fair", SettingsChange(group_in_flight_max=2)))
    for number in range(10):
        in_groups = tuple(
            NewMessage(f"g{n}", group=f"{number}.{n % 7}", attributes={"n": str(n)}) for n in range(100)
        )
        do(engine, ProduceMany("fair", in_groups))
        do(engine, claim(queue="fair", most=100))
    assert engine.snapshot().counts["fair"].held > 100


@pytest.fixture(scope="module", params=["empty", "filled and analysed"])
def connection(request, tmp_path_factory) -> Iterator[apsw.Connection]:
    path = str(tmp_path_factory.mktemp("plans") / "forq.db")
    with closing(SqliteEngine(path, EngineSettings(history=True), "normal")) as engine:
        if request.param != "empty":
            fill(engine)
            engine._database.connection.execute("ANALYZE")
    with closing(open_reader(path)) as connection:
        yield connection


def plan(connection: apsw.Connection, statement: str) -> list[str]:
    bindings = ["[1, 2, 3]"] * apsw.ext.query_info(connection, statement).bindings_count
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", bindings)]


ALL = {name: sql for file in FILES for name, sql in load(file).items()}
STATEMENTS = list(ALL.items())


def test_every_expected_plan_is_that_of_a_statement() -> None:
    assert len(ALL) == sum(len(load(file)) for file in FILES)
    assert set(EXPECTED) <= ALL.keys()


def test_promise_5_every_statement_uses_its_index(connection) -> None:
    plans = {name: plan(connection, statement) for name, statement in STATEMENTS}
    assert {name: steps for name, steps in plans.items() if not is_expected(name, steps)} == {}


@pytest.mark.parametrize("name", ["find_by_id", "message"])
def test_an_id_is_looked_up_by_its_number_and_in_the_index_of_others(connection, name) -> None:
    steps = [step for step in plan(connection, ALL[name]) if step.startswith("SEARCH messages ")]
    assert [step.split(" ", 3)[3] for step in steps] == [
        "INTEGER PRIMARY KEY (rowid=?)",
        "INDEX messages_id (id=?)",
    ]


def is_expected(name: str, steps: list[str]) -> bool:
    """Whether a statement goes by its index, sorts nothing, and scans nothing else than it may."""
    if name not in EXPECTED:
        return all(BY_NUMBER.fullmatch(step) for step in steps)
    allowed_scans = (*ALLOWED_SCANS, *SORTS.get(name, ()))
    return EXPECTED[name] in "\n".join(steps) and not any(
        ("TEMP B-TREE" in step and name not in SORTS)
        or "AUTOMATIC" in step
        or (
            step.startswith("SCAN ")
            and step not in (FIRST_ROWS.get(name), WHOLE.get(name))
            and not any(allowed in step for allowed in allowed_scans)
        )
        for step in steps
    )


def test_a_bad_plan_would_be_seen(connection) -> None:
    """The check itself can fail: this query has no index to go by."""
    steps = plan(connection, "SELECT seq FROM messages WHERE attempts = ? ORDER BY updated_at")
    assert any("SCAN messages" in step for step in steps)
    assert any("TEMP B-TREE" in step for step in steps)
    assert not is_expected("a statement that is not named", steps)
    of_many = plan(connection, "SELECT seq FROM messages WHERE seq > ?")
    assert not is_expected("a statement that is not named", of_many)
    assert is_expected(
        "a statement that is not named", plan(connection, "DELETE FROM messages WHERE seq = ?")
    )
