"""Consumers of pipelines: open, lease, read, acknowledge, give back. A part of `Broker`; `leases` does the work."""

from math import inf

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.leases import check_names, find_consumer
from forq_trio.model import commands, limits
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.checks import check_range
from forq_trio.model.consumers.bodies import ConsumerInfo, ConsumerLease, LeasePage
from forq_trio.model.consumers.methods import ConsumerMethods
from forq_trio.model.messages.export import read_exported
from forq_trio.model.messages.types import check_queue_name


class Consumers(ConsumerMethods, BrokerBase):
    """All methods raise InvalidQueueName, OutOfRange, and the errors of `WriterActor.execute`.

    If a call is cancelled, its finished steps stay; call again to continue.
    """

    async def open_consumer(
        self, queue: str, name: str, *, idle_seconds: int | None = None, key: Key = SECRET
    ) -> ConsumerInfo:
        check_names(queue, name)
        if idle_seconds is not None:
            low, high = limits.CONSUMER_IDLE_SECONDS_MIN, limits.CONSUMER_IDLE_SECONDS_MAX
            check_range("idle_seconds", idle_seconds, low, high)
        idle_ms = None if idle_seconds is None else idle_seconds * limits.SECOND_MS
        command = commands.OpenConsumer(queue, name, idle_ms, key)
        opened = await self._backends.of(queue).execute(command)
        return self.leases.info(opened)

    async def lease(
        self,
        queue: str,
        name: str,
        generation: int,
        number: int,
        *,
        acknowledge: int | None = None,
        acknowledge_made_at: int | None = None,
        max_messages: int = limits.CONSUMER_LEASE_MESSAGES_DEFAULT,
        max_bytes: int | None = None,
        wait_ms: int = 0,
        ahead: bool = False,
    ) -> ConsumerLease:
        return await self.leases.lease(
            queue,
            name,
            generation,
            number,
            acknowledge=acknowledge,
            acknowledge_made_at=acknowledge_made_at,
            max_messages=max_messages,
            max_bytes=max_bytes,
            wait_ms=wait_ms,
            ahead=ahead,
            seconds=inf,
        )

    async def lease_page(
        self, queue: str, name: str, number: int, page: int = 0, pages: int = 1, *, made_at: int | None = None
    ) -> LeasePage:
        body, after = await self.lines.lease(queue, name, number, page, pages, made_at)
        return LeasePage(read_exported(body), after)

    async def acknowledge(
        self, queue: str, name: str, generation: int, number: int, *, made_at: int | None = None
    ) -> ConsumerInfo:
        of_consumer = queue, name, generation
        return await self.leases.acknowledge(*of_consumer, number, made_at=made_at, seconds=inf)

    async def release_consumer(self, queue: str, name: str) -> ConsumerInfo:
        return await self.leases.release(queue, name, seconds=inf)

    async def delete_consumer(self, queue: str, name: str) -> None:
        await self.leases.delete(queue, name, seconds=inf)

    async def consumers(self, queue: str | None = None) -> list[ConsumerInfo]:
        if queue is not None:
            check_queue_name(queue)
        await trio.lowlevel.checkpoint()
        return self.leases.of(queue)

    async def consumer(self, queue: str, name: str) -> ConsumerInfo:
        await trio.lowlevel.checkpoint()
        return self.leases.info(find_consumer(self._writer.snapshot(), queue, name))
