"""Cancelling a message while a consumer has it, and what those hear who wait for withdrawn messages."""

from contextlib import closing

import msgspec
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    AckById,
    Cancel,
    CancelRunning,
    Claim,
    Delete,
    DiscardMessages,
    DropKey,
    Nack,
    Purge,
    Release,
)
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.errors import MessageNotFound
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.storage.engine import CLEANED_UP, EngineSettings, Event
from support.batches import read_events

from .engines import on_sql
from .keyed import offer
from .script import (
    T0,
    configure,
    contents,
    counted,
    do,
    has_no_message,
    look,
    receipts,
    receive,
    receive_one,
    run,
    send,
    send_dead_letter,
    woken_by,
)


def cancel(engine, message_id, queue="q", now=T0):
    return do(engine, CancelRunning(queue, message_id), now)


def withdrawn(engine) -> list[tuple[str, str, str]]:
    """Queue, id and end of the withdrawn messages that are known."""
    return [tuple(each)[1:4] for each in engine.snapshot().withdrawn.entries]


def test_a_message_in_process_is_gone_and_its_receipt_is_void(engine) -> None:
    sent = send(engine)
    _, receipt = receive_one(engine)
    result = run(engine, CancelRunning("q", sent.id))
    assert result.outcomes == [None]
    assert result.events == [Event(CLEANED_UP, "q", 1, "cancelled")]
    assert look(engine, sent.id) is None
    assert counted(engine)["q"] == QueueCounts()
    assert [do(engine, kind("q", (receipt,))) for kind in (Ack, Nack, Release)] == [(False,)] * 3
    assert withdrawn(engine) == [("q", sent.id, "cancelled")]
    assert isinstance(cancel(engine, sent.id), MessageNotFound)


@pytest.mark.parametrize("options", [{}, {"process_after": T0 + 50}], ids=["ready", "delayed"])
def test_a_message_that_waits_goes_as_well_and_was_nobodys(engine, options) -> None:
    sent = send(engine, **options)
    assert cancel(engine, sent.id) is None
    assert counted(engine)["q"] == QueueCounts()
    assert has_no_message(engine, now=T0 + 50)
    assert withdrawn(engine) == []


def test_a_dead_letter_in_process_goes_too(engine) -> None:
    sent = send_dead_letter(engine)
    receive_one(engine, queue="q-dlq")
    assert cancel(engine, sent.id, queue="q-dlq") is None
    assert withdrawn(engine) == [("q-dlq", sent.id, "cancelled")]


def test_of_another_queue_it_is_not_there(engine) -> None:
    sent = send(engine)
    receive_one(engine)
    assert isinstance(cancel(engine, sent.id, queue="other"), MessageNotFound)
    assert counted(engine)["q"] == QueueCounts(processing=1)


def test_it_makes_place_for_the_next_of_its_group_and_queue(engine) -> None:
    configure(engine, group_in_flight_max=1, in_flight_max=1)
    first = send(engine, "first", group="g")
    send(engine, "second", group="g")
    receive_one(engine)
    assert has_no_message(engine)
    assert woken_by(engine, CancelRunning("q", first.id)) == ["second"]


def test_an_offer_that_waits_behind_it_goes_on(engine) -> None:
    offer(engine, "k", "first")
    delivery, _ = receive_one(engine)
    offer(engine, "k", "second", mode="onceMore")
    assert cancel(engine, delivery.id) is None
    assert contents(receive(engine)) == ["second"]
    assert withdrawn(engine) == [("q", delivery.id, "cancelled")]


def test_the_logs_say_that_it_was_cancelled(make_engine) -> None:
    engine = make_engine(EngineSettings(history=True, events=True))
    sent = send(engine)
    receive_one(engine)
    assert cancel(engine, sent.id, now=T0 + 7) is None
    with closing(engine.open_reader()) as reader:
        events = read_events(reader)
        (line,) = reader.log_lines("history", 0, None, 10, None).lines.splitlines()
    assert [(each["kind"], each["attempt"]) for each in events][-1] == ("cancelled", 1)
    finished = msgspec.json.decode(line)
    assert (finished["outcome"], finished["attempts"], finished["finishedAt"]) == ("cancelled", 1, T0 + 7)


def test_in_one_batch_the_ack_is_first(engine) -> None:
    sent = send(engine)
    _, receipt = receive_one(engine)
    acked, cancelled = run(engine, Ack("q", (receipt,)), CancelRunning("q", sent.id)).outcomes
    assert (acked, type(cancelled)) == ((True,), MessageNotFound)
    assert withdrawn(engine) == []


def test_of_two_in_a_batch_the_first_does_it_before_any_claim(engine) -> None:
    sent = send(engine)
    claimed, first, second, third = run(
        engine,
        Claim("q", 1, None),
        Cancel("q", sent.id),
        CancelRunning("q", sent.id),
        CancelRunning("q", sent.id),
    ).outcomes
    assert (claimed, first, type(second), type(third)) == ((), None, MessageNotFound, MessageNotFound)


