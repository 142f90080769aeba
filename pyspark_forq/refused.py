"""A stream that cannot begin, because of its options or Spark's version. It raises the reason in the first call whose
errors Spark shows.
"""

from typing import NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

from pyspark_forq.errors import ForqDataSourceError


class RefusedStream(DataSourceStreamReader):
    """Raises `problem` in every call with which a query can begin."""

    def __init__(self, problem: ForqDataSourceError) -> None:
        self._problem = problem

    def initialOffset(self) -> NoReturn:
        """The first call of a new query."""
        raise self._problem

    def getDefaultReadLimit(self) -> NoReturn:
        """The first call of a query that goes on from a checkpoint."""
        raise self._problem

    def latestOffset(self, start: object = None, limit: object = None) -> NoReturn:
        """Is not reached: a call before it has raised."""
        raise self._problem

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> NoReturn:
        """A batch that is repeated is refused as well."""
        raise self._problem

    def read(self, partition: object) -> NoReturn:
        """Is not reached: a call before it has raised."""
        raise self._problem
