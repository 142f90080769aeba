"""The families of an embedded broker, read from any thread."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future

import trio

from forq_trio.telemetry.families import Family, ReadFamilies
from forq_trio.writer_actor import WriterActor

READ_SECONDS_MAX = 5.0
"""Prometheus waits for ten."""


class BrokerMetrics:
    """Reads the families of these owners in trio's thread, where a server reads them: there nothing changes meanwhile.

    Made in that thread.
    """

    def __init__(self, owners: Sequence[ReadFamilies], writer: WriterActor) -> None:
        self._owners = owners
        self._writer = writer
        self._token = trio.lowlevel.current_trio_token()
        self._thread = threading.get_ident()
        self._process = os.getpid()

    def read(self) -> list[Family]:
        """All families as of now; what is in them changes no more. Waits for trio's thread, but not in it.

        Empty once the broker is closed, in the child of a fork, and if that thread has no moment for READ_SECONDS_MAX.
        """
        if os.getpid() != self._process:
            return []
        if threading.get_ident() == self._thread:
            return self._read()
        # Not trio.from_thread, which refuses threads that run a trio of their own.
        found: Future[list[Family]] = Future()
        try:
            self._token.run_sync_soon(self._read_into, found)
            return found.result(READ_SECONDS_MAX)
        except (trio.RunFinishedError, TimeoutError):
            return []

    def _read_into(self, found: "Future[list[Family]]") -> None:
        try:
            found.set_result(self._read())
        except Exception as error:
            found.set_exception(error)

    def _read(self) -> list[Family]:
        if self._writer.finished:
            return []
        return [_as_of_now(family) for families in self._owners for family in families()]


def _as_of_now(family: Family) -> Family:
    copies = [(labels, histogram.copy()) for labels, histogram in family.histograms]
    return family._replace(series=list(family.series), histograms=copies)
