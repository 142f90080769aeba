"""Reads of the two logs of the server, lifecycle events and history: in batches and as streams.

A log is read by id. Ids follow the order of commits, so that no id appears below one that was read. An offset is a
whole range, `{"after": 10, "until": 30}`: the micro-batch that ends there has the ids from 11 to 30. So a batch that is
repeated after a crash is the same, even if the start would be another by then ("latest" has moved, and what was
earliest may be gone). Only the offset of "earliest" is none: it is where the log begins when the first range is made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from forq_trio.client.sync import ForqClient
from forq_trio.model.errors import ForqError
from pyspark_forq.idle import Idle
from pyspark_forq.losses import lose
from pyspark_forq.options import EARLIEST, LATEST, Options
from pyspark_forq.ranges import Range, cut, tasks_for
from pyspark_forq.rows import arrow_schema, batch_of
from pyspark_forq.server import GONE, ask, in_our_words

PAGE_ROWS = 10_000


@dataclass(frozen=True)
class Page:
    """Some records of a log, the id behind which the next ones are, and the first id that the server has kept."""

    records: Sequence[object]
    next: int
    first: int


def bounds(options: Options) -> tuple[int, int]:
    """The first and the last id that are kept; first is last + 1 when there are none."""
    if options.mode == "events":
        events = ask(options, ForqClient.event_range)
        return events.first, events.last
    history = ask(options, ForqClient.history_range)
    return history.first, history.last


def _page(options: Options, after: int, until: int) -> Page:
    if options.mode == "events":
        events = ask(options, ForqClient.events, after, until=until, limit=PAGE_ROWS, queue=options.queue)
        return Page(events.events, events.next, events.first)
    history = ask(options, ForqClient.history, after, until=until, limit=PAGE_ROWS, queue=options.queue)
    return Page(history.messages, history.next, history.first)


def _lose(options: Options, after: int, first: int) -> None:
    """Ids behind `after` are gone up to `first`."""
    lose(
        options,
        f"{options.mode} {after + 1:,} to {first - 1:,} are gone: the server has not kept them that long;"
        " with failOnDataLoss=false the read goes on behind them",
    )


def _read(options: Options, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The records of a range, a page a batch."""
    if not isinstance(partition, Range):
        return  # Spark makes up a partition when there is none
    columns = arrow_schema(schema)
    after = partition.after
    while after < partition.until:
        with in_our_words(options):
            page = _page_behind(options, after, partition.until)
        if page.records:
            yield batch_of(page.records, columns)
        if page.next <= after:
            return
        after = page.next


def _page_behind(options: Options, after: int, until: int) -> Page:
    """The next page of a range. What the server has not kept is skipped if that is allowed, else ForqDataLoss raised.

    The server refuses ids that are gone, but takes 0 for where its log begins.
    """
    try:
        page = _page(options, after, until)
    except ForqError as problem:
        if problem.code not in GONE:
            raise
        first, _ = bounds(options)
    else:
        first = page.first
        if first <= after + 1:
            return page
    _lose(options, after, first)
    return _page(options, first - 1, until) if first <= until else Page((), until, first)


class LogReader(DataSourceReader):
    """What is in a log when the read begins."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Ranges of ids, about equally long."""
        options = self._options
        with in_our_words(options):
            first, last = bounds(options)
        after = first - 1
        if options.starting_offsets != EARLIEST:
            after = int(options.starting_offsets) - 1
            if after < first - 1:
                _lose(options, after, first)
                after = first - 1
        if options.ending_offsets is not None:
            last = min(last, options.ending_offsets)
        return list(cut(after, last, tasks_for(last - after, options.min_partitions)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a range."""
        return _read(self._options, self._schema, partition)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A log as it grows."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._initial: int | None = None
        self._idle = Idle()
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        """Where a query without a checkpoint begins; Spark asks twice.

        "earliest" is marked, because id 1 may be asked for as well, and it may be gone. "latest" is marked, so that
        even a first batch without rows has another offset: it goes into the checkpoint, and a query that ends before
        there is something to read goes on from there.
        """
        starting = self._options.starting_offsets
        if starting == EARLIEST:
            return {"after": 0, "until": 0, "earliest": 1}
        if starting != LATEST:
            return {"after": int(starting) - 1, "until": int(starting) - 1}
        if self._initial is None:
            with in_our_words(self._options):
                _, self._initial = bounds(self._options)
        return {"after": self._initial, "until": self._initial, "latest": 1}

    def getDefaultReadLimit(self) -> ReadLimit:
        """As option maxMessagesPerTrigger says."""
        return ReadMaxRows(self._options.max_messages_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends where the log ends now."""
        with in_our_words(self._options):
            _, self._target = bounds(self._options)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The next range; `start` itself when there is nothing behind it."""
        with in_our_words(self._options):
            first, last = bounds(self._options)
        after = first - 1 if "earliest" in start else self._behind(start["until"], first, last)
        if self._target is not None:
            last = min(last, self._target)
        if isinstance(limit, ReadMaxRows):
            last = min(last, after + limit.max_rows)
        if last > after:
            self._idle.something()
            return {"after": after, "until": last}
        if "latest" in start:
            return {"after": after, "until": after}
        if self._target is None:
            self._idle.nothing()
        return start

    def _behind(self, done: int, first: int, last: int) -> int:
        """The id behind which the log can be read on, when `done` is the last one that was read."""
        if first - 1 <= done <= last:
            return done
        if done > last:
            lose(
                self._options,
                f"the checkpoint is at {done:,} and the server's {self._options.mode} end at {last:,}: is this"
                " another server, or one restored from a backup? With failOnDataLoss=false it is read from its"
                " beginning",
            )
        else:
            _lose(self._options, done, first)
        return first - 1

    def reportLatestOffset(self) -> dict[str, int]:
        """The end of the log, for the query's progress."""
        with in_our_words(self._options):
            _, last = bounds(self._options)
        return {"until": last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Ranges of ids, about equally long, of what ends at `end`."""
        rows = end["until"] - end["after"]
        return list(cut(end["after"], end["until"], tasks_for(rows, self._options.min_partitions)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a range."""
        return _read(self._options, self._schema, partition)
