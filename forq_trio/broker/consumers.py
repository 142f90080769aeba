"""Consumers of pipelines: open, lease, read, acknowledge, give back. A part of `Broker`.

A lease of 100,000 messages is leased, and settled, in many small commands, between which the writer serves everybody
else. Each is durable alone, and repeating a call goes on where the one before was stopped: by a deadline, a kill, or
its client's disconnect. What was begun and is left alone is ended by a job (jobs/consumers.py).
"""

from collections.abc import Iterable
from math import inf

import msgspec
import trio

from forq_trio.model import commands, limits
from forq_trio.model.checks import check_range
from forq_trio.model.clock import Clock
from forq_trio.model.consumers import Consumer, ConsumerGauges, Settling, check_consumer_name, consumer_key
from forq_trio.model.errors import ConsumerNotFound, LeaseGone, LeaseOutOfOrder
from forq_trio.model.messages import check_queue_name
from forq_trio.readers.pool import ReaderPool
from forq_trio.wire.consumers import ConsumerInfo, ConsumerLease, LeasePage
from forq_trio.wire.export import ExportedMessage
from forq_trio.writer_actor import WriterActor

_read_lines = msgspec.json.Decoder(ExportedMessage).decode_lines


class Consumers:
    """All methods raise InvalidQueueName, OutOfRange, and what `WriterActor.execute` raises.

    Cancelled, what was done so far is done; call again to go on.
    """

    _writer: WriterActor
    _readers: ReaderPool
    _clock: Clock

    async def open_consumer(self, queue: str, name: str, *, idle_seconds: int | None = None) -> ConsumerInfo:
        """Open a consumer, and make it if there is none. From now on its older generations are refused.

        idle_seconds: its open lease is given back when it is not used for so long (60 s to 366 days); None for what was
        set before, or a day. Raises TooManyConsumers.
        """
        _check(queue, name)
        if idle_seconds is not None:
            low, high = limits.CONSUMER_IDLE_SECONDS_MIN, limits.CONSUMER_IDLE_SECONDS_MAX
            check_range("idle_seconds", idle_seconds, low, high)
        idle_ms = None if idle_seconds is None else idle_seconds * limits.SECOND_MS
        return self._consumer_info(await self._writer.execute(commands.OpenConsumer(queue, name, idle_ms)))

    async def lease(
        self,
        queue: str,
        name: str,
        generation: int,
        number: int,
        *,
        acknowledge: int | None = None,
        max_messages: int = limits.CONSUMER_LEASE_MESSAGES_DEFAULT,
        max_bytes: int | None = None,
    ) -> ConsumerLease:
        """Acknowledge the leases up to `acknowledge`, make lease `number`, and return it once it is complete.

        Repeatable: the same number has the same messages for ever. It gets `max_messages` (1-1,000,000) at most, and is
        complete with `max_bytes` (1 GiB at most) of lines, or when no more are ready. Without any the result has no
        messages, and the lease is not made. Raises ConsumerNotFound, ConsumerFenced, LeaseOutOfOrder, LeaseGone,
        LeasesFull, StorageFull.
        """
        while True:
            lease = await self.lease_for_a_while(
                queue,
                name,
                generation,
                number,
                acknowledge=acknowledge,
                max_messages=max_messages,
                max_bytes=max_bytes,
            )
            if lease.complete:
                return lease

    async def lease_for_a_while(
        self,
        queue: str,
        name: str,
        generation: int,
        number: int,
        *,
        acknowledge: int | None = None,
        max_messages: int = limits.CONSUMER_LEASE_MESSAGES_DEFAULT,
        max_bytes: int | None = None,
    ) -> ConsumerLease:
        """`lease`, for about CONSUMER_REQUEST_SECONDS: the result may not be complete; call again then."""
        _check(queue, name)
        _check_numbers(generation, number)
        check_range("max_messages", max_messages, 1, limits.CONSUMER_LEASE_MESSAGES_MAX)
        bytes_max = limits.CONSUMER_LEASE_BYTES_MAX if max_bytes is None else max_bytes
        check_range("max_bytes", bytes_max, 1, limits.CONSUMER_LEASE_BYTES_MAX)
        deadline = trio.current_time() + limits.CONSUMER_REQUEST_SECONDS
        if acknowledge is not None:
            check_range("acknowledge", acknowledge, 0, number - 1)
            consumer = await self._acknowledge(queue, name, generation, acknowledge, deadline)
            if consumer.acknowledged < acknowledge:
                return ConsumerLease(number, 0, 0, 0, complete=False, acknowledged=consumer.acknowledged)
        await self._finish_giving_back(queue, name)
        step = commands.LeaseMessages(queue, name, generation, number, max_messages, bytes_max)
        while True:
            lease = _lease_of(await self._writer.execute(step), number)
            if lease.complete or trio.current_time() >= deadline:
                return lease

    async def _finish_giving_back(self, queue: str, name: str) -> None:
        """A lease that is being given back has to be gone before the next one can be made."""
        consumer = self._writer.snapshot().consumers.get(consumer_key(queue, name))
        if consumer is not None and consumer.given_back:
            await self._give_back(consumer, Settling.RELEASE)

    async def lease_page(
        self, queue: str, name: str, number: int, page: int = 0, pages: int = 1
    ) -> LeasePage:
        """The messages of `pages` (1-1,000) pages of a lease, fewer if they have more than 4 MiB; repeatable.

        Raises ConsumerNotFound, LeaseOutOfOrder for a lease that is not made yet, LeaseGone, and what reads raise.
        """
        body, after = await self.lease_lines(queue, name, number, page, pages)
        return LeasePage(_read_lines(body), after)

    async def lease_lines(
        self, queue: str, name: str, number: int, page: int, pages: int
    ) -> tuple[bytes, int | None]:
        """`lease_page` as lines of JSON."""
        consumer = self._consumer(queue, name)
        check_range("number", number, 1, limits.SEQUENCE_MAX)
        check_range("page", page, 0, limits.SEQUENCE_MAX)
        check_range("pages", pages, 1, limits.CONSUMER_READ_PAGES_MAX)
        if self._clock.now_ms() - consumer.used_at >= limits.CONSUMER_USE_SAVE_MS:
            self._writer.post(commands.NoteConsumerUse(queue, name))
        lease = consumer.readable(number)
        if lease is None:
            raise LeaseGone if number <= consumer.leased else LeaseOutOfOrder("the lease is not made yet")
        count = min(pages, lease.pages - page)
        if count <= 0:
            await trio.lowlevel.checkpoint()
            return b"", None
        bodies = await self._readers.run(lambda reader: reader.lease_pages(queue, name, number, page, count))
        if not bodies:  # they were dropped meanwhile
            raise LeaseGone
        after = page + len(bodies)
        return b"".join(bodies), after if after < lease.pages else None

    async def acknowledge(self, queue: str, name: str, generation: int, number: int) -> ConsumerInfo:
        """Remove the messages of the open lease, which is `number`; one that was acknowledged before is left as it is.

        Raises ConsumerNotFound, ConsumerFenced, LeaseGone for one that was given back, and LeaseOutOfOrder for one that
        is not made or not complete.
        """
        _check(queue, name)
        _check_numbers(generation, number)
        return self._consumer_info(await self._acknowledge(queue, name, generation, number, inf))

    async def _acknowledge(
        self, queue: str, name: str, generation: int, number: int, deadline: float
    ) -> Consumer:
        step = commands.SettleLease(queue, name, generation, number, Settling.ACKNOWLEDGE)
        while True:
            consumer = await self._writer.execute(step)
            if consumer.acknowledged >= number or trio.current_time() >= deadline:
                return consumer

    async def release_consumer(self, queue: str, name: str) -> ConsumerInfo:
        """Give the messages of the open lease back, the attempt uncounted: it can no longer be read or acknowledged.

        One whose acknowledgement has begun is acknowledged instead. Raises ConsumerNotFound.
        """
        return self._consumer_info(await self._give_back(self._consumer(queue, name), Settling.RELEASE))

    async def _give_back(self, consumer: Consumer, how: Settling) -> Consumer:
        """Settle the open lease to its end."""
        lease = consumer.open
        while lease is not None and consumer.open is not None and consumer.open.number == lease.number:
            step = commands.SettleLease(consumer.queue, consumer.name, None, lease.number, how)
            before, consumer = consumer, await self._writer.execute(step)
            if how is Settling.END and consumer == before:
                break  # it is used again
        return consumer

    async def delete_consumer(self, queue: str, name: str) -> None:
        """Give the messages of the open lease back, and forget the consumer. Raises ConsumerNotFound."""
        consumer: Consumer | None = self._consumer(queue, name)
        while consumer is not None:
            await self._give_back(consumer, Settling.RELEASE)
            consumer = await self._writer.execute(commands.ForgetConsumer(queue, name))

    async def consumers(self, queue: str | None = None) -> list[ConsumerInfo]:
        """The consumers of a queue (None: of all) by queue and name."""
        if queue is not None:
            check_queue_name(queue)
        await trio.lowlevel.checkpoint()
        known = self._writer.snapshot().consumers.values()
        return self._infos(consumer for consumer in known if queue in (None, consumer.queue))

    async def consumer(self, queue: str, name: str) -> ConsumerInfo:
        """One consumer. Raises ConsumerNotFound."""
        await trio.lowlevel.checkpoint()
        return self._consumer_info(self._consumer(queue, name))

    async def settle_unused(self) -> int:
        """End the leases of consumers that were not used for as long as they may, and what was left unfinished.

        Returns how many leases ended.
        """
        count = 0
        for consumer in list(self._writer.snapshot().consumers.values()):
            known = consumer
            if known.settling is not None or known.unused(self._clock.now_ms()):
                known = await self._give_back(known, Settling.END)
                count += known.open is None
            while known.dropping:
                left = await self._writer.execute(commands.DropPages(known.queue, known.name))
                if left is None:
                    break
                known = left
        return count

    def consumer_gauges(self) -> list[ConsumerGauges]:
        """What the metrics say of the first METRIC_CONSUMERS_MAX consumers, from the cache."""
        snapshot, now_ms = self._writer.snapshot(), self._clock.now_ms()
        gauges = []
        for _, each in sorted(snapshot.consumers.items())[: limits.METRIC_CONSUMERS_MAX]:
            counts = snapshot.counts.get(each.queue)
            open_messages = 0 if each.open is None else each.open.messages
            unused_seconds = max(now_ms - each.used_at, 0) / limits.SECOND_MS
            lag = 0 if counts is None else counts.ready
            gauges.append(ConsumerGauges(each.queue, each.name, lag, open_messages, unused_seconds))
        return gauges

    def consumers_of(self, queue: str) -> list[ConsumerInfo]:
        """The consumers of a queue by name, from the cache."""
        known = self._writer.snapshot().consumers.values()
        return self._infos(consumer for consumer in known if consumer.queue == queue)

    def _consumer(self, queue: str, name: str) -> Consumer:
        _check(queue, name)
        found = self._writer.snapshot().consumers.get(consumer_key(queue, name))
        if found is None:
            raise ConsumerNotFound
        return found

    def _infos(self, consumers: Iterable[Consumer]) -> list[ConsumerInfo]:
        by_name = sorted(consumers, key=lambda consumer: consumer.key)
        return [self._consumer_info(consumer) for consumer in by_name]

    def _consumer_info(self, consumer: Consumer) -> ConsumerInfo:
        counts = self._writer.snapshot().counts.get(consumer.queue)
        lease = consumer.open
        readable = [each.number for each in consumer.kept]
        if lease is not None and not consumer.given_back:
            readable.append(lease.number)
        return ConsumerInfo(
            queue=consumer.queue,
            name=consumer.name,
            generation=consumer.generation,
            leased=consumer.leased,
            acknowledged=consumer.acknowledged,
            complete=lease is None or consumer.complete,
            open_messages=0 if lease is None else lease.messages,
            open_bytes=0 if lease is None else lease.bytes,
            oldest_readable=min(readable, default=0),
            ready=0 if counts is None else counts.ready,
            opened_at=consumer.opened_at,
            used_at=consumer.used_at,
            expires_at=None if lease is None else consumer.used_at + consumer.idle_ms,
            released_before=consumer.released_before,
        )


def _check(queue: str, name: str) -> None:
    check_queue_name(queue)
    check_consumer_name(name)


def _check_numbers(generation: int, number: int) -> None:
    check_range("generation", generation, 1, limits.SEQUENCE_MAX)
    check_range("number", number, 1, limits.SEQUENCE_MAX)


def _lease_of(consumer: Consumer, number: int) -> ConsumerLease:
    lease = consumer.readable(number)
    if lease is None:  # none was ready
        return ConsumerLease(number, 0, 0, 0, complete=True, acknowledged=consumer.acknowledged)
    return ConsumerLease(
        number,
        lease.messages,
        lease.bytes,
        lease.pages,
        complete=lease is not consumer.open or consumer.complete,
        acknowledged=consumer.acknowledged,
    )
