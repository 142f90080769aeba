"""Starts several streams of one program, one after the other.

Spark starts a process of Python for each stream of a data source, and gives it ten seconds, which no setting changes.
Where several start at once on a busy machine, each delays the others beyond that. In turn each has the machine for
itself; one that was too slow all the same is started again, and goes on from its checkpoint.
"""

import time

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

WORKER_WAS_SLOW = "Python worker failed to connect back"
STARTS_MAX = 5
WAIT_SECONDS = 60.0
_LOOK_SECONDS = 1


def start_in_turn(*writers: DataStreamWriter, wait_seconds: float = WAIT_SECONDS) -> list[StreamingQuery]:
    """Start these streams in their order, each when the one before has made progress or ended; the queries.

    wait_seconds: a query without progress for so long, because its first batch takes longer, is not waited for any
    more. One whose process was too slow to start is started again, five times in all. Raises StreamingQueryException
    where one fails otherwise, or each time, when the others are stopped.
    """
    started: list[StreamingQuery] = []
    try:
        for writer in writers:
            _start(writer, started, wait_seconds)
    except BaseException:
        for query in started:
            query.stop()
        raise
    return started


def _start(writer: DataStreamWriter, started: list[StreamingQuery], wait_seconds: float) -> None:
    """Start one, and add it to those that are started."""
    for left in reversed(range(STARTS_MAX)):
        query = writer.start()
        try:
            _await_progress(query, wait_seconds)
        except StreamingQueryException as problem:
            if WORKER_WAS_SLOW not in str(problem) or not left:
                raise
        else:
            started.append(query)
            return


def _await_progress(query: StreamingQuery, wait_seconds: float) -> None:
    """Return when the query has made progress, or has ended well. Raises StreamingQueryException where it failed."""
    until = time.monotonic() + wait_seconds
    while query.lastProgress is None and time.monotonic() < until:
        if query.awaitTermination(_LOOK_SECONDS):
            return
