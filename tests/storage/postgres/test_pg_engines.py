"""Several engines on one database: what one does the others know, and a cut connection tells no lie."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg import sql

from forq_trio.model import limits
from forq_trio.model.access.types import AccessToken, Digest, Scope
from forq_trio.model.commands import (
    AckWithResult,
    Claim,
    Configure,
    Nack,
    OfferMany,
    ProduceMany,
    Publish,
    Purge,
    PurgeStep,
    RedrivePolicy,
    RevokeToken,
    SaveSchedule,
    SaveToken,
    StagePage,
)
from forq_trio.model.errors import CommandRefused, FeatureUnavailable, StorageUnavailable, ZeroCharacter
from forq_trio.model.keys.types import Offering
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Receipt
from forq_trio.model.publishing.types import Stage, StagedPart
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.storage.engine import Batch, EngineSettings, OutcomeLost
from forq_trio.storage.postgres import engine as module
from forq_trio.storage.postgres import open as opening
from support.actors import T0
from support.batches import do, run
from support.cuts import before_the_flush, cut, run_cut_off
from support.words import ack, claim, contents, nack, send


def test_what_one_sends_the_other_delivers_once(open_one):
    a, b = open_one(), open_one()
    do(a, send("x"))
    (delivery,) = do(b, claim())
    assert delivery.content == "x"
    assert do(a, claim()) == ()
    assert do(a, ack(delivery)) == (True,)
    assert do(b, ack(delivery)) == (False,)
    assert a.snapshot().counts["q"].total == 0
    do(b, claim())
    assert b.snapshot().counts["q"].total == 0


def test_an_engine_far_behind_reads_all_tables_anew(open_one, monkeypatch):
    monkeypatch.setattr(module, "BATCHES_STORED", 5)
    monkeypatch.setattr(module, "BATCHES_FORGOTTEN", 1)
    a, b = open_one(), open_one()
    for number in range(20):
        do(a, send(str(number), queue=f"q{number}"))
    do(a, Configure("q3", SettingsChange(lease_ms=7_000)))
    assert [do(b, claim(queue=f"q{number}"))[0].content for number in range(20)] == [
        str(n) for n in range(20)
    ]
    assert b.snapshot().counts == {**a.snapshot().counts, **b.snapshot().counts}
    assert b.snapshot().rules("q3").lease_ms == 7_000


def test_settings_and_tokens_reach_the_other_with_its_next_batch(open_one):
    a, b = open_one(), open_one()
    token = AccessToken("t", (Scope.CONSUME,), "*", T0, None, None, Digest("d" * 64))
    do(a, SaveToken(token))
    do(a, Configure("q", SettingsChange(lease_ms=9_000)))
    result = run(b)
    assert result.elsewhere[0].tokens
    assert b.snapshot().tokens == {"t": token}
    assert b.snapshot().rules("q").lease_ms == 9_000
    do(b, RevokeToken("t"))
    run(a)
    assert a.snapshot().tokens == {}
    assert run(a).elsewhere == ()


@pytest.mark.parametrize("log", ["history", "events"])
def test_what_is_recorded_is_each_process_s_own_setting(open_one, log):
    on = open_one(settings=EngineSettings(history=log == "history", events=log == "events"))
    off = open_one()
    do(off, send("x"))
    do(on, ack(do(on, claim())[0]))
    run(off)
    assert on.snapshot().logs[log].enabled
    assert not off.snapshot().logs[log].enabled
    recorded = off.snapshot().logs[log].last
    assert recorded == on.snapshot().logs[log].last > 0
    do(on, send("y"))
    do(off, ack(do(off, claim())[0]))
    assert off.snapshot().logs["history"].last == int(log == "history")


def test_whose_schedule_runs_in_turn_is_known_to_the_other(open_one, monkeypatch):
    """Of the two runs of a batch the second is that of the next token in turn, whoever ran the batch before."""
    monkeypatch.setattr(limits, "RUNS_STEP_MAX", 2)
    a, b = open_one(), open_one()
    for name in ("t1", "t2", "t3", "t4", "u1"):
        do(a, SaveSchedule(name, NewSchedule(queue=name, content=name, every="10s"), False, name[0]))
    sent = [
        {event.queue for event in run(engine, now_ms=T0 + 10_000).events if event.kind == "produced"}
        for engine in (a, b)
    ]
    assert sent == [{"t1", "t2"}, {"t3", "u1"}]


def test_an_empty_batch_wakes_the_queues_that_others_woke(open_one):
    a, b = open_one(), open_one()
    do(a, send())
    assert run(b).elsewhere[0].woken == {"q"}
    assert run(b).elsewhere == ()


def run_far_behind(monkeypatch, engine):
    """Run the batch in which this engine reads all anew, since it is too many batches behind."""
    with monkeypatch.context() as few:
        few.setattr(module, "BATCHES_READ_MAX", 2)
        return run(engine)


def test_what_a_batch_left_to_the_next_one_is_known_to_a_process_that_reads_all_anew(open_one, monkeypatch):
    """A claim moved a message to another queue, whose receivers the next batch serves, whoever runs it."""
    a, behind = open_one(), open_one()
    for other in (behind, None):
        do(a, send())
        do(a, Nack("q", (Receipt.parse(do(a, claim())[0].receipt),), 0))
        do(a, Claim("q", 1, None, redrive_policy=RedrivePolicy(max_attempts=1, dead_letter_queue="d")))
        result = run(open_one()) if other is None else run_far_behind(monkeypatch, other)
        assert result.woken == {"d"}
        assert run(a).woken == set()


def test_the_entries_of_stages_go_on_in_a_process_that_reads_all_anew(open_one, monkeypatch):
    a, behind = open_one(), open_one()
    do(a, StagePage("q", "s", 0, (staged("x"),)))
    published = do(a, Publish("app", 1, (Stage("q", "s", 1),)))
    run(a)
    assert a.snapshot().staging.stages == 0
    run_far_behind(monkeypatch, behind)
    entries = [engine.snapshot().staging.last_entry for engine in (behind, open_one())]
    assert entries == [published.entry] * 2


def test_the_entries_of_stages_go_on_in_a_process_that_lost_its_connection(open_one, empty_tables):
    """A batch that changes nothing may be the last one, and does not tell the number."""
    a, cut_off = open_one(), open_one()
    do(a, StagePage("q", "s", 0, (staged("x"),)))
    published = do(a, Publish("app", 1, (Stage("q", "s", 1),)))
    for content in ("y", "z"):
        do(a, send(content))
    run_cut_off(empty_tables, cut_off)
    assert cut_off.snapshot().staging.last_entry == published.entry


def test_the_rounds_of_groups_go_on_in_a_process_that_lost_its_connection(open_one, empty_tables):
    """The second round of group x is reached, so y begins in the third, although a message of the first is back."""
    a, cut_off = open_one(), open_one()
    for content in ("x1", "x2", "x3"):
        do(a, send(content, group="x"))
    first, _ = do(a, claim(most=2))
    do(a, nack(first, delay_ms=0))
    run_cut_off(empty_tables, cut_off)
    do(cut_off, send("y1", group="y"))
    assert contents(do(a, claim(most=3))) == ["x1", "x3", "y1"]


def test_a_batch_without_changes_stores_nothing(open_one, empty_tables):
    a = open_one()
    do(a, claim())
    with psycopg.connect(empty_tables) as connection:
        assert connection.execute("SELECT count(*) FROM forq.batches_2").fetchone() == (0,)


def test_a_connection_lost_before_the_commit_changes_nothing(open_one, empty_tables):
    a = open_one()
    a.execute_batch(Batch([send("x")], T0))
    cut(empty_tables)
    with pytest.raises(StorageUnavailable):
        a.commit()
    assert do(a, claim()) == ()
    do(a, send("y"))
    assert do(a, claim())[0].content == "y"


def test_a_connection_lost_after_the_commit_is_found_out(open_one, empty_tables, monkeypatch):
    """The server committed, and its answer was lost."""
    a = open_one("full")
    before_the_flush(monkeypatch, a, lambda: cut(empty_tables))
    do(a, send("x"))
    assert a.snapshot().counts["q"].ready == 1
    assert do(open_one(), claim())[0].content == "x"
    do(a, send("z"))
    assert a.snapshot().counts["q"].ready == 1


def test_an_outcome_that_cannot_be_told_is_no_unavailability(open_one, empty_tables, monkeypatch):
    monkeypatch.setattr(module, "OUTCOME_SECONDS_MAX", 0.0)
    a = open_one()
    a.execute_batch(Batch([send("x")], T0))
    cut(empty_tables)

    def unreachable() -> None:
        raise module.DatabaseFailed("no route to host")

    monkeypatch.setattr(a.connection, "reopen", unreachable)
    with pytest.raises(OutcomeLost):
        a.commit()


def test_a_stopped_batch_gives_the_gate_back(open_one, transaction_idle_seconds, monkeypatch):
    """As a process that is stopped with SIGSTOP in the middle of a batch."""
    monkeypatch.setattr(opening, "TRANSACTION_IDLE_SECONDS", transaction_idle_seconds)
    a, b = open_one(), open_one()
    a.execute_batch(Batch([send("lost")], T0))
    do(b, send("x"))
    with pytest.raises(StorageUnavailable):
        a.commit()
    assert [each.content for each in do(a, claim(most=10))] == ["x"]


def test_a_zero_character_is_refused_alone(open_one):
    a = open_one()
    result = run(a, send("a\0b"), send("c"), send("d", attributes={"k": "\0"}))
    refused, sent, odd = result.outcomes
    assert isinstance(refused, ZeroCharacter)
    assert isinstance(odd, Exception)
    assert do(a, claim(most=10))[0].sequence == sent.sequence
    assert do(a, claim(most=10)) == ()


def staged(content: str, **options: Any) -> StagedPart:
    return StagedPart(msgspec.msgpack.encode([NewMessage(content, **options)]), 1, len(content))


@pytest.mark.parametrize(
    "refused",
    [
        send("a\0b"),
        send(attributes={"k": "\0"}),
        send(attributes={"k": r"\u0000"}),
        ProduceMany("q", (NewMessage("a"), NewMessage("b", group="\0"))),
        Nack("q", (Receipt(1, 1),), 0, "because of \0"),
        OfferMany("q", (Offering(key="k", content="\0"),)),
        StagePage("q", "s", 0, (staged("fine"), staged("a\0b"))),
        StagePage("q", "s", 0, (staged("a", attributes={"k": r"\u0000"}),)),
    ],
)
def test_what_cannot_be_stored_costs_the_others_of_its_batch_nothing(open_one, monkeypatch, refused):
    """Whoever sends such again and again would have every batch run twice, the second time command by command."""
    a = open_one()
    monkeypatch.setattr(a, "roll_back", lambda: pytest.fail("the batch runs again"))
    outcomes = run(a, send("c"), refused, claim(most=10)).outcomes
    assert isinstance(outcomes[1], ZeroCharacter)
    assert contents(outcomes[2]) == ["c"]


def test_a_batch_sees_what_the_one_before_it_did_whatever_isolation_the_database_prefers(
    open_one, empty_tables, monkeypatch
):
    """A snapshot that is taken before the wait for the gate would be too old."""
    with psycopg.connect(empty_tables, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        setting = sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = {}")
        connection.execute(setting.format(name, sql.Literal("repeatable read")))
        try:
            a, b = open_one(), open_one()
        finally:
            connection.execute(sql.SQL("ALTER DATABASE {} RESET default_transaction_isolation").format(name))
        monkeypatch.setattr(b, "roll_back", lambda: pytest.fail("the batch runs again"))
        a.execute_batch(Batch([send("x")], T0))
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(run, b, send("y"), claim(most=2))
            while not connection.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall():
                assert not waiting.done()
            a.commit()
            assert contents(waiting.result().outcomes[1]) == ["x", "y"]


def test_a_command_that_fails_in_a_statement_nobody_waited_for_fails_alone(open_one, monkeypatch):
    """Its error comes with the COMMIT."""
    monkeypatch.setattr(module, "cannot_be_stored", lambda command: False)
    a = open_one()
    result = a.execute_batch(Batch([send("c"), send("d", attributes={"k": "\0"})], T0))
    assert a.commit()
    sent, refused = result.outcomes
    assert isinstance(refused, CommandRefused)
    assert [each.sequence for each in do(a, claim(most=10))] == [sent.sequence]
    assert a.snapshot().counts["q"].total == 1


def test_a_full_queue_reads_no_more_of_its_messages_than_it_evicts(open_one):
    a = open_one()
    do(a, Configure("q", SettingsChange(max_messages=500, overflow=Overflow.DROP_OLDEST)))
    for _ in range(5):
        run(a, *(send() for _ in range(100)))
    read = []
    rows_of = a.connection.wait

    def counting(*arguments: Callable[[], None]) -> list[object]:
        rows = rows_of(*arguments)
        read.append(len(rows))
        return rows

    a.connection.wait = counting
    do(a, send("new"))
    assert sum(read) < 100
    assert a.snapshot().counts["q"].ready == 500


def test_what_the_database_does_itself_is_refused_by_name(open_one):
    a = open_one()
    with pytest.raises(FeatureUnavailable):
        a.copy_to("copy.db", lambda done, total: None)


def test_a_purge_of_many_is_seen_by_both(open_one):
    a, b = open_one(), open_one()
    for _ in range(3):
        do(a, send())
    assert do(b, Purge("q")) == PurgeStep(3, None)
    assert do(a, claim()) == ()


def test_where_one_has_the_history_off_results_do_not_remove_that_of_the_other(open_one, monkeypatch):
    """Each has its own setting, and learns how many messages the other has stored, but not why."""
    monkeypatch.setattr(limits, "RESULTS_STORED_MAX", 2)
    on, off = open_one(settings=EngineSettings(history=True)), open_one()

    def finish(engine) -> None:
        do(engine, send("x"))
        (delivery,) = do(engine, claim())
        receipt = Receipt.parse(delivery.receipt)
        assert do(engine, AckWithResult("q", (receipt,), "r", 1_000)) == (True,)

    for _ in range(3):
        do(on, send("x"))
        assert do(on, ack(*do(on, claim()))) == (True,)
    for _ in range(4):
        finish(off)
    assert off.snapshot().history_of("q").messages == 3 + 2
    do(on, send("x"))
    do(on, ack(*do(on, claim())))
    for _ in range(4):
        finish(off)
    assert off.snapshot().history_of("q").messages == 3 + 2 + 1 + 2
    run(on)
    assert on.snapshot().history_of("q") == off.snapshot().history_of("q")


def test_results_of_two_processes_are_counted_without_reading_them_again(open_one, monkeypatch):
    """Each looked through all of them for one without a result, whenever the other had added some."""
    monkeypatch.setattr(limits, "RESULTS_STORED_MAX", 2)
    engines = open_one(), open_one()
    looked = []
    for engine in engines:
        query = engine.connection.query

        def noting(name, *bindings, query=query):
            looked.append(name)
            return query(name, *bindings)

        monkeypatch.setattr(engine.connection, "query", noting)
    for engine in engines * 4:
        do(engine, send("x"))
        (delivery,) = do(engine, claim())
        assert do(engine, AckWithResult("q", (Receipt.parse(delivery.receipt),), "r", 1_000)) == (True,)
    assert engines[0].snapshot().history_of("q").messages == 2
    assert looked.count("newest_without_result") == len(engines)
