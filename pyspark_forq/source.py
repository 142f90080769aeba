"""The data source `forq` as Spark knows it: which reader or writer belongs to which options.

What matters here about how Spark calls it (tests/spark/test_facts.py has a test of each point):

- Every session imports this module, even one that never uses it. So all else is imported when it is used.
- Data sources, readers and writers are made in several processes, and pickled. So constructors only store options.
- Spark calls schema() before it says whether a batch or a stream is read, and not at all for a write.
- Spark hides an error in streamReader() behind its own. So that returns a reader which raises it later (refused.py).
- Names of parameters are part of the interface: Spark passes some by keyword.
"""

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, ClassVar

try:
    from pyspark.sql.datasource import DataSource
except ImportError:
    from pyspark_forq.versions import DATA_SOURCES

    DATA_SOURCES.need()
    raise

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from pyspark_forq.options import Options


class ForqDataSource(DataSource):
    """Queues of a Forq server, and their logs, as tables and streams."""

    options: MutableMapping[str, str]
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Options from the session's configuration (spark_conf.py), for reads and writes that do not set them."""

    @classmethod
    def name(cls) -> str:
        """As in `format("forq")`."""
        return "forq"

    def schema(self) -> "StructType":
        """The columns of a read: a batch without a mode is a snapshot, a stream without one has a consumer."""
        from pyspark_forq.errors import ForqOptionError
        from pyspark_forq.options import likely_uses, parsed
        from pyspark_forq.schemas import schema_of
        from pyspark_forq.sql_tables import created_with, storing

        created = created_with(self.options)
        given = self.options if created is None else created
        likely, other = likely_uses(given)
        try:
            columns = schema_of(parsed(given, likely, self.defaults))
        except ForqOptionError as problem:
            try:
                columns = schema_of(parsed(given, other, self.defaults))
            except ForqOptionError:
                raise problem from None
        return columns if created is None else storing(columns, created)

    def reader(self, schema: "StructType") -> "DataSourceReader":
        """The reader of a queue's current messages, or of a log up to its current end."""
        from pyspark_forq.logs import LogReader
        from pyspark_forq.options import parsed
        from pyspark_forq.schemas import check_schema
        from pyspark_forq.snapshot import SnapshotReader
        from pyspark_forq.sql_tables import given_to

        options = parsed(given_to(schema, self.options), "read", self.defaults)
        check_schema(schema, options)
        return SnapshotReader(options, schema) if options.mode == "snapshot" else LogReader(options, schema)

    def streamReader(self, schema: "StructType") -> "DataSourceStreamReader":
        """The reader that drains a queue, or follows a log."""
        from pyspark_forq.errors import ForqDataSourceError
        from pyspark_forq.options import parsed
        from pyspark_forq.refused import RefusedStream
        from pyspark_forq.schemas import check_schema
        from pyspark_forq.sql_tables import given_to
        from pyspark_forq.versions import STREAM_READS

        try:
            STREAM_READS.need()
            options = parsed(given_to(schema, self.options), "stream", self.defaults)
            check_schema(schema, options)
        except ForqDataSourceError as problem:
            return RefusedStream(problem)
        from pyspark_forq.consume import ConsumeReader
        from pyspark_forq.log_streams import LogStreamReader

        return (
            ConsumeReader(options, schema) if options.mode == "consume" else LogStreamReader(options, schema)
        )

    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceWriter":
        """Sends the rows of a data frame."""
        from pyspark_forq.writing import BatchWriter

        return BatchWriter(self._written(schema, overwrite, "write"))

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "DataSourceStreamWriter":
        """Sends the rows of a stream."""
        from pyspark_forq.versions import STREAM_WRITES

        STREAM_WRITES.need()
        from pyspark_forq.stream_writing import StreamWriter

        return StreamWriter(self._written(schema, overwrite, "stream write"))

    def _written(self, schema: "StructType", overwrite: bool, use: str) -> "Options":
        from pyspark_forq.errors import ForqOptionError
        from pyspark_forq.options import for_writes, parsed
        from pyspark_forq.schemas import check_columns, is_table
        from pyspark_forq.sql_tables import given_to

        given = given_to(schema, self.options)
        is_insert = is_table(schema)
        options = parsed(for_writes(given) if is_insert else given, use, self.defaults)
        if overwrite:
            raise ForqOptionError("a queue cannot be overwritten: write with mode (outputMode) 'append'")
        if not is_insert:
            check_columns(schema, options.queue)
        return options
