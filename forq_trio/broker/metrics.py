"""The families of an embedded broker, read from any thread."""

import os
import threading
from collections.abc import Sequence

import trio

from forq_trio.telemetry.families import Family, ReadFamilies
from forq_trio.writer_actor import WriterActor


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

        Empty once the broker is closed, and in the child of a fork.
        """
        if os.getpid() != self._process:
            return []
        if threading.get_ident() == self._thread:
            return self._read()
        try:
            return trio.from_thread.run_sync(self._read, trio_token=self._token)
        except trio.RunFinishedError:
            return []

    def _read(self) -> list[Family]:
        if self._writer.finished:
            return []
        return [_as_of_now(family) for families in self._owners for family in families()]


def _as_of_now(family: Family) -> Family:
    copies = [(labels, histogram.copy()) for labels, histogram in family.histograms]
    return family._replace(series=list(family.series), histograms=copies)
