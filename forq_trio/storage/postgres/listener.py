"""Receives the notices of other processes about their batches, and sends ours, on a connection of its own.

No notice arrives through a connection pool: then the writer has to look at the database often instead.

PostgreSQL commits transactions that notify one at a time in the whole cluster, and each waits for the disk and for
synchronous replicas. If batches notified, each would wait for all others while holding the gate. So the notice of a
batch is sent right after its COMMIT, in a transaction that does not wait for the disk. While one is on its way, further
notices are gathered for the next. A lost notice costs at most a second, after which every process looks by itself.

The thread that runs the batch sends the notice without waiting for the answer. The event loop, which uses the
connection at all other times, reads that. If the event loop sent the notices, they would arrive 0.5 ms later.
"""

from collections.abc import Callable, Sequence, Set
from contextlib import closing, suppress
from math import inf
from threading import Lock
from time import monotonic

import msgspec

from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError, StorageUnavailable
from forq_trio.model.server.processes import HeardProcess, ProcessReport
from forq_trio.model.wake_ups import WakeUps
from forq_trio.storage.postgres.failures import DatabaseFailed
from forq_trio.storage.postgres.notices import Notices, read_notice
from forq_trio.storage.postgres.open import DatabaseAddress

SENDERS_NAME = "sent"
"""The name that the function forq.send has in its notices, in place of a process."""


def check_listened(address: DatabaseAddress, identity: str) -> None:
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
    """See `Listener`. name: of this process, which ignores its own notices. known: the last batch that it took over."""

    def __init__(
        self, address: DatabaseAddress, name: str, notices: Notices, known: Callable[[], int]
    ) -> None:
        self._name = name
        self._notices = notices
        self._known = known
        self._met_as: str | None = None
        self._sent = WakeUps()
        self._asks = False
        self._asks_at = -inf
        self._in_use = Lock()  # held by the thread that uses the connection
        try:
            self._connection = address.connect()
            if not self._connection.pooled:
                self._connection.query("listen")
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error
        notices.tell_at_once = self._tell_at_once

    @property
    def catch_up_seconds(self) -> float:
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
        with self._in_use:
            if self._connection.busy:
                return
            try:
                self._tell(now)
            except DatabaseFailed as error:
                raise StorageUnavailable(str(error)) from error

    def _tell_at_once(self) -> bool:
        """Send the notices from the writer's thread, if the connection is free. False: wake the event loop to do it.

        If a statement is on its way, its answer wakes the event loop anyway. Errors are left to the event loop, too.
        """
        if not self._in_use.acquire(blocking=False):
            return False
        try:
            if not self._connection.busy:
                self._notify()
        except DatabaseFailed:
            return False
        finally:
            self._in_use.release()
        return True

    def _notify(self) -> bool:
        """Send the notices, if there are any; returns whether there were."""
        notice = self._notices.take()
        if notice is not None:
            self._connection.start("notify", notice.text())
        return notice is not None

    def _tell(self, now: float) -> None:
        """Send the next statement, if there is one to send: notices first, then whether applications are to notify."""
        wanted = self._sent.wanted(now) and not self._connection.pooled
        if self._notify():
            return
        if wanted and not self._sent.holds_lock and now >= self._asks_at:
            self._asks = True
            self._connection.start("await_sent")
        elif self._sent.holds_lock and not wanted:
            self._sent.set_lock(now, held=False)
            self._connection.start("stop_awaiting_sent")

    @property
    def rest_seconds(self) -> float:
        now = monotonic()
        return max(0.0, self._sent.next_look_at(now) - now)

    def note_look(self) -> None:
        self._sent.note_look(monotonic())

    def heard(self) -> Set[str] | None:
        with self._in_use:
            try:
                payloads = self._connection.notifications()
            except DatabaseFailed as error:
                raise StorageUnavailable(str(error)) from error
            self._take_answer()
        if payloads is None:
            return None
        notices = [read_notice(text) for text in payloads]
        now = monotonic()
        for notice in notices:
            if notice.process == SENDERS_NAME:
                self._sent.notice(now)
        known = self._known()
        others = [
            notice.woken
            for notice in notices
            if notice.process != self._name and not 0 < notice.version <= known
        ]
        if not all(others):
            return None
        return {queue for woken in others for queue in woken}

    def _take_answer(self) -> None:
        """Take the answer to `await_sent`, if it has arrived; the next statement would replace it."""
        if self._asks and not self._connection.busy:
            self._asks = False
            now = monotonic()
            self._asks_at = now + limits.WAKE_UNTOLD_SECONDS
            if self._connection.answer == b"t":
                self._sent.set_lock(now, held=True)

    def meet(self, report: ProcessReport) -> Sequence[HeardProcess]:
        self._met_as = report.id
        with self._in_use:
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
            self._take_answer()
        processes = []
        for address, heard_at, state in rows:
            with suppress(msgspec.MsgspecError):  # a process of another version may report in another form
                processes.append(
                    HeardProcess(msgspec.json.decode(state, type=ProcessReport), address, heard_at)
                )
        return processes

    def close(self) -> None:
        with self._in_use:
            self._notices.forget(self._tell_at_once)
            with suppress(DatabaseFailed, StorageUnavailable):
                self._tell(monotonic())
                if self._met_as is not None:
                    self._connection.query("leave_processes", self._met_as)
                self._connection.wait()
            self._connection.close()
