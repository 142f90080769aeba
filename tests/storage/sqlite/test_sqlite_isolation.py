"""One bad command in a batch fails alone; a database in trouble fails the batch whole, and nothing of it stays."""

import apsw
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    Claim,
    Configure,
    Extend,
    LeaseMessages,
    Nack,
    OpenConsumer,
    Resubmit,
    SettleLease,
    Sweep,
    SweepKind,
)
from forq_trio.model.consumers.types import Settling
from forq_trio.model.errors import (
    CommandRefused,
    ConsumerFenced,
    ConsumerNotFound,
    LeaseOutOfOrder,
    LeasesFull,
    Overloaded,
    QueueFull,
    StorageUnavailable,
    TooManyConsumers,
)
from forq_trio.model.messages.types import QueueCounts, Receipt
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import DEFERRED, Batch
from support.actors import T0
from support.batches import do, run
from support.words import ack, claim, contents, nack, receipts, send

TOO_LARGE = 2**63


@pytest.mark.parametrize(
    "bad",
    [
        send("x", queue="\ud800"),
        send("x", deduplication_id="\ud800"),
        send("x", process_after=TOO_LARGE),
        send("x", priority=TOO_LARGE),
    ],
    ids=["queue", "deduplication id", "due time", "priority"],
)
def test_a_bad_send_fails_alone(engine, bad) -> None:
    before, refused, after = run(engine, send("before"), bad, send("after")).outcomes
    assert isinstance(refused, CommandRefused)
    assert {before.sequence, after.sequence} == {1, 2}
    assert sorted(contents(do(engine, claim(most=9)))) == ["after", "before"]
    assert engine.snapshot().counts == {"q": QueueCounts(processing=2, bytes=11)}


def test_refused_commands_of_consumers_do_not_make_their_batch_run_again(engine, monkeypatch) -> None:
    """Who asks again and again for what is refused would make every batch of others cost twice."""
    monkeypatch.setattr(limits, "CONSUMERS_MAX", 1)
    begun: list[str] = []
    engine._database.connection.trace_v2(
        apsw.SQLITE_TRACE_STMT,
        lambda event: begun.append(event["sql"]) if event["sql"].startswith("BEGIN") else None,
    )
    do(engine, send("x"))
    generation = do(engine, OpenConsumer("q", "k", None)).generation
    begun.clear()
    fenced, gone = generation - 1, LeaseMessages("q", "nobody", 1, 1, 1, 10**6)
    outcomes = run(
        engine,
        send("before"),
        OpenConsumer("q", "one more", None),
        LeaseMessages("q", "k", fenced, 1, 1, 10**6),
        LeaseMessages("q", "k", generation, 7, 1, 10**6),
        gone,
        SettleLease("q", "k", fenced, 1, Settling.ACKNOWLEDGE),
        SettleLease("q", "k", generation, 7, Settling.ACKNOWLEDGE),
        LeaseMessages("q", "k", generation, 1, 1, 10**6),
    ).outcomes
    refused = (
        TooManyConsumers,
        ConsumerFenced,
        LeaseOutOfOrder,
        ConsumerNotFound,
        ConsumerFenced,
        LeaseOutOfOrder,
    )
    assert tuple(map(type, outcomes[1:7])) == refused
    assert outcomes[7].open is not None
    assert len(begun) == 1
    monkeypatch.setattr(limits, "CONSUMER_PAGES_BYTES_MAX", 0)
    monkeypatch.setattr(limits, "CONSUMER_PAGES_BYTES_A_KEY_MAX", 0)
    assert do(engine, SettleLease("q", "k", generation, 1, Settling.ACKNOWLEDGE)).acknowledged == 1
    following = LeaseMessages("q", "k", generation, 2, 1, 10**6)
    assert do(engine, following) is DEFERRED  # the pages of lease 1 are deleted first
    begun.clear()
    assert isinstance(do(engine, following), LeasesFull)
    assert len(begun) == 1


def test_a_bad_settlement_fails_alone(engine) -> None:
    for number in range(4):
        do(engine, send(str(number)))
    first, second, third, fourth = do(engine, claim(most=4))
    outcomes = run(
        engine,
        nack(first, delay_ms=TOO_LARGE),
        Extend("q", receipts([second]), TOO_LARGE),
        Nack("q", receipts([third]), 0, "\ud800"),
        ack(fourth),
    ).outcomes
    assert [type(outcome) for outcome in outcomes[:3]] == [CommandRefused] * 3
    assert outcomes[3] == (True,)
    assert engine.snapshot().counts == {"q": QueueCounts(processing=3, bytes=3)}
    assert do(engine, ack(first, second, third)) == (True, True, True)


