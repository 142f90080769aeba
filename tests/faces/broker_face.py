"""The Broker as a face."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import trio

from forq_trio.broker.broker import Broker
from forq_trio.client import Delivery, MessageInfo, NewMessage, Produced
from forq_trio.model import errors
from forq_trio.model.limits import WAIT_MS_MAX
from forq_trio.model.messages import MessageInfo as StoredMessage
from forq_trio.model.messages import NewMessage as MessageToStore
from forq_trio.model.messages import QueueCounts
from forq_trio.model.queue_settings import QueueRules, QueueSettings, SettingsChange

from .face import (
    CONTENT_TOO_LARGE,
    IN_PAST,
    MESSAGE_ID_INVALID,
    NOT_EMPTY,
    NOT_FOUND,
    QUEUE_FULL,
    QUEUE_INVALID,
    RECEIPT_INVALID,
    SENT_TO_DLQ,
    SETTING_INVALID,
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
    errors.QueueFull: QUEUE_FULL,
    errors.QueueNotEmpty: NOT_EMPTY,
}


@contextmanager
def refusals() -> Iterator[None]:
    """The broker's errors in the suite's words."""
    try:
        yield
    except errors.InvalidSetting as error:
        raise Refused(SETTING_INVALID + error.member) from error
    except (errors.CallerError, errors.QueueFull) as error:
        raise Refused(CODES[type(error)]) from error


def seen(message: StoredMessage) -> MessageInfo:
    """A stored message as clients see it."""
    return msgspec.convert(
        {**msgspec.to_builtins(message), "status": message.status.name.lower()}, MessageInfo
    )


def to_store(message: NewMessage) -> MessageToStore:
    """A client's message as the broker takes it."""
    given = {name: value for name, value in msgspec.structs.asdict(message).items() if value is not None}
    if "process_after" in given:
        given["process_after_ms"] = given.pop("process_after")
    return MessageToStore(**given)


def named(settings: QueueSettings | QueueRules) -> dict[str, Any]:
    """Settings by their names, enums as their words."""
    return {name: getattr(value, "value", value) for name, value in msgspec.structs.asdict(settings).items()}


class BrokerFace(Face):
    """broker: what it calls."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.broker = broker

    async def send(self, content="x", queue="q", **options) -> Produced:
        with refusals():
            produced = await self.broker.produce_message(queue, to_store(NewMessage(content, **options)))
        return Produced(produced.id, produced.sequence, produced.duplicate)

    async def send_many(self, messages: Sequence[NewMessage], queue="q") -> list[Produced | str]:
        with refusals():
            results = await self.broker.produce_each(queue, list(map(to_store, messages)))
        return [
            CODES[type(result)]
            if isinstance(result, errors.CallerError)
            else Produced(result.id, result.sequence, result.duplicate)
            for result in results
        ]

    async def receive(self, queue="q", *, most=1, wait_ms=0, lease_ms=None, shuffle=False) -> list[Delivery]:
        with refusals():
            deliveries = await self.broker.receive(
                queue, max_messages=most, wait_ms=wait_ms, lease_ms=lease_ms, shuffle=shuffle
            )
        return [msgspec.convert(msgspec.to_builtins(each), Delivery) for each in deliveries]

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
        return QueueCounts(info.ready, info.processing, info.failed, info.delayed, info.held)

    async def size(self, queue="q") -> int:
        with refusals():
            return (await self.broker.stats(queue)).bytes

    async def waiting(self, queue="q") -> int:
        await trio.lowlevel.checkpoint()
        return self.broker.waiting(queue)

    async def message(self, message_id, queue="q") -> MessageInfo:
        with refusals():
            return seen(await self.broker.message(queue, message_id))

    async def peek(self, queue="q", *, limit=10, shuffle=False) -> list[MessageInfo]:
        with refusals():
            return [seen(message) for message in await self.broker.peek(queue, limit=limit, shuffle=shuffle)]

    async def look(self, queue="q", *, most=1, wait_ms=0) -> list[str]:
        with refusals():
            return [message.content for message in await self.broker.peek(queue, limit=most, wait_ms=wait_ms)]

    async def configure(self, queue="q", **changes) -> None:
        in_json = dict(
            zip(SettingsChange.__struct_fields__, SettingsChange.__struct_encode_fields__, strict=True)
        )
        members = {in_json[name]: msgspec.to_builtins(value) for name, value in changes.items()}
        change = msgspec.convert(members, SettingsChange)
        with refusals():
            await self.broker.configure(queue, change)

    async def settings(self, queue="q") -> dict[str, Any]:
        with refusals():
            return named(self.broker.settings(queue))

    async def rules(self, queue="q") -> dict[str, Any]:
        with refusals():
            return named(self.broker.rules(queue))

    async def forget_settings(self, queue="q") -> None:
        with refusals():
            await self.broker.forget_settings(queue)

    async def pause(self, queue="q") -> None:
        with refusals():
            await self.broker.pause(queue)

    async def resume(self, queue="q") -> None:
        with refusals():
            await self.broker.resume(queue)

    async def purge(self, queue="q") -> int:
        with refusals():
            return await self.broker.purge(queue)

    async def remove(self, queue="q") -> None:
        with refusals():
            await self.broker.forget_queue(queue)

    async def queues(self) -> list[str]:
        return [info.queue for info in await self.broker.queues()]
