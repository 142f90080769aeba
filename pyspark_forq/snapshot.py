"""Batch read of a queue: its messages, while the queue keeps working.

Each task reads a range of sequence numbers in pages. A message that is sent or ends meanwhile may or may not be read.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from forq_trio.client.sync_pipelines import Pipelines
from pyspark_forq.options import Options
from pyspark_forq.ranges import TASKS_DEFAULT, Range
from pyspark_forq.rows import arrow_schema, batch_of
from pyspark_forq.server import ask, in_our_words


class SnapshotReader(DataSourceReader):
    """The messages of a queue."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """The ranges that the server proposes."""
        queue = str(self._options.queue)
        count = self._options.min_partitions or TASKS_DEFAULT
        with in_our_words(self._options):
            found = ask(self._options, Pipelines.export_partitions, queue, count)
        return [Range(bound.after, bound.until) for bound in found.bounds]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a range, a page a batch."""
        if not isinstance(partition, Range):
            return  # Spark makes up a partition when there is none
        queue, schema = str(self._options.queue), arrow_schema(self._schema)
        after: int | None = partition.after
        while after is not None and after < partition.until:
            with in_our_words(self._options):
                page = ask(self._options, Pipelines.export, queue, after=after, until=partition.until)
            if page.messages:
                yield batch_of(page.messages, schema)
            after = page.next
