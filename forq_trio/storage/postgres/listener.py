"""Hears of the batches of other processes, and tells them of this process's, on a connection of its own.

Through a pool of connections nothing can be heard: then the writer has to look often instead.

PostgreSQL commits transactions that notify one after the other in the whole cluster, each with its wait for the disk
and for synchronous replicas. So no batch notifies: it would wait for all others, and have the gate meanwhile. What a
batch has to tell is told right after its COMMIT, in a transaction that waits for no disk; while one is under way, what
comes is told together by the next one. A notice that is lost costs at most a second: then every process looks.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import closing, suppress
from math import inf
from threading import Lock
from time import monotonic

import msgspec

from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError, StorageUnavailable
from forq_trio.model.processes import HeardProcess, ProcessReport
from forq_trio.model.wake_ups import WakeUps
from forq_trio.storage.postgres.failures import DatabaseFailed
from forq_trio.storage.postgres.open import Address

NOTIFY_BYTES_MAX = 7_000
"""PostgreSQL takes 8,000."""
SENDERS_NAME = "sent"
"""The name of a process in the notices of the function forq.send."""


def payload(name: str, woken: Iterable[str]) -> str:
    """What a process of this name tells the others: the queues that its batch woke; without one: all queues."""
    text = " ".join((name, *sorted(woken)))
    return text if len(text) <= NOTIFY_BYTES_MAX else name


class Notices:
    """What batches of this process have to tell the others. Used from any thread.

    on_notice: is called when there is more.
    """

    def __init__(self) -> None:
        self.on_notice: Callable[[], None] = lambda: None
        self._lock = Lock()
        self._woken: set[str] = set()
        self._bytes = 0
        self._has_others = False

    def add(self, woken: Iterable[str] | None) -> None:
        """woken: queues in which messages became ready; None for any other change that others have to see."""
        with self._lock:
            new = set(woken or ()) - self._woken
            self._bytes += sum(map(len, new)) + len(new)
            if woken is None or self._bytes > NOTIFY_BYTES_MAX:
                self._has_others, new = True, set()
            self._woken |= new
        self.on_notice()

    def take(self) -> Set[str] | None:
        """The queues to tell of; empty: the others are to look at all queues; None: there is nothing to tell."""
        with self._lock:
            woken: Set[str] | None = self._woken
            if self._has_others:
                woken = frozenset()
            elif not woken:
                woken = None
            self._woken, self._bytes, self._has_others = set(), 0, False
        return woken


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

    def __init__(self, address: Address, name: str, notices: Notices) -> None:
        self._name = name
        self._notices = notices
        self._met_as: str | None = None
        self._sent = WakeUps()
        self._asks = False
        self._asks_at = -inf
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

    def on_notice(self, call: Callable[[], None]) -> None:
        self._notices.on_notice = call

    def tell(self, *, awaited: bool) -> None:
        now = monotonic()
        if awaited:
            self._sent.await_until(now)
        if self._connection.busy:
            return
        try:
            self._tell(now)
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error

    def _tell(self, now: float) -> None:
        """Send one statement, if there is one to send."""
        wanted = self._sent.wanted(now) and not self._connection.pooled
        woken = self._notices.take()
        if woken is not None:
            self._connection.start("notify", payload(self._name, woken))
        elif wanted and not self._sent.told and now >= self._asks_at:
            self._asks = True
            self._connection.start("await_sent")
        elif self._sent.told and not wanted:
            self._sent.set_told(now, told=False)
            self._connection.start("stop_awaiting_sent")

    @property
    def rest_seconds(self) -> float:
        now = monotonic()
        return max(0.0, self._sent.looks_at(now) - now)

    def looked(self) -> None:
        self._sent.looked(monotonic())

    def heard(self) -> Set[str] | None:
        try:
            payloads = self._connection.notifications()
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error
        now = monotonic()
        if self._asks and not self._connection.busy:
            self._asks = False
            self._asks_at = now + limits.WAKE_UNTOLD_SECONDS
            if self._connection.answer == b"t":
                self._sent.set_told(now, told=True)
        if payloads is None:
            return None
        heard = [text.split(" ") for text in payloads]
        for name, *_ in heard:
            if name == SENDERS_NAME:
                self._sent.notice(now)
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
        with suppress(DatabaseFailed, StorageUnavailable):
            self._tell(monotonic())
            if self._met_as is not None:
                self._connection.query("leave_processes", self._met_as)
            self._connection.wait()
        self._connection.close()
