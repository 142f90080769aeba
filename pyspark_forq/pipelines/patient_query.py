"""A streaming query that outlives a busy machine.

Spark gives the Python process of a streaming source ten seconds to start. They are fixed in its code
(`PythonWorkerFactory.createSimpleWorker`), and no setting changes them. Nothing was read then, and a query goes on from
its checkpoint: so it is started again.
"""

from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

STARTS_MAX = 6
_TOO_SLOW = "Python worker failed to connect back"


class PatientQuery:
    """A query, made by `start`, which is called again, STARTS_MAX times in all, while its process was too slow."""

    def __init__(self, start: Callable[[], StreamingQuery]) -> None:
        self._start = start
        self._starts = 1
        self.query = start()

    def has_ended(self, wait_seconds: int) -> bool:
        """Wait so long for its end; True if it has come. Raises what Spark raised."""
        try:
            return bool(self.query.awaitTermination(wait_seconds))
        except StreamingQueryException as problem:
            if _TOO_SLOW not in str(problem) or self._starts == STARTS_MAX:
                raise
        self._starts += 1
        self.query = self._start()
        return False
