"""Writes of streams: each micro-batch is staged and published as writing.py says."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from pyspark_forq.errors import ForqDataSourceError
from pyspark_forq.options import Options
from pyspark_forq.writing import QUERY, TaskStages, discard, present, publish, stage


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskStages:
        """Stage a partition."""
        staged = stage(self._options, iterator)
        if staged.query is None:
            raise ForqDataSourceError(f"this version of Spark does not tell tasks {QUERY}: use foreachBatch")
        return staged

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Publish all partitions at once."""
        staged = present(messages)
        if staged:
            publish(self._options, f"spark-query-{staged[0].query}", batchId, staged)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Give up what was staged."""
        discard(self._options, present(messages))
