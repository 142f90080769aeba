"""Streams that start one after the other. Their writers stand in for Spark's, whose processes cannot be slowed down;
the program of docs/spark.md starts real ones (test_docs.py).
"""

from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException

from pyspark_forq import start_in_turn
from pyspark_forq.starting import STARTS_MAX, WORKER_WAS_SLOW

SLOW = StreamingQueryException(f"[STREAM_FAILED] SparkException: {WORKER_WAS_SLOW}. SQLSTATE: XXKST")
BROKEN = StreamingQueryException("[STREAM_FAILED] the table is gone")


class Query:
    """A query that needs so many looks to its first progress, or fails, or ends without any."""

    def __init__(self, name: str, fate: int | StreamingQueryException | None, log: list[str]) -> None:
        self._name, self._fate, self._log = name, fate, log
        self._looks = 0

    @property
    def lastProgress(self) -> object:
        return "progress" if isinstance(self._fate, int) and self._looks >= self._fate else None

    def awaitTermination(self, timeout: int) -> bool:
        self._looks += 1
        self._log.append(f"{self._name} is awaited")
        if isinstance(self._fate, StreamingQueryException):
            raise self._fate
        return self._fate is None

    def stop(self) -> None:
        self._log.append(f"{self._name} is stopped")


class Writer:
    """Starts queries with these fates, one after the other, the last one for ever."""

    def __init__(self, name: str, log: list[str], *fates: int | StreamingQueryException | None) -> None:
        self._name, self._log, self._fates = name, log, list(fates)

    def start(self) -> Query:
        self._log.append(f"{self._name} starts")
        fate = self._fates.pop(0) if len(self._fates) > 1 else self._fates[0]
        return Query(self._name, fate, self._log)


def started(*writers: Writer, **options: float) -> list[Any]:
    return cast("list[Any]", start_in_turn(*cast("Any", writers), **options))


def test_each_starts_when_the_one_before_has_made_progress_or_ended() -> None:
    log: list[str] = []
    queries = started(Writer("a", log, 2), Writer("b", log, None), Writer("c", log, 0))
    assert [query._name for query in queries] == ["a", "b", "c"]
    assert log == ["a starts", "a is awaited", "a is awaited", "b starts", "b is awaited", "c starts"]


def test_one_whose_process_was_too_slow_is_started_again() -> None:
    log: list[str] = []
    started(Writer("a", log, SLOW, SLOW, 0), Writer("b", log, 0))
    assert [line for line in log if line.endswith("starts")] == ["a starts"] * 3 + ["b starts"]


def test_one_that_is_too_slow_each_time_fails() -> None:
    log: list[str] = []
    with pytest.raises(StreamingQueryException, match=WORKER_WAS_SLOW):
        started(Writer("a", log, SLOW))
    assert log.count("a starts") == STARTS_MAX


def test_where_one_fails_the_others_are_stopped() -> None:
    log: list[str] = []
    with pytest.raises(StreamingQueryException, match="the table is gone"):
        started(Writer("a", log, 0), Writer("b", log, BROKEN), Writer("c", log, 0))
    assert log == ["a starts", "b starts", "b is awaited", "a is stopped"]


def test_one_whose_first_batch_takes_long_is_not_waited_for_longer_than_asked() -> None:
    log: list[str] = []
    started(Writer("a", log, 99), Writer("b", log, 0), wait_seconds=0)
    assert log == ["a starts", "b starts"]