def test_a_claim_beyond_64_bits_fails_alone(engine) -> None:
    do(engine, send())
    refused, good = run(engine, Claim("q", 1, TOO_LARGE), claim(queue="other")).outcomes
    assert isinstance(refused, CommandRefused)
    assert good == ()
    assert len(do(engine, claim())) == 1


def test_a_parked_claim_beyond_64_bits_does_not_stop_the_queue(engine) -> None:
    result = run(engine, send(), parked={"q": [Claim("q", 1, TOO_LARGE), claim()]})
    assert result.outcomes[0].sequence == 1
    assert [place for place, _ in result.served.get("q", [])] in ([], [1])


def test_a_receipt_beyond_64_bits_names_nothing(engine) -> None:
    do(engine, send())
    (delivery,) = do(engine, claim())
    strange = Ack("q", (Receipt(2**70, 2**70),))
    outcomes = run(engine, strange, ack(delivery)).outcomes
    assert outcomes == [(False,), (True,)]


def test_a_database_in_trouble_fails_the_batch_whole(engine, tmp_path) -> None:
    """Somebody else holds the write lock: refused after the busy wait, nothing changed, and it works again."""
    do(engine, send("before"))
    engine._database.connection.set_busy_timeout(1)
    intruder = apsw.Connection(str(tmp_path / "forq.db"))
    intruder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable):
        engine.execute_batch(Batch([send("refused")], T0))
    intruder.execute("ROLLBACK")
    intruder.close()
    assert do(engine, send("after")).sequence == 2
    assert contents(do(engine, claim(most=9))) == ["before", "after"]


def test_a_full_database_fails_the_batch_and_goes_on_when_there_is_room(engine) -> None:
    do(engine, send())
    full = engine._database.connection.pragma("max_page_count", 1)
    with pytest.raises(StorageUnavailable):
        engine.execute_batch(Batch([send("x" * 200_000)], T0))
    assert engine.snapshot().counts == {"q": QueueCounts(ready=1, bytes=1)}
    assert len(do(engine, claim())) == 1
    engine._database.connection.pragma("max_page_count", full * 1_000)
    assert do(engine, send("x" * 200_000)).sequence == 2


def test_queues_of_one_batch_count_once_towards_the_bound(engine, monkeypatch) -> None:
    monkeypatch.setattr(limits, "QUEUES_MAX", 3)
    do(engine, send(queue="a"))
    do(engine, send(queue="b"))
    outcomes = run(engine, send(queue="a"), send(queue="b"), send(queue="c"), send(queue="d")).outcomes
    assert [isinstance(outcome, Overloaded) for outcome in outcomes] == [False, False, False, True]


def test_a_sweep_forgets_all_deduplication_ids_whose_window_is_over(engine, monkeypatch) -> None:
    """However fast they come in: the sweep says that there is more until they are gone."""
    monkeypatch.setattr(limits, "SWEEP_BATCH_MAX", 10)
    for number in range(35):
        do(engine, send(deduplication_id=str(number), deduplication_window_ms=1_000))
    sweeps = 1
    while do(engine, Sweep(SweepKind.EXPIRED), T0 + 1_000).more:
        sweeps += 1
    assert sweeps == 4
    assert engine._database.connection.execute("SELECT count(*) FROM dedup").get == 0


def test_a_copy_that_is_refused_does_not_have_its_batch_run_again(engine) -> None:
    """Otherwise one client with a full queue makes every batch cost twice."""
    produced = do(engine, send("original", ttl_ms=1))
    do(engine, Sweep(SweepKind.EXPIRED), T0 + 5)
    do(engine, Configure("full", SettingsChange(max_messages=1)))
    do(engine, send(queue="full"))
    rolled_back: list[str] = []
    engine._database.connection.set_rollback_hook(lambda: rolled_back.append("rolled back"))
    copy = Resubmit("q-dlq", produced.id, target="full", remove=True)
    refused, sent = run(engine, copy, send("other")).outcomes
    engine._database.connection.set_rollback_hook(None)
    assert isinstance(refused, QueueFull)
    assert (sent.sequence, rolled_back) == (3, [])
    assert engine.snapshot().counts["q-dlq"].ready == 1
