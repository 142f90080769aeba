"""Every statement goes along its index, whatever is stored, and whether or not PostgreSQL has statistics."""

import json
import re
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from forq_trio.model.commands import Ack, ProduceMany
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Receipt
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres import plans as module
from forq_trio.storage.postgres.dialect import SQL
from forq_trio.storage.postgres.engine import PostgresEngine
from forq_trio.storage.postgres.open import SESSION
from support.batches import do, run
from support.postgres import make_settings
from support.words import ack, claim, send

FILL = """
INSERT INTO messages (seq, id, queue, is_dlq, status, process_after, received_at, updated_at, expires_after, priority,
                      position, lease_until, bytes, group_id, kind, key, content)
SELECT n, 'id' || n, CASE WHEN n % 10 < 7 THEN 'large' ELSE 'small-' || n % 50 END, n % 2, n % 5, n, n, n, 10000000 + n,
       100 + n % 3, n, n, 100, CASE WHEN n % 3 = 0 THEN 'g' || n % 7 END, CASE WHEN n % 4 = 0 THEN 'k' END,
       CASE WHEN n % 4 = 0 THEN 'k' || n END, 'x' FROM generate_series(1, {count}) n;
INSERT INTO history (id, seq, message_id, queue, outcome, finished_at, attempts, priority, received_at, bytes, number,
                     total, content)
SELECT n, n, 'id' || n, 'q' || n % 9, 'acked', n, 1, 100, n, 100, n, n, 'x' FROM generate_series(1, {count}) n;
INSERT INTO events (id, at, kind, queue, seq, message_id, bytes, total, received_at)
SELECT n, n, 1, 'q' || n % 9, n, 'id' || n, 1, n, n FROM generate_series(1, {count}) n;
"""
LARGE = {"messages", "history", "events"}
SMALL = {
    "forgotten_sequence",
    "queue_counts",
    "queues",
    "tokens",
    "ui_sessions",
    "stages",
    "history_ends",
    "consumers",
    "consumers_forgotten",
    "outboxes",
    "message_batches",
    "processes",
}
"""Tables that are read whole: at a start, or because they have a row for each process, or one."""
WITHOUT_PLAN = re.compile(
    r"BEGIN|COMMIT|ROLLBACK|FETCH|CLOSE|SAVEPOINT|RELEASE|CREATE|LISTEN|LOCK|DISCARD|SELECT pg_"
)
BY_QUEUE = "messages_queue"
BY_CLAIM = "messages_claim"
BY_SEQUENCE = "messages_pkey"
EXPECTED = {
    BY_CLAIM: (
        "next_priority ready_newest_last ready_newest_first select_to_match select_to_match_at ready_sequences"
        " ready_priorities ready_positions ready_from peek list_ready_at list_ready_behind list_ready_below"
        " select_ready_behind"
    ),
    "messages_due": "next_due next_due_but select_due select_due_but",
    "messages_failed": "select_failed select_failed_but",
    "messages_held": "select_held",
    "messages_group": (
        "last_of_group last_of_group_many count_in_process count_in_process_many select_held_of_group"
        " select_held_of_group_many"
    ),
    "messages_id": "find_by_id message stored_message",
    "messages_key": "select_of_kind is_pending keyed_message next_kind count_keys keyed_messages find_pending",
    "messages_in_flight": "list_processing",
    "messages_delayed": "list_delayed",
    BY_QUEUE: (
        "select_purged browse count_matching scanned next_scanned error_groups error_texts list_all export_end"
        " export_lines exported_behind newest export_bound bounds_with_moved"
    ),
    BY_SEQUENCE: (
        "select_drawn hold unhold lease lease_many find_by_sequence find_one_by_sequence find_default_max_receives"
        " delete_message delete_messages return_message return_message_many note_last_error extend extend_ended promote"
        " dead_letter redrive read_message ping keep_finished keep_with_result lease_page has_content update_message"
        " reschedule_message resize_message give_key came_at rows message_by_sequence queues_of select_ready_behind"
    ),
    "history_pkey": (
        "forget_finished finished_by_id load_history_ends history_ends history_lines newest_without_result"
    ),
    "history_queue": "oldest_finished_of_queue scanned_finished finished_below count_finished",
    "events_pkey": "first_event last_event first_event_to_keep delete_events event_range event_lines",
    "events_message": "message_events",
    "message_batches_due": "first_message_batch due_message_batch",
    "message_batches_counts": "first_count message_batch_to_count",
    "message_batches_over": "oldest_message_batch",
    "batch_members_pkey": "find_batch_members await_count_of_members mark_batch_members forget_batch_members",
    "batch_members_became": "members_to_count",
    "message_batch_sends_pkey": "read_sends forget_sends",
}
SCANS = {"schedule_of_queue"}
"""Statements that read a table whole: before a queue is bound."""
NEVER_COMPARED = {"held_groups"}
"""Statements of two inputs without a bound, of which no plan may compare each row of one with each of the other."""
WHOLE = {"load_history"}
"""A statement that begins at an end of an index, and is bounded by skipping from queue to queue."""


