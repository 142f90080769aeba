"""Hears of the batches of other processes, on a connection of its own."""

from collections.abc import Iterable, Sequence, Set
from contextlib import suppress

import msgspec

from forq_trio.model import limits
from forq_trio.model.errors import StorageUnavailable
from forq_trio.model.processes import HeardProcess, ProcessReport
from forq_trio.storage.postgres.connection import DatabaseFailed
from forq_trio.storage.postgres.open import Address

NOTIFY_BYTES_MAX = 7_000
"""PostgreSQL takes 8,000."""


def payload(name: str, woken: Iterable[str]) -> str:
    """What a process of this name tells the others: the queues that its batch woke; without one: all queues."""
    text = " ".join((name, *sorted(woken)))
    return text if len(text) <= NOTIFY_BYTES_MAX else name


class PgListener:
    """See `Listener`. name: of this process, which does not hear itself."""

    def __init__(self, address: Address, name: str) -> None:
        self._name = name
        self._met_as: str | None = None
        try:
            self._connection = address.connect()
            self._connection.query("listen")
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error

    @property
    def socket(self) -> int:
        return self._connection.socket

    def heard(self) -> Set[str] | None:
        try:
            heard = [text.split(" ") for text in self._connection.notifications()]
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error
        others = [queues for name, *queues in heard if name != self._name]
        if not all(others):
            return None
        return {queue for queues in others for queue in queues}

    def meet(self, report: ProcessReport) -> Sequence[HeardProcess]:
        self._met_as = report.id
        try:
            rows = self._connection.query(
                "meet_processes",
                report.id,
                report.name,
                msgspec.json.encode(report).decode(),
                report.started_at,
                limits.PROCESS_SILENT_MS,
                limits.PROCESS_GONE_MS,
                limits.PROCESSES_MAX - 1,
            )
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error
        processes = []
        for address, heard_at, state in rows:
            with suppress(msgspec.MsgspecError):  # of a version that says other things
                processes.append(
                    HeardProcess(msgspec.json.decode(state, type=ProcessReport), address, heard_at)
                )
        return processes

    def close(self) -> None:
        if self._met_as is not None:
            with suppress(DatabaseFailed):
                self._connection.query("leave_processes", self._met_as)
                self._connection.wait()
        self._connection.close()
