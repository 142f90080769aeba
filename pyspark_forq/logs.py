"""Reads of the two logs of the server, lifecycle events and history. log_streams.py has those of streams.

A log is read by id. Ids follow the order of commits, so that no id appears below one that was read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from forq_trio.client.sync_pipelines import Pipelines
from forq_trio.model.errors import ForqError
from pyspark_forq.losses import lose
from pyspark_forq.options import EARLIEST, Options
from pyspark_forq.ranges import Range, cut, tasks_for
from pyspark_forq.rows import arrow_schema, batch_of
from pyspark_forq.server import GONE, ask, in_our_words

PAGE_ROWS = 10_000


@dataclass(frozen=True)
class Page:
    """Some records of a log, the id after which the next ones come, and the first id that the server still has."""

    records: Sequence[object]
    next: int
    first: int


def bounds(options: Options) -> tuple[int, int]:
    """The first and the last id that are stored; first is last + 1 if there are none."""
    if options.mode == "events":
        events = ask(options, Pipelines.event_range)
        return events.first, events.last
    history = ask(options, Pipelines.history_range)
    return history.first, history.last


def _page(options: Options, after: int, until: int) -> Page:
    if options.mode == "events":
        events = ask(options, Pipelines.events, after, until=until, limit=PAGE_ROWS, queue=options.queue)
        return Page(events.events, events.next, events.first)
    history = ask(options, Pipelines.history, after, until=until, limit=PAGE_ROWS, queue=options.queue)
    return Page(history.messages, history.next, history.first)


def lose_ids(options: Options, after: int, first: int) -> None:
    """Report the ids between `after` and `first`, which are gone, as lost. Raises like `lose`."""
    lose(
        options,
        f"{options.mode} {after + 1:,} to {first - 1:,} are gone: the server has not kept them that long",
        "the read goes on behind them",
    )


def read_range(options: Options, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The records of a range; each page becomes an Arrow batch."""
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
    """The next page of a range. Ids that are gone are skipped if that is allowed; else raises ForqDataLoss.

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
    lose_ids(options, after, first)
    return _page(options, first - 1, until) if first <= until else Page((), until, first)


class LogReader(DataSourceReader):
    """Reads the records that a log has when the read begins."""

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
                lose_ids(options, after, first)
                after = first - 1
        if options.ending_offsets is not None:
            last = min(last, options.ending_offsets)
        return list(cut(after, last, tasks_for(last - after, options.min_partitions)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a range."""
        return read_range(self._options, self._schema, partition)
