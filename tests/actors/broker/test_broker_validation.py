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


async def test_f2_queue_names_that_are_good(broker) -> None:
    for name in ("a", "A-z_0.9", "x" * 64, "...", "a-dlq-b"):
        assert (await broker.produce(name, "x")).sequence >= 1


async def test_f2_queue_names_that_are_not(broker) -> None:
    for name in ("", "x" * 65, "a b", "a/b", "ä", "a\n", "\ud800", "a%20"):
        for call in (
            broker.produce(name, "x"),
            broker.receive(name, wait_ms=0),
            broker.ack(name, [ID]),
            broker.queue_stats(name),
            broker.peek(name),
            broker.lists.search(name),
            broker.message(name, ID),
            broker.ack_message(name, ID, None),
        ):
            await refused(call, InvalidQueueName)
    assert broker.known.counts() == {}


async def test_f2_nobody_sends_to_a_dead_letter_queue(broker) -> None:
    await refused(broker.produce("a-dlq", "x"), ProduceToDeadLetterQueue)
    await refused(broker.produce_many("a-dlq", [NewMessage("x")]), ProduceToDeadLetterQueue)
    assert await broker.receive("a-dlq", wait_ms=0) == []


async def test_f1_content_is_bounded_in_bytes(broker) -> None:
    for letter in "xü€😀":
        most = letter * (limits.CONTENT_BYTES_MAX // len(letter.encode()))
        content = most + "x" * (limits.CONTENT_BYTES_MAX - len(most.encode()))
        await broker.produce("q", content)
        await refused(broker.produce("q", content + "x"), ContentTooLarge)
        (delivery,) = await broker.receive("q", wait_ms=0)
        assert delivery.content == content


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


async def test_receiving(broker) -> None:
    for argument, low, high in (
        ("max_messages", 1, limits.RECEIVE_BATCH_MAX),
        ("wait_ms", 0, limits.WAIT_MS_MAX),
        ("lease_ms", 0, limits.LEASE_MS_MAX),
    ):
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
    for bound in (0, limits.MAX_ATTEMPTS_MAX + 1):
        await refused(broker.nack("q", receipts, max_attempts=bound), OutOfRange)
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


async def test_f4_receipts_that_are_none(broker) -> None:
    """In a batch each is refused alone."""
    codes = ["not_found.message", "bad_request.receipt.invalid"]
    for receipt in ("", "x", ID[:-1], ID + "0", ID.replace("-", ""), "g" + ID[1:], "é" * 36):
        for settle in (broker.ack, broker.nack, broker.release, broker.extend):
            assert [result.code for result in await settle("q", [ID, receipt])] == codes
            assert [result.code for result in await settle("q", [receipt])] == codes[1:]
        await refused(broker.ack_message("q", ID, receipt), MalformedReceipt)
        await refused(broker.nack_message("q", ID, receipt), MalformedReceipt)


async def test_f4_ids_that_are_none(broker) -> None:
    for no_id in ("", "x", ID[:-1], ID + "0", ID.replace("-", ""), "{" + ID + "}", "urn:uuid:" + ID):
        await refused(broker.ack_message("q", no_id, None), MalformedMessageId)
        await refused(broker.nack_message("q", no_id, ID), MalformedMessageId)
        await refused(broker.message("q", no_id), MalformedMessageId)


async def test_pages(broker) -> None:
    assert await broker.peek("q", limit=1) == await broker.peek("q", limit=limits.BROWSE_PAGE_MAX) == []
    for look in (broker.peek, broker.lists.search):
        await refused(look("q", limit=0), OutOfRange)
        await refused(look("q", limit=limits.BROWSE_PAGE_MAX + 1), OutOfRange)
