"""Leases of pipelines' consumers, made and settled step by step. `Broker.leases`.

A lease of 100,000 messages is made and settled by many small commands, between which the writer runs others. Each is
durable by itself. A deadline, a kill or the client's disconnect may stop a call; the same call, repeated, continues
where it stopped. A job finishes what was begun but never repeated (jobs/cleanup.py).
"""

import heapq
from collections.abc import Callable, Iterator
from math import inf

import msgspec
import trio

from forq_trio.model import commands, limits
from forq_trio.model.checks import check_range
from forq_trio.model.clock import Clock
from forq_trio.model.consumers.bodies import ConsumerInfo, ConsumerLease, LeaseTime
from forq_trio.model.consumers.types import PipelineConsumer, Settling, check_consumer_name, consumer_key
from forq_trio.model.errors import ConsumerNotFound, ServiceError, Stopping
from forq_trio.model.messages.types import QueueCounts, check_queue_name
from forq_trio.model.values import seen
from forq_trio.storage.engine import Snapshot
from forq_trio.telemetry.families import Family, by_labels, gauge
from forq_trio.writer_actor import WriterActor


class Leases:
    """Errors and cancellation are those of `Broker`'s methods for consumers.

    seconds: a call returns after about this time even if there is more to do; repeat it then. None means
    CONSUMER_REQUEST_SECONDS, the bound for a request over HTTP.
    """

    def __init__(self, writer: WriterActor, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock

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
        seconds: float | None = None,
    ) -> ConsumerLease:
        """See `Broker.lease`; after `seconds` the result may not be complete."""
        check_names(queue, name)
        _check_numbers(generation, number)
        check_range("max_messages", max_messages, 1, limits.CONSUMER_LEASE_MESSAGES_MAX)
        bytes_max = limits.CONSUMER_LEASE_BYTES_MAX if max_bytes is None else max_bytes
        check_range("max_bytes", bytes_max, 1, limits.CONSUMER_LEASE_BYTES_MAX)
        check_range("wait_ms", wait_ms, 0, limits.WAIT_MS_MAX)
        check_made_at("acknowledge_made_at", acknowledge_made_at)
        deadline = _deadline(seconds)
        if acknowledge is not None:
            check_range("acknowledge", acknowledge, 0, number - 1)
            of_consumer = queue, name, generation
            consumer = await self._acknowledge(*of_consumer, acknowledge, acknowledge_made_at, deadline)
            if consumer.acknowledged < acknowledge:
                return ConsumerLease(number, 0, 0, 0, complete=False, acknowledged=consumer.acknowledged)
        before = self._writer.snapshot().consumers.get(consumer_key(queue, name))
        if before is not None and before.being_given_back:  # its release has to end before the next lease
            before = await self._settle_unsettled(before, Settling.RELEASE, deadline)
            if before.being_given_back:
                return ConsumerLease(number, 0, 0, 0, complete=False, acknowledged=before.acknowledged)
        step = commands.LeaseMessages(queue, name, generation, number, max_messages, bytes_max, ahead)
        return await self._lease_or_wait(step, trio.current_time() + wait_ms / 1000, seconds)

    async def _lease_or_wait(
        self, step: commands.LeaseMessages, wait_until: float, seconds: float | None
    ) -> ConsumerLease:
        """Continue with the lease for `seconds`. If no messages are ready for it, wait for some until `wait_until`."""
        watches = self._writer.announced.ready
        with watches.on(step.queue) as watcher:
            while True:
                watcher.mark()
                lease = await self._lease_until(step, _deadline(seconds))
                if lease.pages or trio.current_time() >= wait_until or watches.closed:
                    return lease
                with trio.move_on_at(wait_until):
                    await watcher.wait()

    async def _lease_until(self, step: commands.LeaseMessages, deadline: float) -> ConsumerLease:
        """Repeat the step until the lease is complete or the time is up.

        A lease that is made ahead gets no further page while less than a page of messages is ready: under a steady
        stream of sends each page would have only one or two. The call that completes the lease adds them.
        """
        pages = -1
        while True:
            if step.ahead and (waiting := self._waiting(step)) is not None:
                return waiting
            lease = _lease_of(await self._writer.execute(step), step.number)
            if step.ahead and lease.pages == pages:
                return msgspec.structs.replace(lease, waiting=not lease.complete)
            pages = lease.pages
            if lease.complete or trio.current_time() >= deadline:
                return lease

    def _waiting(self, step: commands.LeaseMessages) -> ConsumerLease | None:
        """The lease that was begun ahead, if less than a further page is ready for it; else None."""
        snapshot = self._writer.snapshot()
        consumer = snapshot.consumers.get(consumer_key(step.queue, step.name))
        if consumer is None or consumer.generation != step.generation or consumer.ahead is None:
            return None
        counts = snapshot.counts.get(step.queue)
        if counts is not None and counts.ready >= limits.CONSUMER_PAGE_MESSAGES_MAX:
            return None
        lease = _lease_of(consumer, step.number)
        return None if lease.complete else msgspec.structs.replace(lease, waiting=True)

    async def acknowledge(
        self,
        queue: str,
        name: str,
        generation: int,
        number: int,
        *,
        made_at: int | None = None,
        seconds: float | None = None,
    ) -> ConsumerInfo:
        """See `Broker.acknowledge`; after `seconds`, `acknowledged` may be below `number`."""
        check_names(queue, name)
        _check_numbers(generation, number)
        check_made_at("made_at", made_at)
        deadline = _deadline(seconds)
        return self.info(await self._acknowledge(queue, name, generation, number, made_at, deadline))

    async def _acknowledge(
        self, queue: str, name: str, generation: int, number: int, made_at: int | None, deadline: float
    ) -> PipelineConsumer:
        step = commands.SettleLease(queue, name, generation, number, Settling.ACKNOWLEDGE, made_at)
        while True:
            consumer = await self._writer.execute(step)
            if consumer.acknowledged >= number or trio.current_time() >= deadline:
                return consumer

    async def release(self, queue: str, name: str, *, seconds: float | None = None) -> ConsumerInfo:
        """See `Broker.release_consumer`; after `seconds` it may be `settling`."""
        consumer = find_consumer(self._writer.snapshot(), queue, name)
        deadline = _deadline(seconds)
        return self.info(await self._settle_unsettled(consumer, Settling.RELEASE, deadline))

    async def delete(self, queue: str, name: str, *, seconds: float | None = None) -> bool:
        """See `Broker.delete_consumer`; False if the consumer is not completely deleted after `seconds`."""
        deadline = _deadline(seconds)
        consumer: PipelineConsumer | None = find_consumer(self._writer.snapshot(), queue, name)
        generation = None
        while consumer is not None and (generation is None or trio.current_time() < deadline):
            forget = commands.ForgetConsumer(queue, name, generation)
            consumer = await self._writer.execute(forget)
            if consumer is not None:
                generation = consumer.generation
                consumer = await self._settle_unsettled(consumer, Settling.RELEASE, deadline, generation)
        return consumer is None

    async def _settle_unsettled(
        self, consumer: PipelineConsumer, how: Settling, deadline: float = inf, generation: int | None = None
    ) -> PipelineConsumer:
        """Settle all unsettled leases, step by step, until `deadline`."""
        last = consumer.unsettled[-1].number if consumer.unsettled else 0
        while consumer.open is not None and consumer.open.number <= last:
            step = commands.SettleLease(consumer.queue, consumer.name, generation, consumer.open.number, how)
            before, consumer = consumer, await self._writer.execute(step)
            if trio.current_time() >= deadline or (how is Settling.EXPIRE and consumer == before):
                break  # the time is up, or the consumer is used again
        return consumer

    def of(self, queue: str | None) -> list[ConsumerInfo]:
        """The consumers of a queue (None: of all), sorted by queue and name, from memory."""
        known = self._writer.snapshot().consumers.values()
        found = sorted((each for each in known if queue in (None, each.queue)), key=lambda each: each.key)
        return [self.info(each) for each in found]

    def page(
        self, after: str, limit: int, may_see: Callable[[str], bool]
    ) -> tuple[list[ConsumerInfo], str | None]:
        """A page of the consumers of visible queues, sorted by queue and name, after the key `after`.

        Also returns the key of the last one if there are more, else None.
        """
        known = self._writer.snapshot().consumers
        behind = (key for key, each in known.items() if key > after and may_see(each.queue))
        keys = heapq.nsmallest(limit + 1, behind)
        page = keys[:limit]
        return [self.info(known[key]) for key in page], page[-1] if len(keys) > limit else None

    def info(self, consumer: PipelineConsumer) -> ConsumerInfo:
        """A consumer as callers see it."""
        counts = self._writer.snapshot().counts.get(consumer.queue)
        unsettled = consumer.unsettled
        readable = [each.number for each in consumer.kept]
        if unsettled and not consumer.being_given_back:
            readable.append(unsettled[0].number)
        return seen(
            ConsumerInfo,
            consumer,
            complete=not unsettled
            or (consumer.complete if consumer.ahead is None else consumer.ahead_complete),
            open_messages=sum([lease.messages for lease in unsettled]),
            open_bytes=consumer.leased_bytes,
            oldest_readable=min(readable, default=0),
            ready=0 if counts is None else counts.ready,
            expires_at=None if not unsettled else consumer.used_at + consumer.idle_ms,
            settling=consumer.settling is not None,
            created_at=consumer.created_at or None,
            leases=[LeaseTime(number, made_at) for number, made_at in consumer.lease_times().items()],
        )

    async def settle_unused(self) -> int:
        """End the leases of idle consumers, drop their pages, and finish what was left unfinished.

        Returns how many leases ended. An error stops no other consumer, and is raised at the end.
        """
        count = 0
        failed: ServiceError | None = None
        for consumer in list(self._writer.snapshot().consumers.values()):
            try:
                count += await self._settle_idle(consumer)
            except Stopping:
                raise
            except ConsumerNotFound:
                continue  # the consumer was deleted in the meantime
            except ServiceError as error:
                failed = error
        if failed is not None:
            raise failed
        return count

    async def _settle_idle(self, consumer: PipelineConsumer) -> bool:
        """`settle_unused` for one consumer; True if its lease ended."""
        known: PipelineConsumer | None = consumer
        ended = False
        if consumer.settling is not None or consumer.open_lease_expired(self._clock.now_ms()):
            known = await self._settle_unsettled(consumer, Settling.EXPIRE)
            ended = known.open is None
        while known is not None and (known.dropping or (known.kept and known.is_idle(self._clock.now_ms()))):
            known = await self._writer.execute(commands.DropPages(known.queue, known.name))
        return ended

    def families(self) -> Iterator[Family]:
        """What the metrics say of the first METRIC_CONSUMERS_MAX consumers, from the cache."""
        snapshot, now_ms = self._writer.snapshot(), self._clock.now_ms()
        labels = "queue_name", "consumer"
        first = [each for _, each in sorted(snapshot.consumers.items())[: limits.METRIC_CONSUMERS_MAX]]
        counts = {each.queue: snapshot.counts.get(each.queue) or QueueCounts() for each in first}
        yield gauge(
            "forq_consumer_lag_messages",
            "Messages that a consumer of a pipeline could lease, now; of the first 100 consumers.",
            by_labels(labels, {(each.queue, each.name): counts[each.queue].ready for each in first}),
        )
        yield gauge(
            "forq_consumer_open_messages",
            "Messages of the lease of a consumer that is not settled, now.",
            by_labels(
                labels,
                {
                    (each.queue, each.name): sum([lease.messages for lease in each.unsettled])
                    for each in first
                },
            ),
        )
        yield gauge(
            "forq_consumer_seconds_since_use",
            "How long a consumer was not used, now.",
            by_labels(
                labels,
                {(each.queue, each.name): max(now_ms - each.used_at, 0) / limits.SECOND_MS for each in first},
            ),
        )


