"""Every argument at its bounds and just past them. What is refused changes nothing."""

import pytest

from forq_trio.model import limits
from forq_trio.model.errors import (
    CallerError,
    ContentTooLarge,
    InvalidContent,
    InvalidQueueName,
    MalformedMessageId,
    MalformedReceipt,
    OutOfRange,
    ProcessAfterInPast,
    ProcessAfterTooFar,
    ProduceToDeadLetterQueue,
)
from forq_trio.model.messages.new_message import NewMessage
from support.actors import T0
from support.results import oks

ID = "01890a5d-ac96-774b-bcce-b302099a8057"
GRACE_MS = limits.PROCESS_AFTER_GRACE_MS
AHEAD_MS = limits.PROCESS_AFTER_AHEAD_MS_MAX


async def refused(call, error: type[CallerError]) -> str:
    with pytest.raises(error) as refusal:
        await call
    assert type(refusal.value) is error
    return str(refusal.value)


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "x" * 64, "...", "a-dlq-b"])
async def test_f2_queue_names_that_are_good(broker, name) -> None:
    assert (await broker.produce(name, "x")).sequence == 1


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "a/b", "ä", "a\n", "\ud800", "a%20"])
async def test_f2_queue_names_that_are_not(broker, name) -> None:
    await refused(broker.produce(name, "x"), InvalidQueueName)
    await refused(broker.receive(name, wait_ms=0), InvalidQueueName)
    await refused(broker.ack(name, [ID]), InvalidQueueName)
    await refused(broker.queue_stats(name), InvalidQueueName)
    await refused(broker.peek(name), InvalidQueueName)
    await refused(broker.lists.search(name), InvalidQueueName)
    await refused(broker.message(name, ID), InvalidQueueName)
    await refused(broker.ack_message(name, ID, None), InvalidQueueName)
    assert broker.known.counts() == {}


async def test_f2_nobody_sends_to_a_dead_letter_queue(broker) -> None:
    await refused(broker.produce("a-dlq", "x"), ProduceToDeadLetterQueue)
    await refused(broker.produce_many("a-dlq", [NewMessage("x")]), ProduceToDeadLetterQueue)
    assert await broker.receive("a-dlq", wait_ms=0) == []


