"""A message that cannot be settled when it falls due is set aside: it harms neither its neighbours nor the writer."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Claim, Configure, Nacked, ProduceMany, Purge, PurgeStep, Sweep, SweepKind
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.errors import CommandRefused
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.actors import T0, ObservedEngine, elapse, running_writer
from support.batches import do, run
from support.words import ack, claim, contents, nack, send

LEASE_MS = 1_000
LATER = T0 + LEASE_MS
RETRY = LATER + limits.SET_ASIDE_RETRY_MS


def damage(engine: SqliteEngine, content: str = "bad") -> None:
    """Make the column that every end of an attempt has to read unreadable."""
    engine._database.connection.execute(
        "UPDATE messages SET failures = 'no JSON' WHERE content = ?", (content,)
    )


def repair(engine: SqliteEngine) -> None:
    engine._database.connection.execute("UPDATE messages SET failures = NULL WHERE failures = 'no JSON'")


@pytest.fixture
def damaged(engine: SqliteEngine) -> SqliteEngine:
    """Three messages whose leases end at LATER; the one in the middle cannot be settled."""
    for content in ("first", "bad", "last"):
        do(engine, send(content))
    do(engine, claim(most=3, lease_ms=LEASE_MS))
    damage(engine)
    return engine


def test_its_neighbours_are_settled_and_it_is_told_of(damaged: SqliteEngine) -> None:
    result = run(damaged, now_ms=LATER)
    ((queue, sequence, error),) = result.set_aside
    assert (queue, sequence) == ("q", 2)
    assert error.startswith("DecodeError: ")
    assert damaged.snapshot().counts["q"] == QueueCounts(ready=2, processing=1, bytes=12)
    assert result.events[0].count == 2


def test_it_is_left_alone_for_a_while_and_asks_for_no_batch(damaged: SqliteEngine) -> None:
    assert run(damaged, now_ms=LATER).next_due_ms == RETRY
    again = run(damaged, send("more"), now_ms=LATER + 1)
    assert (again.set_aside, again.next_due_ms) == ([], RETRY)
    assert contents(do(damaged, claim(most=9), LATER + 2)) == ["first", "last", "more"]


def test_once_its_time_has_come_it_is_tried_again(damaged: SqliteEngine) -> None:
    run(damaged, now_ms=LATER)
    assert [each.sequence for each in run(damaged, now_ms=RETRY).set_aside] == [2]
    repair(damaged)
    assert run(damaged, now_ms=RETRY + limits.SET_ASIDE_RETRY_MS).set_aside == []
    assert damaged.snapshot().counts["q"].ready == 3


def test_a_consumer_can_still_settle_it(damaged: SqliteEngine) -> None:
    do(damaged, send("held", queue="other"))
    (delivery,) = do(damaged, claim(queue="other", lease_ms=LEASE_MS))
    damage(damaged, "held")
    assert len(run(damaged, now_ms=LATER).set_aside) == 2
    assert do(damaged, ack(delivery, queue="other"), LATER + 1) == (True,)
    assert damaged.snapshot().counts["other"] == QueueCounts()


def test_commands_of_the_same_batch_are_executed(damaged: SqliteEngine) -> None:
    produced, deliveries = run(damaged, send("new"), claim(most=9), now_ms=LATER).outcomes
    assert produced.sequence == 4
    assert contents(deliveries) == ["first", "last", "new"]


@pytest.mark.usefixtures("failed_stay")
def test_a_sweep_goes_on_behind_it(engine: SqliteEngine) -> None:
    for content in ("bad", "good"):
        do(engine, send(content, max_attempts=1))
    do(engine, nack(*do(engine, claim(most=2))))
    engine._database.connection.execute("UPDATE messages SET position = 'nowhere' WHERE content = 'bad'")
    result = run(engine, Sweep(SweepKind.FAILED))
    assert result.outcomes[0].count == 1
    assert [each.sequence for each in result.set_aside] == [1]
    assert engine.snapshot().counts["q-dlq"].ready == 1
    assert run(engine, Sweep(SweepKind.FAILED)).outcomes[0].count == 0


def test_one_that_fails_does_not_keep_its_neighbours_from_becoming_dead_letters(engine: SqliteEngine) -> None:
    for content in ("bad", "good"):
        do(engine, send(content, max_attempts=1))
    deliveries = do(engine, claim(most=2))
    engine._database.connection.execute("UPDATE messages SET position = 'nowhere' WHERE content = 'bad'")
    result = run(engine, nack(*deliveries))
    assert result.outcomes == [(Nacked.FAILED, Nacked.FAILED)]
    assert [each.sequence for each in result.set_aside] == [1]
    assert result.failed_queued
    counts = engine.snapshot().counts
    assert (counts["q"].failed, counts["q-dlq"].ready) == (1, 1)


def test_with_no_room_to_note_it_all_due_messages_wait_a_second(damaged: SqliteEngine, monkeypatch) -> None:
    monkeypatch.setattr(limits, "SET_ASIDE_MESSAGES_MAX", 0)
    result = run(damaged, now_ms=LATER)
    assert (result.set_aside, result.next_due_ms) == ([], LATER + limits.DUE_RETRY_MS)
    assert damaged.snapshot().counts["q"].ready == 2


async def test_neither_the_writer_nor_the_next_start_ends_by_it(
    tmp_path, autojump_clock, monkeypatch
) -> None:
    logged: list[dict[str, object]] = []
    monkeypatch.setattr(
        "forq_trio.telemetry.activity.log", lambda event, **fields: logged.append({"event": event} | fields)
    )
    path = str(tmp_path / "forq.db")
    for life in (1, 2):
        engine = SqliteEngine(path, EngineSettings(), "normal")
        async with running_writer(ObservedEngine(engine)) as writer:
            if life == 1:
                await writer.execute(send("bad"))
                await writer.execute(claim(lease_ms=LEASE_MS))
                damage(engine)
            await elapse(2 * LEASE_MS / 1_000)
            await writer.execute(send("good"))
            assert len(await writer.execute(claim(lease_ms=LEASE_MS * 3_600))) == 1
    assert [str(each["event"]) for each in logged] == ["message.set_aside"] * 2
    assert all(each["sequence"] == 1 and each["queue"] == "q" for each in logged)


async def test_nothing_runs_while_it_waits(tmp_path, autojump_clock) -> None:
    engine = SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal")
    observed = ObservedEngine(engine)
    async with running_writer(observed) as writer:
        await writer.execute(send("bad"))
        await writer.execute(claim(lease_ms=LEASE_MS))
        damage(engine)
        await elapse(LEASE_MS / 1_000 + 1)
        batches = len(observed.batches)
        await elapse(limits.SET_ASIDE_RETRY_MS / 1_000 - 5)
        assert len(observed.batches) == batches


@pytest.mark.parametrize("column", ["expires_after", "lease_until"])
@pytest.mark.parametrize("value", ["later", b"\xff"])
def test_a_time_that_is_no_number_stops_no_other(tmp_path, column: str, value: str | bytes) -> None:
    path = str(tmp_path / "forq.db")
    engine = SqliteEngine(path, EngineSettings(), "normal")
    for content in ("bad", "worse"):
        do(engine, send(content))
    (first,) = do(engine, claim(lease_ms=LEASE_MS))
    if column == "lease_until":
        do(engine, claim(lease_ms=LEASE_MS))
    engine._database.connection.execute(f"UPDATE messages SET {column} = ?", (value,))
    assert run(engine, Sweep(SweepKind.EXPIRED), now_ms=LATER).next_due_ms in (None, RETRY)
    engine.close()
    engine = SqliteEngine(path, EngineSettings(), "normal")
    run(engine, now_ms=RETRY)
    assert isinstance(do(engine, nack(first), RETRY), CommandRefused | tuple)
    assert run(engine, Sweep(SweepKind.EXPIRED), now_ms=RETRY).next_due_ms != value
    do(engine, send("good", queue="other"), RETRY)
    assert contents(do(engine, claim(queue="other"), RETRY)) == ["good"]
    engine.close()


def unreadable(engine: SqliteEngine, content: str = "bad") -> None:
    """Make a column that every delivery has to read unreadable."""
    engine._database.connection.execute(
        "UPDATE messages SET attributes = 'no JSON' WHERE content LIKE ?", (f"{content}%",)
    )


def test_one_that_cannot_be_handed_out_hides_no_other(engine: SqliteEngine) -> None:
    for content in ("bad", "good", "better"):
        do(engine, send(content))
    unreadable(engine)
    result = run(engine, claim())
    assert contents(result.outcomes[0]) == ["good"]
    assert [each.sequence for each in result.set_aside] == [1]
    assert contents(do(engine, claim(most=9))) == ["better"]
    assert run(engine, claim(), now_ms=T0 + limits.SET_ASIDE_RETRY_MS - 1).set_aside == []
    engine._database.connection.execute("UPDATE messages SET attributes = NULL")
    assert contents(do(engine, claim(), T0 + limits.SET_ASIDE_RETRY_MS)) == ["bad"]


def test_a_waiting_receiver_gets_what_is_behind_it(engine: SqliteEngine) -> None:
    do(engine, send("bad"))
    unreadable(engine)
    result = run(engine, send("good"), parked={"q": [claim(), claim()]})
    assert [(place, contents(deliveries)) for place, deliveries in result.served["q"]] == [(0, ["good"])]


@pytest.mark.parametrize("shuffle", [True, False])
def test_its_group_is_given_another(engine: SqliteEngine, shuffle: bool) -> None:
    do(engine, Configure("q", SettingsChange(group_in_flight_max=1)))
    for content in ("bad", "good", "better"):
        do(engine, send(content, group="g"))
    unreadable(engine)
    claims = [Claim("q", 1, LEASE_MS, shuffle=shuffle)] * 2
    outcomes = run(engine, *claims).outcomes + run(engine, *claims, now_ms=T0 + 1).outcomes
    (got,) = [contents(deliveries) for deliveries in outcomes if deliveries]
    assert got in (["good"], ["better"])


@pytest.mark.tier2
def test_thousands_of_them_hide_nothing_from_a_consumer(engine: SqliteEngine) -> None:
    for _ in range(4):
        do(engine, ProduceMany("q", (NewMessage("bad"),) * 600))
    do(engine, send("good"))
    unreadable(engine)
    for _ in range(3):
        deliveries = do(engine, claim())
    assert contents(deliveries) == ["good"]


def test_thousands_of_them_hide_nothing_that_falls_due(engine: SqliteEngine) -> None:
    for _ in range(4):
        do(engine, ProduceMany("q", (NewMessage("bad", ttl_ms=LEASE_MS),) * 600))
    do(engine, send("good", queue="other", delay_ms=LEASE_MS + 1))
    engine._database.connection.execute("UPDATE messages SET position = 'nowhere' WHERE content = 'bad'")
    for _ in range(6):
        run(engine, now_ms=LATER + 1)
    assert engine.snapshot().counts["other"].ready == 1


@pytest.mark.usefixtures("failed_stay")
def test_a_sweep_goes_on_behind_thousands_of_them(engine: SqliteEngine) -> None:
    for content in ("bad", "good"):
        do(engine, ProduceMany("q", tuple(NewMessage(content, max_attempts=1) for _ in range(1_000))))
    for _ in range(20):
        do(engine, nack(*do(engine, claim(most=100))))
    engine._database.connection.execute("UPDATE messages SET position = 'nowhere' WHERE content = 'bad'")
    first = do(engine, Sweep(SweepKind.FAILED))
    assert (first.count, first.more) == (0, True)
    assert do(engine, Sweep(SweepKind.FAILED)).count == 1_000


def test_a_purge_removes_all_others(engine: SqliteEngine) -> None:
    for content in ("bad", "worse", "good"):
        do(engine, send(content))
    engine._database.connection.execute("UPDATE messages SET status = 7 WHERE content = 'bad'")
    engine._database.connection.execute("UPDATE messages SET bytes = 'many' WHERE content = 'worse'")
    assert do(engine, Purge("q")) == PurgeStep(1, None)
    assert engine._database.connection.execute("SELECT content FROM messages").fetchall() == [
        ("bad",),
        ("worse",),
    ]


def test_absurd_sizes_do_not_end_the_writer(engine: SqliteEngine) -> None:
    for content in ("bad", "bad"):
        do(engine, send(content))
    engine._database.connection.execute("UPDATE messages SET bytes = ?", (-(2**62) * 2,))
    assert do(engine, Purge("q")) == PurgeStep(2, None)


def test_whoever_looks_sees_the_rest_of_it_and_all_others(tmp_path) -> None:
    engine = SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal")
    for content in ("bad", "good"):
        do(engine, send(content, attributes={"a": "b"}))
    damage(engine)
    unreadable(engine)
    reader = engine.open_reader()
    first, second = reader.peek("q", 9)
    assert (first.content, first.attributes, first.failures) == ("bad", {}, ())
    assert (second.content, second.attributes) == ("good", {"a": "b"})
    assert [each.content for each in reader.browse("q", None, 9)] == ["good", "bad"]
    found = reader.search("q", MessageFilter(attributes={"a": "b"}), None, 9, 9)
    assert [each.content for each in found.messages] == ["good"]
    reader.close()
    engine.close()