@pytest.mark.parametrize("content", ["x", "grüße" * 100])
def test_the_bytes_are_given_back(engine, content) -> None:
    sent = send(engine, content, attributes={"key": "value"})
    receive_one(engine)
    assert cancel(engine, sent.id) is None
    assert engine.snapshot().counts["q"].bytes == 0


# What else is withdrawn


def test_what_is_purged_or_dropped_in_process_is_withdrawn(engine) -> None:
    purged, waits = send(engine), send(engine)
    receive_one(engine)
    do(engine, Purge("q"))
    offer(engine, "k", queue="r")
    dropped, _ = receive_one(engine, queue="r")
    assert do(engine, DropKey("r", "k", "")) is True
    assert withdrawn(engine) == [("q", purged.id, "deleted"), ("r", dropped.id, "deleted")]
    assert look(engine, waits.id) is None


def test_what_its_consumer_settles_is_not(engine) -> None:
    for _ in range(5):
        send(engine)
    deliveries = receive(engine, 5)
    each = receipts(deliveries)
    do(engine, Ack("q", each[:1]))
    do(engine, Nack("q", each[1:2]))
    do(engine, Release("q", each[2:3]))
    do(engine, DiscardMessages("q", each[3:4], "no use"))
    do(engine, AckById("q", deliveries[4].id))
    assert withdrawn(engine) == []


def test_what_nobody_has_any_more_is_not(engine) -> None:
    """The lease has ended: its consumer knows that by himself."""
    sent = send(engine)
    receive_one(engine, lease_ms=10)
    run(engine, now=T0 + 10)
    assert cancel(engine, sent.id, now=T0 + 11) is None
    assert do(engine, Delete("q", (send(engine, now=T0 + 11).id,)), T0 + 12) == (True,)
    assert withdrawn(engine) == []


def test_while_a_consumer_has_it_it_neither_expires_nor_is_evicted(engine) -> None:
    configure(engine, max_messages=2, overflow=Overflow.DROP_OLDEST)
    held = send(engine, "held", ttl_ms=10)
    receive_one(engine, lease_ms=1_000)
    evicted = send(engine, "evicted", now=T0 + 20)
    send(engine, "last", now=T0 + 20)
    assert look(engine, held.id).status == "processing"
    assert look(engine, evicted.id) is None
    assert withdrawn(engine) == []


def test_each_batch_has_a_position_of_its_own_also_if_the_clock_is_set_back(engine) -> None:
    for now in (T0 + 5, T0 + 5, T0):
        sent = [send(engine, now=T0), send(engine, now=T0)]
        receive(engine, 2, now=T0)
        run(engine, *[CancelRunning("q", each.id) for each in sent], now=now)
    positions = [each.position for each in engine.snapshot().withdrawn.entries]
    assert positions == [T0 + 5, T0 + 5, T0 + 6, T0 + 6, T0 + 7, T0 + 7]


@on_sql
def test_of_very_many_in_a_batch_none_is_named(engine, monkeypatch) -> None:
    monkeypatch.setattr(limits, "WITHDRAWALS_NAMED_MAX", 2)
    first = [send(engine, queue="few").id for _ in range(2)]
    for _ in range(3):
        send(engine, queue="many")
    receive(engine, 2, queue="few")
    receive(engine, 3, queue="many")
    run(engine, *[CancelRunning("few", each) for each in first], Purge("many"))
    found = withdrawn(engine)
    assert sorted(found[:2]) == sorted(("few", each, "cancelled") for each in first)
    assert found[2:] == [("many", "", "deleted")]


def test_who_has_it_is_told_the_reason(engine) -> None:
    first, second, waits = (send(engine) for _ in range(3))
    receive(engine, 2)
    run(
        engine,
        CancelRunning("q", first.id, "no größe"),
        CancelRunning("q", second.id),
        CancelRunning("q", waits.id, "nobody hears it"),
    )
    found = {each.message_id: each.reason for each in engine.snapshot().withdrawn.entries}
    assert found == {first.id: "no größe", second.id: ""}


def test_the_history_has_the_reason_as_last_error(make_engine) -> None:
    engine = make_engine(EngineSettings(history=True))
    sent = [send(engine) for _ in range(3)]
    first, second = receipts(receive(engine, 2))
    do(engine, Nack("q", (first, second), 60_000, "no line"))
    reasons = "no größe", "", "late"
    run(engine, *[CancelRunning("q", each.id, reason) for each, reason in zip(sent, reasons, strict=True)])
    with closing(engine.open_reader()) as reader:
        finished = reader.find_finished("q", MessageFilter(), None, None, 100, 1_000).messages
    found = {each.id: (each.outcome, each.last_error) for each in finished}
    errors = "no größe", "no line", "late"
    assert found == {each.id: ("cancelled", error) for each, error in zip(sent, errors, strict=True)}


def test_of_a_command_that_fails_nothing_is_told(engine) -> None:
    sent = send(engine)
    receive_one(engine)
    before = engine.snapshot().withdrawn
    assert isinstance(cancel(engine, "00000000-0000-7000-8000-000000000000"), MessageNotFound)
    assert engine.snapshot().withdrawn == before
    assert cancel(engine, sent.id) is None
    assert withdrawn(engine) == [("q", sent.id, "cancelled")]
