"""Every member of a message, and every argument of a receive, at its bounds and just past them."""

from typing import Any

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import RedrivePolicy
from forq_trio.model.errors import (
    CallerError,
    InvalidAttributes,
    InvalidContent,
    InvalidQueueName,
    OutOfRange,
    QueueFull,
)
from forq_trio.model.member_names import json_name
from forq_trio.model.messages.new_message import NewMessage
from support.actors import T0

RANGES = [
    ("priority", limits.PRIORITY_MIN, limits.PRIORITY_MAX),
    ("delay_ms", 0, limits.DELAY_MS_MAX),
    ("ttl_ms", 1, limits.TTL_MS_MAX),
    ("max_attempts", 1, limits.MAX_ATTEMPTS_MAX),
    ("deduplication_window_ms", 1, limits.DEDUPLICATION_WINDOW_MS_MAX),
]
TEXTS = [("group", limits.GROUP_LENGTH_MAX), ("deduplication_id", limits.DEDUPLICATION_ID_LENGTH_MAX)]
KEY = limits.ATTRIBUTE_KEY_LENGTH_MAX
VALUE = limits.ATTRIBUTE_VALUE_LENGTH_MAX


async def refused_every_way(broker, error: type[CallerError], **member: Any) -> CallerError:
    """Each way of sending refuses the message, and nothing is stored; returns the error."""
    before = broker.known.counts()
    message = NewMessage("x", **member)
    with pytest.raises(error) as refusal:
        await broker.produce("q", "x", **member)
    with pytest.raises(error):
        await broker.produce_message("q", message)
    assert [type(result) for result in await broker.produce_many("q", [message])] == [error]
    assert [type(result) for result in await broker.produce_across([("q", message)])] == [error]
    assert broker.known.counts() == before
    return refusal.value


async def test_ranges(broker) -> None:
    for name, low, high in RANGES:
        for value in (low, low + 1, high - 1, high):
            await broker.produce("q", "x", **{name: value})
        for value in (low - 1, high + 1, -(2**63), 2**63):
            error = await refused_every_way(broker, OutOfRange, **{name: value})
            assert (error.field, error.member) == (name, json_name(name))
            assert str(error) == f"{name} must be between {low} and {high}, not {value}"


async def test_lengths(broker) -> None:
    for name, longest in TEXTS:
        for text in ("x", "x" * (longest - 1), "😀" * longest):
            await broker.produce("q", "x", **{name: text})
        for text in ("", "x" * (longest + 1)):
            error = await refused_every_way(broker, OutOfRange, **{name: text})
            assert (error.field, error.member) == (name, json_name(name))
            assert str(error) == f"{name} has 1 to {longest} characters, not {len(text)}"
        await refused_every_way(broker, InvalidContent, **{name: "\ud800"})


async def test_attributes(broker) -> None:
    for attributes in (
        {},
        {"k": ""},
        {"k" * KEY: "v" * VALUE},
        {"ü" * KEY: "😀" * VALUE},
        {str(number): "v" for number in range(limits.ATTRIBUTES_MAX)},
    ):
        await broker.produce("q", "x", attributes=attributes)
        (delivery,) = await broker.receive("q", wait_ms=0)
        assert (delivery.attributes or {}) == attributes


async def test_attributes_that_are_too_much(broker) -> None:
    for attributes in (
        {"": "v"},
        {"k" * (KEY + 1): "v"},
        {"k": "v" * (VALUE + 1)},
        {str(number): "v" for number in range(limits.ATTRIBUTES_MAX + 1)},
    ):
        await refused_every_way(broker, InvalidAttributes, attributes=attributes)


async def test_attributes_that_utf_8_cannot_carry(broker) -> None:
    for attributes in ({"\ud800": "v"}, {"k": "\ud800"}):
        await refused_every_way(broker, InvalidContent, attributes=attributes)


async def test_dead_letter_queues(broker) -> None:
    for name in ("", "x" * 64, "other-dlq"):
        await broker.produce("q", "x", dead_letter_queue=name)
    for name in (" ", "x" * 65, "a/b"):
        error = await refused_every_way(broker, InvalidQueueName, dead_letter_queue=name)
        assert (error.field, error.code) == ("dead_letter_queue", "bad_request.body.deadLetterQueue.invalid")


async def test_two_due_times(broker) -> None:
    error = await refused_every_way(broker, OutOfRange, process_after=T0, delay_ms=0)
    assert str(error) == "process_after and a delay exclude each other"


async def test_poison(broker) -> None:
    await broker.produce("q", "x")
    for attempts in (0, limits.MAX_ATTEMPTS_MAX + 1):
        with pytest.raises(OutOfRange):
            await broker.receive("q", redrive_policy=RedrivePolicy(attempts), wait_ms=0)
    with pytest.raises(InvalidQueueName):
        await broker.receive("q", redrive_policy=RedrivePolicy(1, "no name"), wait_ms=0)
    for attempts in (1, limits.MAX_ATTEMPTS_MAX):
        (delivery,) = await broker.receive(
            "q", redrive_policy=RedrivePolicy(attempts, "elsewhere"), wait_ms=0
        )
        await broker.release("q", [delivery.receipt])


async def test_looks(broker) -> None:
    await broker.produce("q", "x")
    for wait_ms in (0, limits.WAIT_MS_MAX):
        assert len(await broker.peek("q", wait_ms=wait_ms)) == 1
    for wait_ms in (-1, limits.WAIT_MS_MAX + 1):
        with pytest.raises(OutOfRange, match="wait_ms"):
            await broker.peek("q", wait_ms=wait_ms)
    for limit in (0, limits.BROWSE_PAGE_MAX + 1):
        with pytest.raises(OutOfRange, match="limit"):
            await broker.peek("q", limit=limit, shuffle=True)


async def test_messages_of_several_queues_are_judged_alone(broker) -> None:
    """Dead-letter queues take them, too; and a queue that is full refuses its own only."""
    await broker.configure("full", max_messages=1)
    message = NewMessage("x")
    sent = [("q", message), ("q-dlq", message), ("no name", message), ("full", message), ("full", message)]
    results = await broker.produce_across(sent, messages_max=limits.QUEUE_MESSAGES_MAX)
    kinds = [type(result).__name__ for result in results]
    assert kinds == ["Produced", "Produced", "InvalidQueueName", "Produced", QueueFull.__name__]
    again = await broker.produce_across([("q", message), ("other", message)], messages_max=1)
    assert [type(result).__name__ for result in again] == ["QueueFull", "Produced"]
    assert await broker.produce_across([]) == []
    with pytest.raises(OutOfRange):
        await broker.produce_across([("q", message)] * (limits.PRODUCE_BATCH_MAX + 1))
