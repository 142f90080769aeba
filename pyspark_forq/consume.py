"""The stream that drains a queue, by the leases of a consumer.

Each micro-batch is one lease, and its offset names the lease (lease_offsets.py). The server always answers the same
messages for a number, so tasks may be repeated, and a killed query continues with its batch. Spark asks for the batch
behind `start` only when everything up to `start` has been written and logged; so this is where leases are acknowledged.
Async progress tracking would break that rule.

If more than one batch is waiting, the lease of the next batch is made while Spark works on the current one (ahead.py).
The same call acknowledges written and logged batches, so Spark waits for neither. It is tried once: if it fails,
`latestOffset` does the same when Spark asks for the next batch.

Opening a consumer starts a generation, and older ones are refused from then on: of two queries with one consumer, the
one that was started last goes on. A reader opens the consumer only when it knows that the checkpoint belongs to it, so
a wrong checkpoint ends no other query. Only the lease that an offset names, by its number and time, is read and
acknowledged. The constructor asks the server nothing, because Spark makes readers in several processes, and asks for
offsets in only one of them.

The consumer counts as used however long a batch takes (heartbeat.py). The process in which Spark asks for offsets ends
with its driver, and the heartbeat with it.

A lease may have been released, by a person or because the consumer was idle for too long. If it was never part of a
batch, it is skipped. If it was, the batch cannot be repeated, and the query fails (or the batch is empty, with
failOnDataLoss=false).

The lease of a repeated batch is never made anew. A server that does not have the number is another one, or was restored
from a backup; and a sink that can repeat a batch would take new messages under an old number for written ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Concatenate, ParamSpec, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from forq_trio.client.sync_pipelines import Pipelines
from forq_trio.model.consumers.bodies import ConsumerInfo, ConsumerLease
from forq_trio.model.errors import ConsumerNotFound, LeaseGone, LeaseOutOfOrder, OtherLease
from forq_trio.model.limits import CONSUMER_LEASE_MESSAGES_MAX, CONSUMER_READ_PAGES_MAX
from pyspark_forq.ahead import Ahead
from pyspark_forq.columns import LEASE
from pyspark_forq.errors import ForqDataSourceError
from pyspark_forq.heartbeat import Heartbeat
from pyspark_forq.idle import Idle
from pyspark_forq.lease_offsets import (
    ADVICE,
    Lease,
    Offset,
    check_lease,
    check_names,
    made_at_of,
    offset_of,
    read_offset,
    unproven,
    unproven_batch,
)
from pyspark_forq.losses import lose
from pyspark_forq.options import Options
from pyspark_forq.ranges import TASK_ROWS, tasks_for
from pyspark_forq.rows import arrow_schema, batch_of
from pyspark_forq.server import ask, in_our_words

ArgumentsP = ParamSpec("ArgumentsP")
ResultT = TypeVar("ResultT")

TASK_BYTES = 8 * 2**20
"""A task of its own is worthwhile only for this many bytes of lines, and for TASK_ROWS messages."""


@dataclass(frozen=True)
class Pages(InputPartition):
    """Some pages of a lease, from `first` up to but not including `end`. lease: the value of the column `lease`."""

    number: int
    made_at: int | None
    lease: str
    first: int
    end: int


class ConsumeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The messages of a queue, each once."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._queue = str(options.queue)
        self._consumer = str(options.consumer)
        self._opened: ConsumerInfo | None = None
        self._initial: Offset | None = None
        self._is_checked = False  # whether the offset with which this process began was checked
        self._acknowledged = 0
        self._idle = Idle()
        self._heartbeat = Heartbeat()
        self._ahead = Ahead()
        self._leased_at_start = 0  # this and the next: of a query that ends when it has read what there is
        self._ready_left: int | None = None
        self._lease: ConsumerLease | None = None

    def initialOffset(self) -> Offset:
        """Where a query without a checkpoint begins: after the last acknowledged lease. Spark asks twice."""
        if self._initial is None:
            with in_our_words(self._options):
                info = self._consumer_now()
            self._initial = offset_of(info.acknowledged, made_at_of(info, info.acknowledged), info)
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit that the option maxMessagesPerTrigger sets."""
        return ReadMaxRows(self._options.max_messages_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """Let the query end when it has read the current leases and as many messages as are ready now."""
        with in_our_words(self._options):
            info = self._consumer_now()
        self._leased_at_start, self._ready_left = info.leased, info.ready

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Acknowledge everything up to `start`, and lease what is behind it; `start` itself when nothing is ready."""
        wanted = self._options.max_messages_per_trigger
        if isinstance(limit, ReadMaxRows):
            wanted = limit.max_rows
        with in_our_words(self._options):
            written = self._begin_at(start)
        done = written.number
        made = self._ahead.take()
        if self._ready_left is not None and done >= self._leased_at_start:
            wanted = min(wanted, self._ready_left)
        wanted = min(wanted, CONSUMER_LEASE_MESSAGES_MAX)
        with in_our_words(self._options):
            if made is not None and made.number == done + 1 and self._is_next(made, wanted):
                lease = self._lease = made
            else:
                self._acknowledge(written)
                if wanted <= 0:
                    return start
                lease = self._next_lease(written, wanted)
        if lease.messages == 0:
            if self._ready_left is None:
                self._idle.nothing()
            return start
        self._idle.something()
        if self._ready_left is not None and lease.number > self._leased_at_start:
            self._ready_left -= lease.messages
            wanted = min(wanted, self._ready_left)
        wanted = wanted if self._is_full(lease, wanted) else 0
        if wanted or done > self._acknowledged:
            self._ahead.begin(partial(self._make_ahead, written, lease.number + 1, wanted))
        return offset_of(lease.number, lease.made_at, self._open())

    def _begin_at(self, start: Offset) -> Lease:
        """The lease up to which everything is written, with its time. Raises ForqDataSourceError if it is not ours.

        A query that begins there may have waited for another one, which acknowledged more before it was refused.
        """
        written = read_offset(start)
        if not self._is_checked:
            self._check(written)
        if start == self._initial and self._open().acknowledged > written.number:
            return written._replace(number=self._open().acknowledged, made_at=None)
        read = self._lease
        if written.made_at is None and read is not None and read.number == written.number:
            return written._replace(made_at=read.made_at)
        return written

    def _check(self, lease: Lease) -> None:
        """Raise ForqDataSourceError for a lease of another consumer or server, before this query opens its own."""
        check_names(lease, self._queue, self._consumer)
        check_lease(lease, self._consumer_now())
        self._is_checked = True

    def _is_next(self, made: ConsumerLease, wanted: int) -> bool:
        """Whether a lease made ahead can be the next batch unchanged. False if another query has the consumer now."""
        is_whole = made.complete and 0 < made.messages <= wanted
        return is_whole and self._ask(Pipelines.consumer).generation == self._open().generation

    def _is_full(self, lease: ConsumerLease, wanted: int) -> bool:
        """Whether more messages may be waiting behind this lease that the next batch should have."""
        size_max = self._options.max_bytes_per_trigger
        return 0 < wanted <= lease.messages or (size_max is not None and lease.bytes >= size_max)

    def _make_ahead(self, written: Lease, number: int, wanted: int) -> ConsumerLease | None:
        """Acknowledge what is written and logged, and lease the batch after the one that Spark now reads.

        wanted: 0 for none.
        """
        once = replace(self._options, retry_seconds=0)
        of_consumer = self._queue, self._consumer, self._open().generation
        if written.number > self._acknowledged:
            ask(once, Pipelines.acknowledge, *of_consumer, written.number, made_at=written.made_at)
            self._acknowledged = written.number
        if not wanted:
            return None
        size_max = self._options.max_bytes_per_trigger
        return ask(
            once, Pipelines.lease, *of_consumer, number, max_messages=wanted, max_bytes=size_max, ahead=True
        )

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Pages of the lease `end`, in about equal parts; none when a query begins and there is nothing to lease."""
        if end == start:
            return []
        lease, wanted = self._lease, read_offset(end)
        if lease is None or (lease.number, lease.made_at) != (wanted.number, wanted.made_at):
            with in_our_words(self._options):
                lease = self._lease = self._lease_again(wanted)
        if lease is None:
            return []
        # The heartbeat asks for the page behind the last one: unlike a request for the lease, that never makes a lease.
        beat = partial(self._ask, Pipelines.lease_page, lease.number, lease.pages, made_at=lease.made_at)
        self._heartbeat.begin(beat)
        rows = max(lease.messages, lease.bytes * TASK_ROWS // TASK_BYTES)
        count = min(lease.pages, tasks_for(rows, self._options.min_partitions))
        bounds = [lease.pages * index // count for index in range(count + 1)] if count else []
        name = f"{self._consumer}-{lease.number}-{lease.made_at}"
        return [Pages(lease.number, lease.made_at, name, first, stop) for first, stop in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of some pages; each answer of the server becomes an Arrow batch."""
        assert isinstance(partition, Pages)
        schema = arrow_schema(self._schema)
        page: int | None = partition.first
        while page is not None and page < partition.end:
            pages = min(partition.end - page, CONSUMER_READ_PAGES_MAX)
            with in_our_words(self._options):
                try:
                    answer = self._ask(
                        Pipelines.lease_page, partition.number, page, pages, made_at=partition.made_at
                    )
                except LeaseGone:
                    self._lose(partition.number)
                    return
            if answer.messages:
                yield batch_of(answer.messages, schema, {LEASE: partition.lease})
            page = answer.next

    def stop(self) -> None:
        """The query has ended."""
        self._heartbeat.end()

    def reportLatestOffset(self) -> dict[str, int]:
        """The newest lease, and how many messages wait behind it, for the query's progress."""
        with in_our_words(self._options):
            info = self._consumer_now()
        return {"seq": info.leased, "ready": info.ready}

    def _ask(
        self,
        method: Callable[Concatenate[Pipelines, str, str, ArgumentsP], ResultT],
        *arguments: ArgumentsP.args,
        **more: ArgumentsP.kwargs,
    ) -> ResultT:
        """Call a method of the client about this consumer."""
        return ask(self._options, method, self._queue, self._consumer, *arguments, **more)

    def _open(self) -> ConsumerInfo:
        """The consumer as it was when this reader opened it, with the first call: its generation is this reader's."""
        if self._opened is None:
            self._opened = self._ask(Pipelines.open_consumer, idle_seconds=self._options.idle_seconds)
            self._acknowledged = self._opened.acknowledged
        return self._opened

    def _consumer_now(self) -> ConsumerInfo:
        """The consumer as it is. It is opened only where there is none, so that no other query ends by it."""
        try:
            return self._ask(Pipelines.consumer)
        except ConsumerNotFound:
            return self._open()

    def _info(self) -> ConsumerInfo:
        self._open()
        return self._ask(Pipelines.consumer)

    def _acknowledge(self, written: Lease) -> None:
        """Acknowledge the leases up to this one, whose batches have been written and logged."""
        generation, number = self._open().generation, written.number
        if number <= self._acknowledged:
            return
        if written.made_at is None and number >= self._open().released_before:
            raise unproven(written, self._info())
        try:
            self._ask(Pipelines.acknowledge, generation, number, made_at=written.made_at)
        except (LeaseOutOfOrder, OtherLease):
            raise self._not_ours(written) from None
        except LeaseGone:
            lose(
                self._options,
                f"lease {number} of consumer {self._consumer!r} was given back after its batch was written, so its"
                " messages will come again",
                "the query goes on",
            )
        self._acknowledged = number

    def _next_lease(self, written: Lease, wanted: int) -> ConsumerLease:
        """The lease after this one; it has no messages if there was nothing to lease."""
        number = written.number + 1
        try:
            self._lease = self._make(number, wanted)
        except LeaseOutOfOrder:
            raise self._not_ours(written) from None
        except LeaseGone:
            self._lease = self._make(self._behind_gone(number), wanted)
        return self._lease

    def _make(self, number: int, wanted: int) -> ConsumerLease:
        """The complete lease `number`: the one that the server has, or else one of the messages that are ready now."""
        return self._ask(
            Pipelines.lease,
            self._open().generation,
            number,
            max_messages=wanted,
            max_bytes=self._options.max_bytes_per_trigger,
        )

    def _behind_gone(self, number: int) -> int:
        """The number of the lease to take instead of `number`, which is gone and was part of no batch."""
        info = self._info()
        if number <= info.acknowledged:
            lose(
                self._options,
                f"consumer {self._consumer!r} has acknowledged lease {number} long ago and is at {info.acknowledged}:"
                " this checkpoint is older",
                "the query goes on behind what is gone",
            )
        return info.oldest_readable if info.oldest_readable > number else info.leased + 1

    def _lease_again(self, wanted: Lease) -> ConsumerLease | None:
        """The lease of a batch that is repeated; None when it is gone and that is allowed."""
        self._check(wanted)
        if wanted.made_at is None:
            raise unproven_batch(wanted, self._consumer)
        info, number = self._info(), wanted.number
        if number == info.leased and not info.complete:
            raise self._not_ours(wanted)
        try:
            return self._make(number, self._options.max_messages_per_trigger)
        except LeaseGone:
            self._lose(number)
            return None

    def _lose(self, number: int) -> None:
        """The messages of a batch's lease are lost. Raises ForqDataLoss, unless that is allowed."""
        lose(
            self._options,
            f"lease {number} of consumer {self._consumer!r} of queue {self._queue!r} is gone: it was given"
            " back, or acknowledged long ago",
            "its batch is taken as empty",
        )

    def _not_ours(self, lease: Lease) -> ForqDataSourceError:
        """The error for a checkpoint that the server's consumer does not fit."""
        info = self._info()
        check_lease(lease, info)
        return ForqDataSourceError(
            f"the checkpoint is at lease {lease.number} of consumer {self._consumer!r}, and the server is at another"
            f" one, or has not completed this one: the server was restored from a backup. {ADVICE}"
        )
