"""The two logs of the server as streams.

An offset is a whole range, `{"after": 10, "until": 30}`: the micro-batch that ends there has the ids from 11 to 30. So
a batch that is repeated after a crash is the same, even if the start would differ by then ("latest" has moved, and the
earliest records may be gone). Only the offset of "earliest" is not a range: its place is decided when the first range
is made.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pyspark_forq.idle import Idle
from pyspark_forq.logs import bounds, lose_ids, read_range
from pyspark_forq.losses import lose
from pyspark_forq.options import EARLIEST, LATEST, Options
from pyspark_forq.ranges import cut, tasks_for
from pyspark_forq.server import in_our_words


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

        "earliest" is marked, to tell it from a request for id 1, which may be gone. "latest" is marked, so that even a
        first batch without rows changes the offset: Spark then writes it to the checkpoint, and a query that ends
        before there is something to read continues from there.
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
        """The limit that the option maxMessagesPerTrigger sets."""
        return ReadMaxRows(self._options.max_messages_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """Let the query end at the current end of the log."""
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
        """The id after which the log can be read further, when `done` was the last one read."""
        if first - 1 <= done <= last:
            return done
        if done > last:
            lose(
                self._options,
                f"the checkpoint is at {done:,} and the server's {self._options.mode} end at {last:,} (is this"
                " another server, or one restored from a backup?)",
                "they are read from the beginning",
            )
        else:
            lose_ids(self._options, done, first)
        return first - 1

    def reportLatestOffset(self) -> dict[str, int]:
        """The end of the log, for the query's progress."""
        with in_our_words(self._options):
            _, last = bounds(self._options)
        return {"until": last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The range of the offset `end`, cut into ranges of about equal length."""
        rows = end["until"] - end["after"]
        return list(cut(end["after"], end["until"], tasks_for(rows, self._options.min_partitions)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a range."""
        return read_range(self._options, self._schema, partition)
