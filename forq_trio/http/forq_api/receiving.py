"""Receives of one or several messages: leases or peeks, at once or after a wait."""

from forq_trio.broker.broker import Broker
from forq_trio.http.long_poll import peek_messages, receive_messages
from forq_trio.http.message import Request
from forq_trio.model.errors import InvalidRequest
from forq_trio.model.messages.bodies import ReceivedMessage, ReceiveRequest
from forq_trio.model.messages.types import Delivery, MessageInfo


async def lease(broker: Broker, request: Request, queue: str, wanted: ReceiveRequest) -> list[Delivery]:
    """Lease messages as `wanted` says. Errors and cancellation as for `receive_messages`."""
    return await receive_messages(
        broker,
        request,
        queue,
        max_messages=wanted.max,
        wait_ms=wanted.wait_ms,
        lease_ms=wanted.lease_ms,
        shuffle=wanted.order == "shuffle",
        where=wanted.where,
    )


async def peek(broker: Broker, request: Request, queue: str, wanted: ReceiveRequest) -> list[ReceivedMessage]:
    """Peek at messages as `wanted` says. Raises like `Broker.peek`."""
    if wanted.where is not None:
        raise InvalidRequest("where is not possible with peek", field="where")
    shuffle = wanted.order == "shuffle"
    found = await peek_messages(
        broker, request, queue, limit=wanted.max, wait_ms=wanted.wait_ms, shuffle=shuffle
    )
    return [_peeked(info) for info in found]


def _peeked(info: MessageInfo) -> ReceivedMessage:
    """A stored message in the form of a received one, without receipt and leaseUntil."""
    return ReceivedMessage(
        info.id,
        info.content,
        info.attempts,
        info.sequence,
        info.received_at,
        info.priority,
        info.first_received_at,
        info.attributes or None,
        info.group,
        info.key,
        info.kind,
        info.max_attempts,
    )