@pytest.mark.parametrize(("letter", "size"), [("x", 1), ("ü", 2), ("€", 3), ("😀", 4)])
async def test_f1_content_is_bounded_in_bytes(broker, letter, size) -> None:
    most = letter * (limits.CONTENT_BYTES_MAX // size)
    rest = "x" * (limits.CONTENT_BYTES_MAX - len(most.encode()))
    await broker.produce("q", most + rest)
    await refused(broker.produce("q", most + rest + "x"), ContentTooLarge)
    (delivery,) = await broker.receive("q", wait_ms=0)
    assert delivery.content == most + rest


@pytest.mark.parametrize(
    "content", ["", "\x00", "a\x00b", "\n", "\u2028", "\uffff", "'; DROP TABLE messages"]
)
async def test_f1_any_text_comes_back_as_it_was(broker, content) -> None:
    await broker.produce("q", content)
    assert (await broker.receive("q", wait_ms=0))[0].content == content


async def test_f1_text_that_utf_8_cannot_carry_is_refused_wherever_it_stands(broker) -> None:
    await refused(broker.produce("q", "\ud800"), InvalidContent)
    await refused(broker.produce("q", "x", deduplication_id="\ud800"), InvalidContent)
    await broker.produce("q", "x")
    (delivery,) = await broker.receive("q", wait_ms=0)
    await refused(broker.nack("q", [delivery.receipt], reason="\udfff"), InvalidContent)
    assert oks(await broker.ack("q", [delivery.receipt])) == [True]


async def test_f1_when_it_is_due(broker) -> None:
    await broker.produce("q", "x", process_after=T0 - GRACE_MS)
    await refused(broker.produce("q", "x", process_after=T0 - GRACE_MS - 1), ProcessAfterInPast)
    await broker.produce("q", "x", process_after=T0 + AHEAD_MS)
    await refused(broker.produce("q", "x", process_after=T0 + AHEAD_MS + 1), ProcessAfterTooFar)


async def test_priority(broker) -> None:
    await broker.produce("q", "low", priority=limits.PRIORITY_MIN)
    await broker.produce("q", "high", priority=limits.PRIORITY_MAX)
    said = await refused(broker.produce("q", "x", priority=limits.PRIORITY_MIN - 1), OutOfRange)
    assert said == "priority must be between 0 and 1000, not -1"
    await refused(broker.produce("q", "x", priority=limits.PRIORITY_MAX + 1), OutOfRange)
    assert [each.content for each in await broker.receive("q", max_messages=2, wait_ms=0)] == ["high", "low"]


async def test_deduplication(broker) -> None:
    longest = "i" * limits.DEDUPLICATION_ID_LENGTH_MAX
    widest = limits.DEDUPLICATION_WINDOW_MS_MAX
    first = await broker.produce("q", "x", deduplication_id=longest, deduplication_window_ms=widest)
    again = await broker.produce("q", "x", deduplication_id=longest, deduplication_window_ms=1)
    assert (again.duplicate, again.sequence) == (True, first.sequence)
    await refused(broker.produce("q", "x", deduplication_id=""), OutOfRange)
    await refused(broker.produce("q", "x", deduplication_id=longest + "i"), OutOfRange)
    for window_ms in (0, widest + 1):
        await refused(
            broker.produce("q", "x", deduplication_id="i", deduplication_window_ms=window_ms), OutOfRange
        )


async def test_batches_of_messages(broker) -> None:
    most = limits.PRODUCE_BATCH_MAX
    assert await broker.produce_many("q", []) == []
    await refused(broker.produce_many("q", [NewMessage("x")] * (most + 1)), OutOfRange)
    assert len(await broker.produce_many("q", [NewMessage("x")] * most)) == most
    stored, refusal = await broker.produce_many("q", [NewMessage("x"), NewMessage("\ud800")])
    assert (stored.sequence, type(refusal)) == (most + 1, InvalidContent)
    for wrong, kind in (([NewMessage("x"), "y"], "str"), ("x", "str"), ([None], "NoneType")):
        with pytest.raises(TypeError, match=f"a message to send is a NewMessage, not {kind}: "):
            await broker.produce_many("q", wrong)
    assert broker.known.counts()["q"].total == most + 1


@pytest.mark.parametrize(
    ("argument", "low", "high"),
    [
        ("max_messages", 1, limits.RECEIVE_BATCH_MAX),
        ("wait_ms", 0, limits.WAIT_MS_MAX),
        ("lease_ms", 0, limits.LEASE_MS_MAX),
    ],
)
async def test_receiving(broker, argument, low, high) -> None:
    for value in (low, high):
        await broker.produce("q", "x")
        assert len(await broker.receive("q", **{argument: value})) >= 1
    for value in (low - 1, high + 1):
        assert argument in await refused(broker.receive("q", **{argument: value}), OutOfRange)


async def test_settling(broker) -> None:
    await broker.produce("q", "x")
    (delivery,) = await broker.receive("q", wait_ms=0)
    receipts = [delivery.receipt]
    longest = "r" * limits.REASON_LENGTH_MAX
    await refused(broker.nack("q", receipts, reason=longest + "r"), OutOfRange)
    for delay_ms in (-1, limits.NACK_DELAY_MS_MAX + 1):
        await refused(broker.nack("q", receipts, delay_ms=delay_ms), OutOfRange)
        await refused(broker.release("q", receipts, delay_ms=delay_ms), OutOfRange)
    for lease_ms in (-1, limits.LEASE_MS_MAX + 1):
        await refused(broker.extend("q", receipts, lease_ms), OutOfRange)
    (extended,) = await broker.extend("q", receipts, limits.LEASE_MS_MAX)
    assert extended.lease_until == T0 + limits.LEASE_MS_MAX
    assert oks(await broker.nack("q", receipts, delay_ms=limits.NACK_DELAY_MS_MAX, reason=longest)) == [True]
    assert (await broker.message("q", delivery.id)).last_error == longest


async def test_numbers_of_receipts(broker) -> None:
    most = limits.RECEIPTS_BATCH_MAX
    for settle in (broker.ack, broker.nack, broker.release):
        assert await settle("q", []) == []
        await refused(settle("q", [ID] * (most + 1)), OutOfRange)
        assert oks(await settle("q", [ID] * most)) == [False] * most
    assert oks(await broker.extend("q", [ID] * most, 1)) == [False] * most


@pytest.mark.parametrize("receipt", ["", "x", ID[:-1], ID + "0", ID.replace("-", ""), "g" + ID[1:], "é" * 36])
async def test_f4_receipts_that_are_none(broker, receipt) -> None:
    """In a batch each is refused alone."""
    codes = ["not_found.message", "bad_request.receipt.invalid"]
    for settle in (broker.ack, broker.nack, broker.release, broker.extend):
        assert [result.code for result in await settle("q", [ID, receipt])] == codes
        assert [result.code for result in await settle("q", [receipt])] == codes[1:]
    await refused(broker.ack_message("q", ID, receipt), MalformedReceipt)
    await refused(broker.nack_message("q", ID, receipt), MalformedReceipt)


@pytest.mark.parametrize(
    "message_id", ["", "x", ID[:-1], ID + "0", ID.replace("-", ""), "{" + ID + "}", "urn:uuid:" + ID]
)
async def test_f4_ids_that_are_none(broker, message_id) -> None:
    await refused(broker.ack_message("q", message_id, None), MalformedMessageId)
    await refused(broker.nack_message("q", message_id, ID), MalformedMessageId)
    await refused(broker.message("q", message_id), MalformedMessageId)


async def test_pages(broker) -> None:
    assert await broker.peek("q", limit=1) == await broker.peek("q", limit=limits.BROWSE_PAGE_MAX) == []
    for look in (broker.peek, broker.lists.search):
        await refused(look("q", limit=0), OutOfRange)
        await refused(look("q", limit=limits.BROWSE_PAGE_MAX + 1), OutOfRange)
