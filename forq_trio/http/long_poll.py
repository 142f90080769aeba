"""Long polls of every dialect: waits that end when the client disconnects, and release messages that came too late.

A request first claims without waiting, and has its client watched only while it waits.
"""

from collections.abc import Callable, Sequence
from functools import partial

from forq_trio.broker.broker import Broker
from forq_trio.http.message import Request
from forq_trio.model.commands import RedrivePolicy
from forq_trio.model.logs.types import LogLines
from forq_trio.model.messages.types import Delivery, MessageInfo
from forq_trio.model.messages.where import Wanted


def undelivery(broker: Broker, queue: str, deliveries: Sequence[Delivery]) -> Callable[[], None]:
    """A response's `on_unsent` that releases these messages. It holds no reference to their contents."""
    return partial(broker.undeliver, queue, [delivery.receipt for delivery in deliveries])


async def receive_messages(
    broker: Broker,
    request: Request,
    queue: str,
    *,
    max_messages: int,
    wait_ms: int,
    lease_ms: int | None,
    shuffle: bool = False,
    redrive_policy: RedrivePolicy | None = None,
    where: Wanted | None = None,
) -> list[Delivery]:
    """Lease messages, waiting for the first; a disconnect of the client cancels the wait.

    Raises like `Broker.receive`. Cancelled, also by a disconnect: messages leased meanwhile are released, the attempt
    uncounted.
    """
    receive = partial(
        broker.receive,
        queue,
        max_messages=max_messages,
        lease_ms=lease_ms,
        shuffle=shuffle,
        redrive_policy=redrive_policy,
        where=where,
    )

    found = await receive(wait_ms=0)
    if found or not wait_ms:
        return found
    async with request.cancelled_on_disconnect():
        return await receive(wait_ms=wait_ms)


async def peek_messages(
    broker: Broker, request: Request, queue: str, *, limit: int, wait_ms: int, shuffle: bool
) -> list[MessageInfo]:
    """Peek at messages, waiting for the first. Raises like `Broker.peek`."""
    peek = partial(broker.peek, queue, limit=limit, shuffle=shuffle)
    found = await peek()
    if found or not wait_ms:
        return found
    async with request.cancelled_on_disconnect():
        return await peek(wait_ms=wait_ms)


async def wait_for_events(
    broker: Broker,
    request: Request,
    after: int,
    *,
    until: int | None,
    limit: int,
    queue: str | None,
    wait_ms: int,
) -> LogLines:
    """A page of events, waiting for the first. Raises like `Broker.events`."""
    page = await broker.lines.events(after, until=until, limit=limit, queue=queue)
    if page.lines or not wait_ms:
        return page
    async with request.cancelled_on_disconnect():
        return await broker.lines.events(page.next, until=until, limit=limit, queue=queue, wait_ms=wait_ms)