def find_consumer(snapshot: Snapshot, queue: str, name: str) -> PipelineConsumer:
    """The consumer. Raises InvalidQueueName, InvalidName, ConsumerNotFound."""
    check_names(queue, name)
    found = snapshot.consumers.get(consumer_key(queue, name))
    if found is None:
        raise ConsumerNotFound
    return found


def _deadline(seconds: float | None) -> float:
    return trio.current_time() + (limits.CONSUMER_REQUEST_SECONDS if seconds is None else seconds)


def check_names(queue: str, name: str) -> None:
    check_queue_name(queue)
    check_consumer_name(name)


def check_made_at(field: str, made_at: int | None) -> None:
    if made_at is not None:
        check_range(field, made_at, 0, limits.SEQUENCE_MAX)


def _check_numbers(generation: int, number: int) -> None:
    check_range("generation", generation, 1, limits.SEQUENCE_MAX)
    check_range("number", number, 1, limits.SEQUENCE_MAX)


def _lease_of(consumer: PipelineConsumer, number: int) -> ConsumerLease:
    lease = consumer.readable(number)
    if lease is None:  # no message was ready
        return ConsumerLease(number, 0, 0, 0, complete=True, acknowledged=consumer.acknowledged)
    return ConsumerLease(
        number,
        lease.messages,
        lease.bytes,
        lease.pages,
        complete=consumer.is_complete(lease),
        acknowledged=consumer.acknowledged,
        made_at=lease.made_at,
    )
