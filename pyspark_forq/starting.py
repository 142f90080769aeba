"""Starts several streams of one program, one after the other.

Spark starts a Python process for each stream of a data source, and gives it ten seconds, which no setting changes. If
several start at once on a busy machine, they delay each other beyond that. Started one after the other, each has the
machine for itself; one that is too slow nevertheless is started again, and continues from its checkpoint.
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
    """Start streams in this order, each when the one before has made progress or ended; returns the queries.

    wait_seconds: how long to wait for the progress of a query, whose first batch may take longer. A query whose process
    was too slow to start is started again, five times in all. If one fails each time, or in another way, the others are
    stopped and StreamingQueryException is raised.
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
    """Return when the query has made progress or has ended well. Raises StreamingQueryException if it failed."""
    until = time.monotonic() + wait_seconds
    while query.lastProgress is None and time.monotonic() < until:
        if query.awaitTermination(_LOOK_SECONDS):
            return