def scans(node: dict, above: str = "") -> Iterator[dict]:
    """The nodes of a plan that read a table, each with what is above it; that of max() and min() is a LIMIT."""
    if "Relation Name" in node and node["Node Type"] != "ModifyTable":
        yield node | {"Above": above}
    for child in node.get("Plans", ()):
        yield from scans(child, node["Node Type"])


def is_bounded(node: dict) -> bool:
    """Whether it reads no more than it is asked for."""
    return "Index Cond" in node or (node["Above"] == "Limit" and "Filter" not in node)


def comparisons(node: dict) -> Iterator[str]:
    """The conditions for which a plan takes all pairs of rows of two inputs."""
    if "Join Filter" in node:
        yield node["Join Filter"]
    for child in node.get("Plans", ()):
        yield from comparisons(child)


def plans(connection: psycopg.Connection) -> dict[str, dict]:
    """The generic plan of each statement."""
    found = {}
    for name, statement in SQL.items():
        if WITHOUT_PLAN.match(statement) is None:
            query = statement.removeprefix("DECLARE unbounded NO SCROLL CURSOR FOR ")
            count = max(map(int, re.findall(r"\$(\d+)", query)), default=0)
            connection.execute(f"PREPARE planned AS {query}".encode())
            arguments = f"({', '.join(['NULL'] * count)})" if count else ""
            ((plan,),) = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE planned {arguments}".encode())
            connection.execute("DEALLOCATE planned")
            found[name] = plan[0]["Plan"]
    return found


@pytest.fixture(scope="module")
def filled(postgres) -> Iterator[psycopg.Connection]:
    """A database with a few thousand messages, without statistics."""
    url = postgres.new_database()
    PostgresEngine(url, EngineSettings(history=True), "normal").close()
    with psycopg.connect(url, autocommit=True) as connection:
        make_settings(connection, SESSION)
        connection.execute("SET statement_timeout = 0")
        connection.execute(FILL.format(count=2_000).encode())
        yield connection
    postgres.drop_database(url)


def check(found: dict[str, dict]) -> None:
    read = {name: list(scans(plan)) for name, plan in found.items()}
    expected = {(name, index) for index, names in EXPECTED.items() for name in names.split()}
    for name, nodes in read.items():
        for node in nodes:
            table = node["Relation Name"]
            if node["Node Type"] == "Seq Scan":
                assert table in SMALL or name in SCANS, (name, node)
            elif table in LARGE and node["Node Type"] != "Tid Scan":
                assert is_bounded(node) or name in WHOLE, (name, node)
    used = {(name, node.get("Index Name")) for name, nodes in read.items() for node in nodes}
    assert sorted(expected - used) == []
    assert [condition for name in NEVER_COMPARED for condition in comparisons(found[name])] == []


def test_statements_go_along_their_index_without_statistics(filled):
    check(plans(filled))


@pytest.mark.tier2
def test_and_with_statistics_of_more(filled):
    filled.execute("TRUNCATE messages, history, events")
    filled.execute(FILL.format(count=100_000).encode())
    check(plans(filled))
    filled.execute("ANALYZE")
    check(plans(filled))


def test_a_statement_without_its_index_is_seen(filled):
    with filled.transaction(force_rollback=True):
        filled.execute("DROP INDEX messages_due")
        with pytest.raises(AssertionError):
            check(plans(filled))


def test_what_was_planned_on_an_empty_table_is_planned_anew(database, monkeypatch):
    monkeypatch.setattr(module, "PLANNED_SECONDS", 3_600.0)
    PostgresEngine(database, EngineSettings(), "normal").close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")  # as autovacuum does it
    with closing(PostgresEngine(database, EngineSettings(), "normal")) as engine:
        do(engine, Ack("q", (Receipt(1, 1),)))
        for _ in range(3):
            do(engine, send())
            do(engine, ack(*do(engine, claim())))
        for number in range(2):
            do(engine, ProduceMany(f"q{number}", (NewMessage("x"),) * 1_000))
        run(engine, claim(queue="q0"))
        found = {name: explain(engine, name, arguments) for name, arguments in ARGUMENTS.items()}
    assert found == {name: {BY_SEQUENCE} for name in ARGUMENTS}


ARGUMENTS = {"find_one_by_sequence": "'1'", "delete_message": "'1'"}


def explain(engine: PostgresEngine, name: str, arguments: str) -> set[str]:
    """The indexes of the plan that a connection has made."""
    pg = engine.connection._pg
    pg.exit_pipeline_mode()
    result = pg.exec_(f"EXPLAIN (FORMAT JSON) EXECUTE {name} ({arguments})".encode())
    pg.enter_pipeline_mode()
    assert result.get_value(0, 0), result.error_message
    (plan,) = json.loads(result.get_value(0, 0))
    return {node["Index Name"] for node in scans(plan["Plan"])}
