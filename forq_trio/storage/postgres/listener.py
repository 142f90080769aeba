"""Hears of the batches of other processes, on a connection of its own.

Through a pool of connections nothing can be heard: then the writer has to look often instead.
"""

from collections.abc import Iterable, Sequence, Set
from contextlib import closing, suppress

import msgspec

from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError, StorageUnavailable
from forq_trio.model.processes import HeardProcess, ProcessReport
from forq_trio.storage.postgres.connection import DatabaseFailed
from forq_trio.storage.postgres.open import Address

NOTIFY_BYTES_MAX = 7_000
"""PostgreSQL takes 8,000."""


def payload(name: str, woken: Iterable[str]) -> str:
    """What a process of this name tells the others: the queues that its batch woke; without one: all queues."""
    text = " ".join((name, *sorted(woken)))
    return text if len(text) <= NOTIFY_BYTES_MAX else name


def check_listened(address: Address, identity: str) -> None:
    """Refuse an address of FORQ_DB_LISTEN_URL that cannot be listened at. Raises StorageOpenError."""
    try:
        connection = address.connect()
    except DatabaseFailed as error:
        raise address.refused(error) from None
    with closing(connection):
        if connection.pooled:
            raise StorageOpenError(f"{address.name} is reached through a pool, where nothing can be heard")
        if connection.query("identity") != [(identity,)]:
            raise StorageOpenError(f"{address.name}, where to listen, is another database")


class PgListener:
    """See `Listener`. name: of this process, which does not hear itself."""

    def __init__(self, address: Address, name: str) -> None:
        self._name = name
        self._met_as: str | None = None
        try:
            self._connection = address.connect()
            if not self._connection.pooled:
                self._connection.query("listen")
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error

    @property
    def look_seconds(self) -> float:
        return limits.PEERS_LOOK_SECONDS_POOLED if self._connection.pooled else limits.PEERS_LOOK_SECONDS

    @property
    def socket(self) -> int:
        return self._connection.socket

    def heard(self) -> Set[str] | None:
        try:
            payloads = self._connection.notifications()
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error
        if payloads is None:
            return None
        heard = [text.split(" ") for text in payloads]
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
