"""ReceiveRequestAttemptId: an answer that fails late takes no messages from the answer to the same attempt after it."""

from typing import Any

import trio

from forq_trio.http.sqs_api.receiving import SqsReceiving
from forq_trio.http.sqs_api.shapes import ReceivedAnswer, ReceiveMessageRequest
from forq_trio.system import System
from support.processes import WAIT_SECONDS_MAX

from .in_process import caller_with_all_rights, memory_system

QUEUE = "q.fifo"
ASKED = ReceiveMessageRequest(QUEUE, receive_request_attempt_id="one")


async def receive(receiving: SqsReceiving) -> tuple[str, Any]:
    """The receipt of the one message, and what is called if the answer does not arrive."""
    answer, undo = await receiving.receive(caller_with_all_rights(), ASKED)
    assert isinstance(answer, ReceivedAnswer)
    (message,) = answer.messages or ()
    return message.receipt_handle or "", undo


async def status(system: System, message_id: str) -> str:
    """Of a message, once everything that was posted is done."""
    await system.broker.healthcheck()
    return (await system.broker.message(QUEUE, message_id)).status


async def calls_wait(system: System, count: int) -> None:
    """Wait until a paused writer has so many calls."""
    with trio.fail_after(WAIT_SECONDS_MAX):
        while system.writer.inbox_calls < count:
            await trio.lowlevel.checkpoint()


async def test_only_the_latest_answer_releases_the_messages() -> None:
    async with memory_system() as system:
        sent = await system.broker.produce(QUEUE, "x", group="g")
        receiving = SqsReceiving(system.broker, None)
        first, undo_first = await receive(receiving)
        second, undo_second = await receive(receiving)
        assert second == first
        undo_first()
        assert await status(system, sent.id) == "processing"
        undo_second()
        assert await status(system, sent.id) == "ready"
        third, _ = await receive(receiving)
        assert third != first


async def test_what_is_about_to_be_released_is_not_given_again() -> None:
    async with memory_system() as system:
        sent = await system.broker.produce(QUEUE, "x", group="g")
        receiving = SqsReceiving(system.broker, None)
        first, undo = await receive(receiving)
        found = []

        async def try_again() -> None:
            found.append(await receive(receiving))

        async with trio.open_nursery() as nursery, system.writer.paused():  # one batch has both
            undo()
            nursery.start_soon(try_again)
            await calls_wait(system, 2)
        ((again, _),) = found
        assert again != first
        assert await status(system, sent.id) == "processing"


async def test_an_attempt_that_is_given_up_releases_the_messages() -> None:
    async with memory_system() as system:
        sent = await system.broker.produce(QUEUE, "x", group="g")
        receiving = SqsReceiving(system.broker, None)
        await receive(receiving)
        async with trio.open_nursery() as nursery, system.writer.paused():
            nursery.start_soon(receive, receiving)
            await calls_wait(system, 1)
            nursery.cancel_scope.cancel()
        assert await status(system, sent.id) == "ready"
