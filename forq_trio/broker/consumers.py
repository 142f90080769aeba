"""Consumers of pipelines: open, lease, read, acknowledge, give back. A part of `Broker`.

A lease of 100,000 messages is leased, and settled, in many small commands, between which the writer runs other
commands. Each is durable alone, and repeating a call goes on where the one before was stopped: by a deadline, a kill,
or its client's disconnect. A job ends what was begun and left alone (jobs/cleanup.py).
"""

import heapq
from collections.abc import Callable, Iterable
from math import inf

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.model import commands, limits
from forq_trio.model.access import SECRET, Key
from forq_trio.model.checks import check_range
from forq_trio.model.consumers import Consumer, ConsumerGauges, Settling, check_consumer_name, consumer_key
from forq_trio.model.errors import ConsumerNotFound, LeaseGone, LeaseOutOfOrder, ServiceError, Stopping
from forq_trio.model.messages import check_queue_name
from forq_trio.model.values import seen
from forq_trio.storage.reader import Reader
from forq_trio.wire.consumers import ConsumerInfo, ConsumerLease, LeasePage
from forq_trio.wire.export import read_exported


class Consumers(BrokerBase):
    """All methods raise InvalidQueueName, OutOfRange, and what `WriterActor.execute` raises.

    Cancelled, what was done so far is done; call again to go on.
    """

    async def open_consumer(
        self, queue: str, name: str, *, idle_seconds: int | None = None, key: Key = SECRET
    ) -> ConsumerInfo:
        """Open a consumer, and make it if there is none. From now on its older generations are refused.

        idle_seconds: its open lease is given back when it is not used for so long (60 s to 366 days); None for what was
        set before, or a day. key: whose share a new one counts to. Raises TooManyConsumers.
        """
        _check(queue, name)
        if idle_seconds is not None:
            low, high = limits.CONSUMER_IDLE_SECONDS_MIN, limits.CONSUMER_IDLE_SECONDS_MAX
            check_range("idle_seconds", idle_seconds, low, high)
        idle_ms = None if idle_seconds is None else idle_seconds * limits.SECOND_MS
        opened = await self._writer.execute(commands.OpenConsumer(queue, name, idle_ms, key))
        return self._consumer_info(opened)

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
        wait_ms: int = 0,
    ) -> ConsumerLease:
        """Acknowledge the leases up to `acknowledge`, make lease `number`, and return it once it is complete.

        Repeatable: the same number has the same messages for ever. It gets `max_messages` (1-1,000,000) at most, and is
        complete with `max_bytes` (1 GiB at most) of lines, or when no more are ready. Without any it waits up to
        `wait_ms` (0-30,000) for the first one; then the result has no messages, and the lease is not made. Raises
        ConsumerNotFound, ConsumerFenced, LeaseOutOfOrder, LeaseGone, LeasesFull, StorageFull.
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
                wait_ms=wait_ms,
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
        wait_ms: int = 0,
    ) -> ConsumerLease:
        """`lease`, for about CONSUMER_REQUEST_SECONDS: the result may not be complete; call again then."""
        _check(queue, name)
        _check_numbers(generation, number)
        check_range("max_messages", max_messages, 1, limits.CONSUMER_LEASE_MESSAGES_MAX)
        bytes_max = limits.CONSUMER_LEASE_BYTES_MAX if max_bytes is None else max_bytes
        check_range("max_bytes", bytes_max, 1, limits.CONSUMER_LEASE_BYTES_MAX)
        check_range("wait_ms", wait_ms, 0, limits.WAIT_MS_MAX)
        deadline = _deadline()
        if acknowledge is not None:
            check_range("acknowledge", acknowledge, 0, number - 1)
            consumer = await self._acknowledge(queue, name, generation, acknowledge, deadline)
            if consumer.acknowledged < acknowledge:
                return ConsumerLease(number, 0, 0, 0, complete=False, acknowledged=consumer.acknowledged)
        before = self._writer.snapshot().consumers.get(consumer_key(queue, name))
        if before is not None and before.being_given_back:  # the next lease can be made once this one is gone
            before = await self._give_back(before, Settling.RELEASE, deadline)
            if before.being_given_back:
                return ConsumerLease(number, 0, 0, 0, complete=False, acknowledged=before.acknowledged)
        step = commands.LeaseMessages(queue, name, generation, number, max_messages, bytes_max)
        return await self._lease_or_wait(step, trio.current_time() + wait_ms / 1000)

    async def _lease_or_wait(self, step: commands.LeaseMessages, wait_until: float) -> ConsumerLease:
        """Go on with the lease for a while, once there are messages for it, which are waited for until then."""
        watches = self._writer.watches
        with watches.on(step.queue) as watch:
            while True:
                ready = watch.event
                lease = await self._lease_until(step, _deadline())
                if lease.pages or trio.current_time() >= wait_until or watches.closed:
                    return lease
                with trio.move_on_at(wait_until):
                    await ready.wait()

    async def _lease_until(self, step: commands.LeaseMessages, deadline: float) -> ConsumerLease:
        while True:
            lease = _lease_of(await self._writer.execute(step), step.number)
            if lease.complete or trio.current_time() >= deadline:
                return lease

    async def lease_page(
        self, queue: str, name: str, number: int, page: int = 0, pages: int = 1
    ) -> LeasePage:
        """The messages of `pages` (1-1,000) pages of a lease, fewer if they have more than 4 MiB; repeatable.

        Raises ConsumerNotFound, LeaseOutOfOrder for a lease that is not made yet, LeaseGone, and what reads raise.
        """
        body, after = await self.lease_lines(queue, name, number, page, pages)
        return LeasePage(read_exported(body), after)

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

        def read(reader: Reader) -> tuple[int, bytes]:
            bodies = reader.lease_pages(queue, name, number, page, count)
            return len(bodies), b"".join(bodies)

        found, body = await self._readers.run(read)
        if not found:  # they were dropped meanwhile
            raise LeaseGone
        after = page + found
        return body, after if after < lease.pages else None

    async def acknowledge(self, queue: str, name: str, generation: int, number: int) -> ConsumerInfo:
        """Remove the messages of the open lease, which is `number`; one that was acknowledged before is left as it is.

        Raises ConsumerNotFound, ConsumerFenced, LeaseGone for one that was given back, and LeaseOutOfOrder for one that
        is not made or not complete.
        """
        _check(queue, name)
        _check_numbers(generation, number)
        return self._consumer_info(await self._acknowledge(queue, name, generation, number, inf))

    async def acknowledge_for_a_while(
        self, queue: str, name: str, generation: int, number: int
    ) -> ConsumerInfo:
        """`acknowledge`, for about CONSUMER_REQUEST_SECONDS: call again while `acknowledged` is below `number`."""
        _check(queue, name)
        _check_numbers(generation, number)
        return self._consumer_info(await self._acknowledge(queue, name, generation, number, _deadline()))

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

        With an open lease the generation grows: whoever has the consumer open has to open it again. One whose
        acknowledgement has begun is acknowledged instead. Raises ConsumerNotFound.
        """
        return self._consumer_info(await self._give_back(self._consumer(queue, name), Settling.RELEASE))

    async def release_for_a_while(self, queue: str, name: str) -> ConsumerInfo:
        """`release_consumer`, for about CONSUMER_REQUEST_SECONDS: call again while `settling`."""
        consumer = await self._give_back(self._consumer(queue, name), Settling.RELEASE, _deadline())
        return self._consumer_info(consumer)

    async def _give_back(
        self, consumer: Consumer, how: Settling, deadline: float = inf, generation: int | None = None
    ) -> Consumer:
        """Settle the open lease to its end."""
        lease = consumer.open
        while lease is not None and consumer.open is not None and consumer.open.number == lease.number:
            step = commands.SettleLease(consumer.queue, consumer.name, generation, lease.number, how)
            before, consumer = consumer, await self._writer.execute(step)
            if trio.current_time() >= deadline or (how is Settling.EXPIRE and consumer == before):
                break  # time is over, or it is used again
        return consumer

    async def delete_consumer(self, queue: str, name: str) -> None:
        """Give the messages of the open lease back, and forget the consumer.

        From the first moment on its generation is refused, so that nobody goes on with it. Raises ConsumerNotFound, and
        ConsumerFenced if it is opened again before it is forgotten.
        """
        await self._delete(queue, name, inf)

    async def delete_for_a_while(self, queue: str, name: str) -> bool:
        """`delete_consumer`, for about CONSUMER_REQUEST_SECONDS. False while it is not forgotten: call again."""
        return await self._delete(queue, name, _deadline()) is None

    async def _delete(self, queue: str, name: str, deadline: float) -> Consumer | None:
        consumer: Consumer | None = self._consumer(queue, name)
        generation = None
        while consumer is not None and (generation is None or trio.current_time() < deadline):
            forget = commands.ForgetConsumer(queue, name, generation)
            consumer = await self._writer.execute(forget)
            if consumer is not None:
                generation = consumer.generation
                consumer = await self._give_back(consumer, Settling.RELEASE, deadline, generation)
        return consumer

    async def consumers(self, queue: str | None = None) -> list[ConsumerInfo]:
        """The consumers of a queue (None: of all) by queue and name."""
        if queue is not None:
            check_queue_name(queue)
        await trio.lowlevel.checkpoint()
        known = self._writer.snapshot().consumers.values()
        return self._infos(consumer for consumer in known if queue in (None, consumer.queue))

    def consumers_page(
        self, after: str, limit: int, may_see: Callable[[str], bool]
    ) -> tuple[list[ConsumerInfo], str | None]:
        """The consumers of queues that may be seen, by queue and name, behind the key `after`.

        With the key of the last one if there are more.
        """
        known = self._writer.snapshot().consumers
        behind = (key for key, each in known.items() if key > after and may_see(each.queue))
        keys = heapq.nsmallest(limit + 1, behind)
        page = keys[:limit]
        return [self._consumer_info(known[key]) for key in page], page[-1] if len(keys) > limit else None

    async def consumer(self, queue: str, name: str) -> ConsumerInfo:
        """One consumer. Raises ConsumerNotFound."""
        await trio.lowlevel.checkpoint()
        return self._consumer_info(self._consumer(queue, name))

    async def settle_unused(self) -> int:
        """End the leases of idle consumers, drop the pages that they keep, and end what was left unfinished.

        Returns how many leases ended. One that fails stops no other: its error is raised in the end.
        """
        count = 0
        failed: ServiceError | None = None
        for consumer in list(self._writer.snapshot().consumers.values()):
            try:
                count += await self._settle_idle(consumer)
            except Stopping:
                raise
            except ConsumerNotFound:
                continue  # it was deleted meanwhile
            except ServiceError as error:
                failed = error
        if failed is not None:
            raise failed
        return count

    async def _settle_idle(self, consumer: Consumer) -> bool:
        """`settle_unused` of one consumer; True if its lease ended."""
        known: Consumer | None = consumer
        ended = False
        if consumer.settling is not None or consumer.open_lease_expired(self._clock.now_ms()):
            known = await self._give_back(consumer, Settling.EXPIRE)
            ended = known.open is None
        while known is not None and (known.dropping or (known.kept and known.is_idle(self._clock.now_ms()))):
            known = await self._writer.execute(commands.DropPages(known.queue, known.name))
        return ended

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
        if lease is not None and not consumer.being_given_back:
            readable.append(lease.number)
        return seen(
            ConsumerInfo,
            consumer,
            complete=lease is None or consumer.complete,
            open_messages=0 if lease is None else lease.messages,
            open_bytes=0 if lease is None else lease.bytes,
            oldest_readable=min(readable, default=0),
            ready=0 if counts is None else counts.ready,
            expires_at=None if lease is None else consumer.used_at + consumer.idle_ms,
            settling=consumer.settling is not None,
        )


def _deadline() -> float:
    """When one request is to stop its work."""
    return trio.current_time() + limits.CONSUMER_REQUEST_SECONDS


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
        made_at=lease.made_at,
    )
