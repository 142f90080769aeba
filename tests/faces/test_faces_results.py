"""Results: given with an ack, kept with the finished message, and waited for, in the same way through every face."""

import pytest
import trio

from forq_trio import AckResult, MessageNotFound, MessageResult, OutOfRange, ReceiptNotCurrent
from forq_trio.model import limits
from forq_trio.model.limits import WAIT_MS_MAX
from support.actors import T0, all_idle

from .face import Face
from .words import SECOND

NO_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
DONE = AckResult('{"width":640}', 60_000)


class Asker:
    """A task that waits for the end of a message. is_done: it was told."""

    def __init__(self, face: Face, message_id: str) -> None:
        self._face = face
        self._message_id = message_id
        self._known: MessageResult | None = None
        self._done = trio.Event()

    async def ask(self) -> None:
        self._known = await self._face.methods.message_result("q", self._message_id, wait_ms=WAIT_MS_MAX)
        self._done.set()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    async def told(self) -> MessageResult:
        """What it is told."""
        await self._done.wait()
        assert self._known is not None
        return self._known


async def asking(face: Face, nursery: trio.Nursery, message_id: str) -> Asker:
    """A task that waits already."""
    asker = Asker(face, message_id)
    nursery.start_soon(asker.ask)
    await face.has_asker(message_id)
    return asker


async def test_an_ack_gives_a_result_that_can_be_read_afterwards(face: Face) -> None:
    sent = await face.send("x")
    delivery = await face.take()
    known = await face.methods.message_result("q", sent.id)
    assert (known.state, known.result, known.attempts, known.ended_at) == ("waiting", None, 1, None)
    settled = await face.methods.ack("q", delivery, result=DONE)
    assert settled.ok
    known = await face.methods.message_result("q", sent.id)
    assert known == MessageResult(sent.id, "q", "acked", 1, DONE.content, None, T0)
    kept = await face.methods.finished_message("q", sent.id)
    assert (kept.content, kept.result, kept.kept_until) == ("x", DONE.content, T0 + DONE.keep_ms)


async def test_the_end_of_a_message_wakes_who_waits_at_once(face: Face) -> None:
    sent = await face.send("x")
    receipt = (await face.take()).receipt
    async with trio.open_nursery() as nursery:
        askers = [await asking(face, nursery, sent.id) for _ in range(2)]
        assert (await face.methods.ack("q", [receipt], result=DONE))[0].ok
        assert [(await asker.told()).result for asker in askers] == [DONE.content] * 2


async def test_an_ack_without_a_result_wakes_who_waits_too(face: Face) -> None:
    sent = await face.send("x")
    receipt = (await face.take()).receipt
    async with trio.open_nursery() as nursery:
        asker = await asking(face, nursery, sent.id)
        assert await face.ack(receipt) == [True]
        known = await asker.told()
        assert (known.state, known.result) == ("acked", None)
    with pytest.raises(MessageNotFound):
        await face.methods.message_result("q", sent.id)


async def test_a_dead_letter_and_its_last_error_are_told(face: Face) -> None:
    sent = await face.send("x")
    receipt = (await face.take()).receipt
    async with trio.open_nursery() as nursery:
        asker = await asking(face, nursery, sent.id)
        assert await face.nack(receipt, reason="no line", final=True) == [True]
        known = await asker.told()
        assert (known.state, known.queue) == ("dead", "q-dlq")
        assert (known.last_error, known.ended_at) == ("no line", T0)


async def test_a_cancellation_is_told_where_nothing_is_stored_of_it(face: Face) -> None:
    sent = await face.send("x")
    async with trio.open_nursery() as nursery:
        asker = await asking(face, nursery, sent.id)
        await face.methods.cancel("q", sent.id)
        assert (await asker.told()).state == "cancelled"


async def test_other_messages_wake_nobody_and_a_wait_ends_by_itself(face: Face) -> None:
    sent = await face.send("x")
    other = await face.send("y")
    async with trio.open_nursery() as nursery:
        asker = await asking(face, nursery, sent.id)
        await face.methods.cancel("q", other.id)
        await all_idle()
        assert not asker.is_done
        await face.advance(WAIT_MS_MAX + SECOND)
        assert (await asker.told()).state == "waiting"


async def test_results_are_bounded_and_only_current_receipts_give_them(face: Face) -> None:
    await face.send("x")
    delivery = await face.take()
    for wrong in (
        AckResult("ö" * (limits.RESULT_BYTES_MAX // 2 + 1)),
        AckResult("x", 0),
        AckResult("x", limits.RESULT_STORED_MS_MAX + 1),
    ):
        with pytest.raises(OutOfRange):
            await face.methods.ack("q", delivery, result=wrong)
    largest = AckResult("x" * limits.RESULT_BYTES_MAX)
    with pytest.raises(OutOfRange):
        await face.methods.ack("q", [delivery.receipt] * 17, result=largest)
    assert (await face.methods.ack("q", delivery, result=largest)).ok
    with pytest.raises(ReceiptNotCurrent):
        await face.methods.ack("q", delivery, result=DONE)


async def test_what_is_not_known_is_not_found(face: Face) -> None:
    sent = await face.send("x")
    for queue, message_id in (("q", NO_ID), ("other", sent.id)):
        with pytest.raises(MessageNotFound):
            await face.methods.message_result(queue, message_id, wait_ms=1_000)
    with pytest.raises(OutOfRange):
        await face.methods.message_result("q", sent.id, wait_ms=WAIT_MS_MAX + 1)
