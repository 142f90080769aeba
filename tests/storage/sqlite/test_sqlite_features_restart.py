"""What of settings, groups, bounds and tokens survives a restart, and what the file keeps of them."""

from collections.abc import Iterator
from contextlib import closing

import apsw
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Claim,
    Configure,
    Extend,
    ForgetQueue,
    Nack,
    NameQueues,
    Pause,
    ProduceMany,
    RedrivePolicy,
    Sweep,
    SweepKind,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Failure, QueueCounts
from forq_trio.model.queues.settings import QueueSettings, SettingsChange
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import check_file
from support.actors import T0
from support.batches import do, run
from support.words import ack, claim, contents, receipts, send


class Restarts:
    """An engine that can be closed and opened again."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.engine = SqliteEngine(path, EngineSettings(), "normal")

    def restart(self) -> SqliteEngine:
        self.engine.close()
        self.engine = SqliteEngine(self.path, EngineSettings(), "normal")
        return self.engine

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        with closing(apsw.Connection(self.path)) as connection:
            return connection.execute(statement).fetchall()


@pytest.fixture
def place(tmp_path) -> Iterator[Restarts]:
    restarts = Restarts(str(tmp_path / "forq.db"))
    yield restarts
    restarts.engine.close()


def contents_in_order(engine: SqliteEngine, queue: str = "q") -> list[str]:
    return [contents(do(engine, claim(queue=queue)))[0] for _ in range(engine.snapshot().counts[queue].ready)]


def test_a_queue_without_settings_leaves_no_trace(place) -> None:
    engine = place.engine
    do(engine, Configure("q", SettingsChange(lease_ms=1)))
    do(engine, Pause("p", True))
    assert place.rows("SELECT queue FROM queues ORDER BY queue") == [("p",), ("q",)]
    do(engine, Configure("q", None))
    do(engine, Pause("p", False))
    assert place.rows("SELECT * FROM queues") == []
    assert place.rows("SELECT * FROM queue_counts") == []
    assert engine.snapshot().settings == {}


def test_a_forgotten_queue_is_gone_from_the_file(place) -> None:
    engine = place.engine
    do(engine, Configure("q", SettingsChange(lease_ms=1)))
    do(engine, send(group="g"))
    assert do(engine, ForgetQueue("q")) is False
    do(engine, ack(*do(engine, claim())))
    assert do(engine, ForgetQueue("q")) is True
    assert engine.snapshot().counts == engine.snapshot().settings == {}
    assert place.rows("SELECT queue FROM queue_counts UNION ALL SELECT queue FROM queues") == []
    do(engine, send("later"))
    assert place.restart().snapshot().counts == {"q": QueueCounts(ready=1, bytes=5)}
    assert place.rows("SELECT group_id FROM messages") == [(None,)]


def test_a_dead_letter_queue_counts_for_the_same_token_after_a_restart(place) -> None:
    do(place.engine, NameQueues(("q",), "narrow"))
    do(place.engine, send(ttl_ms=1))
    do(place.engine, Sweep(SweepKind.EXPIRED), now_ms=T0 + 1)
    engine = place.restart()
    assert engine.snapshot().queue_names == ["q", "q-dlq"]
    assert engine.snapshot().queues_made == {"narrow": 2}


def test_a_queue_that_exists_is_not_written_where_a_message_names_it(place) -> None:
    do(place.engine, NameQueues(("dead",), ""))
    written = "SELECT * FROM queue_counts WHERE queue = 'dead'"
    before = place.rows(written)
    do(place.engine, ProduceMany("q", (NewMessage("x", dead_letter_queue="dead"),)), now_ms=T0 + 1)
    assert place.rows(written) == before
    assert place.engine.snapshot().counts["q"].ready == 1


def test_a_failed_commit_of_settings_leaves_the_old_ones(place) -> None:
    """What is kept in memory follows the file, not the wish."""
    engine = place.engine
    do(engine, Configure("q", SettingsChange(lease_ms=1)))
    full = engine._database.connection.pragma("max_page_count", 1)
    with pytest.raises(Exception, match="full"):
        run(engine, Configure("q", SettingsChange(lease_ms=2)), send("x" * 200_000))
    engine._database.connection.pragma("max_page_count", full * 1_000)
    assert engine.snapshot().settings == {"q": QueueSettings(lease_ms=1)}
    assert engine.snapshot().rules("q").lease_ms == 1


def test_turns_go_on_with_the_first_ready_message(place) -> None:
    """Which round was reached is not in the file: after a start it is where the first ready message stands."""
    noisy = tuple(NewMessage(f"a{n}", group="a") for n in range(6))
    do(place.engine, ProduceMany("q", noisy))
    assert [contents_of(place.engine) for _ in range(2)] == ["a0", "a1"]
    again = place.restart()
    do(again, send("b0", group="b"))
    do(again, send("plain"))
    assert contents_in_order(again) == ["a2", "b0", "plain", "a3", "a4", "a5"]


def contents_of(engine: SqliteEngine) -> str:
    (delivery,) = do(engine, claim())
    return str(delivery.content)


def test_held_messages_stay_held_and_come_back(place) -> None:
    engine = place.engine
    do(engine, Configure("q", SettingsChange(group_in_flight_max=1)))
    do(engine, ProduceMany("q", tuple(NewMessage(f"a{n}", group="a") for n in range(3))))
    deliveries = do(engine, claim(most=3))
    assert contents(deliveries) == ["a0"]
    again = place.restart()
    assert again.snapshot().counts["q"] == QueueCounts(processing=1, held=2, bytes=6)
    assert do(again, claim()) == ()
    do(again, ack(*deliveries))
    assert contents(do(again, claim(most=3))) == ["a1"]
    assert check_file(place.path).problems == []


def test_room_made_just_before_a_crash_is_used_after_it(place) -> None:
    """The claim removes what was ready of the group; the held one comes with the next batch, which is not to be."""
    engine = place.engine
    do(engine, Configure("q", SettingsChange(group_in_flight_max=1)))
    do(engine, ProduceMany("q", tuple(NewMessage(f"a{n}", group="a") for n in range(3))))
    do(engine, Extend("q", receipts(do(engine, claim(most=3))), 0))
    assert do(engine, Claim("q", 3, 1_000, redrive_policy=RedrivePolicy(0))) == ()
    assert engine.snapshot().counts["q"] == QueueCounts(held=1, bytes=2)
    again = place.restart()
    assert contents(do(again, claim(most=3))) == ["a2"]


@pytest.mark.parametrize("bound", [None, 2], ids=["taken away", "changed"])
def test_letting_go_in_parts_goes_on_after_a_restart(place, monkeypatch, bound) -> None:
    """A changed bound lets all held messages go, a few a batch: also when the process ends in between."""
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 2)
    engine = place.engine
    do(engine, Configure("q", SettingsChange(group_in_flight_max=1)))
    do(engine, ProduceMany("q", tuple(NewMessage(f"a{n}", group="a") for n in range(8))))
    do(engine, claim(most=8))
    result = run(engine, Configure("q", SettingsChange(group_in_flight_max=bound)))
    assert (engine.snapshot().counts["q"].held, result.next_due_ms) == (5, T0)
    again = place.restart()
    assert (run(again).next_due_ms, again.snapshot().counts["q"].held) == (T0, 3)
    assert (run(again).next_due_ms, again.snapshot().counts["q"].held) == (T0, 1)
    last = run(again)
    assert again.snapshot().counts["q"].held == 0
    assert last.next_due_ms > T0
    assert place.rows("SELECT letting_go FROM queue_counts") == [(None,)]


@pytest.mark.usefixtures("failed_stay")
def test_what_a_message_says_of_itself_and_what_it_went_through_survive(place) -> None:
    engine = place.engine
    do(
        engine,
        send(max_attempts=1, attributes={"k": "v"}, group="g", dead_letter_queue="other", ttl_ms=60_000),
    )
    do(engine, Nack("q", receipts(do(engine, claim())), reason="broke"))
    do(engine, Sweep(SweepKind.FAILED), T0 + 1)
    with closing(place.restart().open_reader()) as reader:
        (dead,) = reader.browse("other", None, 9)
    assert (dead.attributes, dead.group, dead.max_attempts, dead.ttl_ms) == ({"k": "v"}, "g", 1, 60_000)
    assert (dead.source_queue, dead.source_attempts, dead.dead_lettered_at) == ("q", 1, T0 + 1)
    assert (dead.failure_reason, dead.last_error) == ("max_attempts_reached", "broke")
    assert dead.failures == (Failure(1, T0, "broke"),)
    assert (dead.dead_letter_queue, dead.first_received_at, dead.bytes) == (None, T0, 3)
