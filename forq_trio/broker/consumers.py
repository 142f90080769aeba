"""Consumers of pipelines: open, lease, read, acknowledge, give back. A part of `Broker`; `leases` does the work."""

from math import inf

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.leases import check_names, find_consumer
from forq_trio.model import commands, limits
from forq_trio.model.access import SECRET, Key
from forq_trio.model.checks import check_range
from forq_trio.model.messages import check_queue_name
from forq_trio.wire.consumers import ConsumerInfo, ConsumerLease, LeasePage
from forq_trio.wire.export import read_exported


class Consumers(BrokerBase):
    """All methods raise InvalidQueueName, OutOfRange, and what `WriterActor.execute` raises.

    Cancelled, finished steps stay; call again to continue.
    """

    async def open_consumer(
        self, queue: str, name: str, *, idle_seconds: int | None = None, key: Key = SECRET
    ) -> ConsumerInfo:
        """Open a consumer, and create it if there is none. From now on its older generations are refused.

        idle_seconds: its open lease is given back when the consumer is not used for this long (60 s to 366 days); None
        for the previous value, or a day. key: whose share a new one counts to. Raises TooManyConsumers.
        """
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
        """Acknowledge the leases up to `acknowledge`, make lease `number`, and return it once it is complete.

        Repeatable: a number always has the same messages. It gets `max_messages` (1-1,000,000) at most, and is
        complete with `max_bytes` (1 GiB at most) of lines, or when no more are ready. If none is ready it waits up to
        `wait_ms` (0-30,000) for the first one; if none comes, the result has no messages, and the lease is not made.
        ahead: it may follow a complete lease that is not acknowledged yet, one at most; it is complete with
        `max_messages` or `max_bytes` only, else `waiting`, and a call without `ahead` adds what is ready then.
        acknowledge_made_at: see `made_at` of `acknowledge`. Raises ConsumerNotFound, ConsumerFenced, OtherLease,
        LeaseOutOfOrder, LeaseGone, LeasesFull, StorageFull.
        """
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
        """The messages of `pages` (1-1,000) pages of a lease, fewer if they have more than 4 MiB; repeatable.

        made_at: `ConsumerLease.made_at` of the lease that is wanted. Raises ConsumerNotFound, OtherLease for one that
        was made at another time, LeaseOutOfOrder for one that is not made yet, LeaseGone, and what reads raise.
        """
        body, after = await self.lines.lease(queue, name, number, page, pages, made_at)
        return LeasePage(read_exported(body), after)

    async def acknowledge(
        self, queue: str, name: str, generation: int, number: int, *, made_at: int | None = None
    ) -> ConsumerInfo:
        """Remove the messages of the open lease, which is `number`; does nothing for one that was acknowledged before.

        made_at: `ConsumerLease.made_at` of the lease that was read. A server that was restored from a backup, or
        another one, uses its number for other messages: these are not removed then. None: whichever lease it is.

        Raises ConsumerNotFound, ConsumerFenced, OtherLease for one that was made at another time, LeaseGone for one
        that was given back, and LeaseOutOfOrder for one that is not made or not complete.
        """
        of_consumer = queue, name, generation
        return await self.leases.acknowledge(*of_consumer, number, made_at=made_at, seconds=inf)

    async def release_consumer(self, queue: str, name: str) -> ConsumerInfo:
        """Give the messages of the open lease back, without counting the attempt; it can no longer be read.

        If there is an open lease, the generation grows, and clients have to open the consumer again. A lease whose
        acknowledgement has begun is acknowledged instead. Raises ConsumerNotFound.
        """
        return await self.leases.release(queue, name, seconds=inf)

    async def delete_consumer(self, queue: str, name: str) -> None:
        """Give the messages of the open lease back, and delete the consumer.

        From the first moment on its generation is refused, so that nobody goes on with it. Raises ConsumerNotFound, and
        ConsumerFenced if it is opened again before it is forgotten.
        """
        await self.leases.delete(queue, name, seconds=inf)

    async def consumers(self, queue: str | None = None) -> list[ConsumerInfo]:
        """The consumers of a queue (None: of all) by queue and name."""
        if queue is not None:
            check_queue_name(queue)
        await trio.lowlevel.checkpoint()
        return self.leases.of(queue)

    async def consumer(self, queue: str, name: str) -> ConsumerInfo:
        """One consumer. Raises ConsumerNotFound."""
        await trio.lowlevel.checkpoint()
        return self.leases.info(find_consumer(self._writer.snapshot(), queue, name))
