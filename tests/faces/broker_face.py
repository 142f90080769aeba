"""The Broker as a face."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import trio

from forq_trio import errors
from forq_trio.broker import Broker
from forq_trio.client import Delivery, MessageInfo, NewMessage, Produced
from forq_trio.limits import LEASE_MS_DEFAULT, WAIT_MS_MAX
from forq_trio.model import MessageInfo as StoredMessage
from forq_trio.model import NewMessage as MessageToStore
from forq_trio.model import QueueCounts

from .face import (
    CONTENT_TOO_LARGE,
    IN_PAST,
    MESSAGE_ID_INVALID,
    NOT_FOUND,
    QUEUE_INVALID,
    RECEIPT_INVALID,
    SENT_TO_DLQ,
    TOO_FAR,
    Face,
    Polled,
    Refused,
)

CODES = {
    errors.MessageNotFound: NOT_FOUND,
    errors.MalformedReceipt: RECEIPT_INVALID,
    errors.MalformedMessageId: MESSAGE_ID_INVALID,
    errors.ContentTooLarge: CONTENT_TOO_LARGE,
    errors.ProcessAfterInPast: IN_PAST,
    errors.ProcessAfterTooFar: TOO_FAR,
    errors.InvalidQueueName: QUEUE_INVALID,
    errors.ProduceToDeadLetterQueue: SENT_TO_DLQ,
}


@contextmanager
def refusals() -> Iterator[None]:
    """The broker's errors in the suite's words."""
    try:
        yield
    except errors.CallerError as error:
        raise Refused(CODES[type(error)]) from error


def seen(message: StoredMessage) -> MessageInfo:
    """A stored message as clients see it."""
    return MessageInfo(**{**msgspec.structs.asdict(message), "status": message.status.name.lower()})


class BrokerFace(Face):
    """Beside the suite's words it takes what only the broker offers when sending: priority and deduplication."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.broker = broker

    async def send(self, content="x", queue="q", *, process_after=None, **more) -> Produced:
        with refusals():
            return await self.broker.produce(queue, content, process_after_ms=process_after, **more)

    async def send_many(self, messages: Sequence[NewMessage], queue="q") -> list[Produced | str]:
        with refusals():
            results = await self.broker.produce_each(
                queue, [MessageToStore(message.content, message.process_after) for message in messages]
            )
        return [CODES.get(type(result), result) for result in results]

    async def receive(self, queue="q", *, most=1, wait_ms=0, lease_ms=LEASE_MS_DEFAULT) -> list[Delivery]:
        with refusals():
            return list(
                await self.broker.receive(queue, max_messages=most, wait_ms=wait_ms, lease_ms=lease_ms)
            )

    async def poll(self, queue="q") -> Polled | None:
        for delivery in await self.receive(queue, wait_ms=WAIT_MS_MAX):
            return Polled(delivery.id, delivery.content, delivery.receipt)
        return None

    async def ack(self, *receipts, queue="q") -> list[bool]:
        with refusals():
            return list(await self.broker.ack(queue, receipts))

    async def nack(self, *receipts, queue="q", delay_ms=None, reason=None) -> list[bool]:
        with refusals():
            return list(await self.broker.nack(queue, receipts, delay_ms=delay_ms, reason=reason))

    async def extend(self, *receipts, lease_ms, queue="q") -> list[int | None]:
        with refusals():
            return list(await self.broker.extend(queue, receipts, lease_ms))

    async def release(self, *receipts, queue="q", delay_ms=0) -> list[bool]:
        with refusals():
            return list(await self.broker.release(queue, receipts, delay_ms=delay_ms))

    async def ack_by_id(self, message_id, receipt=None, queue="q") -> None:
        with refusals():
            await self.broker.ack_message(queue, message_id, receipt)

    async def nack_by_id(self, message_id, receipt=None, queue="q") -> None:
        with refusals():
            await self.broker.nack_message(queue, message_id, receipt)

    async def counts(self, queue="q") -> QueueCounts:
        with refusals():
            info = await self.broker.stats(queue)
        return QueueCounts(info.ready, info.processing, info.failed, info.delayed)

    async def waiting(self, queue="q") -> int:
        await trio.lowlevel.checkpoint()
        return self.broker.waiting(queue)

    async def message(self, message_id, queue="q") -> MessageInfo:
        with refusals():
            return seen(await self.broker.message(queue, message_id))

    async def peek(self, queue="q", *, limit=10) -> list[MessageInfo]:
        with refusals():
            return [seen(message) for message in await self.broker.peek(queue, limit=limit)]
