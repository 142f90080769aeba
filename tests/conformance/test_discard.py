"""Messages that their consumer discards: gone for good, with the reason in the history, and no dead letters."""

from contextlib import closing

import pytest

from forq_trio.model.commands import Ack, DiscardMessages, Nack, OfferMany
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.keys.types import Offering
from forq_trio.model.messages.types import QueueCounts
from forq_trio.storage.engine import CLEANED_UP, EngineSettings, Event

from .script import T0, ack, do, drain, nack, receipts, receive, receive_one, run, send


@pytest.fixture
def engine(make_engine):
    return make_engine(EngineSettings(history=True, events=True))


def finished(engine, queue="q"):
    """The finished messages of a queue, newest first."""
    with closing(engine.open_reader()) as reader:
        return reader.find_finished(queue, MessageFilter(), None, None, 100, 1_000).messages


def test_a_discarded_message_is_gone_and_kept_with_its_reason(engine):
    sent = send(engine, "x", attributes={"k": "ö"})
    _, receipt = receive_one(engine)
    result = run(engine, DiscardMessages("q", (receipt,), "größe fehlt"), now=T0 + 3)
    assert result.outcomes == [(True,)]
    assert result.events == [Event(CLEANED_UP, "q", 1, "consumer")]
    assert not result.durations
    assert engine.snapshot().counts["q"] == QueueCounts()
    assert not engine.snapshot().counts.get("q-dlq", QueueCounts()).total
    (kept,) = finished(engine)
    assert (kept.id, kept.content, kept.attributes) == (sent.id, "x", {"k": "ö"})
    assert (kept.outcome, kept.reason, kept.last_error) == ("discarded", "consumer", "größe fehlt")
    assert (kept.finished_at, kept.attempts) == (T0 + 3, 1)


def test_it_counts_as_deleted_among_the_events(engine):
    send(engine)
    _, receipt = receive_one(engine)
    do(engine, DiscardMessages("q", (receipt,), "no"))
    with closing(engine.open_reader()) as reader:
        lines = reader.log_lines("events", 0, None, 10, "q").lines.splitlines()
    assert b'"deleted"' in lines[-1]
    assert b'"consumer"' in lines[-1]


def test_several_with_reasons_of_their_own_end_in_order(engine):
    for content in "abcd":
        send(engine, content)
    a, b, c, d = receipts(receive(engine, 4))
    result = run(engine, DiscardMessages("q", (a, d), "one"), DiscardMessages("q", (b, a, c), "two"))
    assert result.outcomes == [(True, True), (True, False, True)]
    found = [(each.content, each.last_error) for each in reversed(finished(engine))]
    assert found == [("a", "one"), ("d", "one"), ("b", "two"), ("c", "two")]


@pytest.mark.parametrize(
    "late",
    [
        lambda receipt: Ack("q", (receipt,)),
        lambda receipt: Nack("q", (receipt,), reason="late"),
        lambda receipt: Nack("q", (receipt,), reason="late", final=True),
        lambda receipt: DiscardMessages("q", (receipt,), "late"),
    ],
)
def test_after_the_next_claim_nothing_of_the_last_holder_changes_anything(engine, late):
    send(engine)
    _, stale = receive_one(engine, lease_ms=10)
    _, current = receive_one(engine, now=T0 + 10)
    assert do(engine, late(stale), now=T0 + 11) == (False,)
    assert finished(engine) == []
    assert ack(engine, current, now=T0 + 12)
    assert do(engine, late(current), now=T0 + 13) == (False,)
    (kept,) = finished(engine)
    assert (kept.outcome, kept.last_error) == ("acked", None)


def test_a_success_after_failures_can_be_told_from_a_failure(engine):
    for content in ("succeeds", "is discarded"):
        send(engine, content)
        _, receipt = receive_one(engine)
        assert nack(engine, receipt, 0, reason="broke")
        _, receipt = receive_one(engine)
        settle = (
            Ack("q", (receipt,)) if content == "succeeds" else DiscardMessages("q", (receipt,), "gave up")
        )
        assert do(engine, settle) == (True,)
    discarded, acked = finished(engine)
    assert (acked.outcome, acked.reason, acked.last_error) == ("acked", None, "broke")
    assert (discarded.outcome, discarded.reason) == ("discarded", "consumer")
    assert discarded.last_error == "gave up"
    assert (
        [each.reason for each in discarded.failures] == [each.reason for each in acked.failures] == ["broke"]
    )


def test_without_a_history_it_is_just_gone(make_engine):
    engine = make_engine(EngineSettings())
    send(engine)
    _, receipt = receive_one(engine)
    assert do(engine, DiscardMessages("q", (receipt,), "no")) == (True,)
    assert finished(engine) == []
    assert drain(engine) == []


def test_an_offer_that_waits_behind_it_goes_on(engine):
    do(engine, OfferMany("q", (Offering(key="k", content="first"),)))
    _, receipt = receive_one(engine)
    do(engine, OfferMany("q", (Offering(key="k", content="again", mode="onceMore"),)))
    assert do(engine, DiscardMessages("q", (receipt,), "no")) == (True,)
    assert drain(engine) == ["again"]
