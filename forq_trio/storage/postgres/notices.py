"""The notices about batches for other processes: what is still to be sent, and its text.

The thread that runs a batch sends its notice right after the COMMIT, so that another process wakes up while this one
waits for the disk. If that cannot be done at once, the event loop does it later.
"""

from collections.abc import Callable, Iterable
from threading import Lock
from typing import NamedTuple

NOTIFY_BYTES_MAX = 7_000
"""The longest notice; PostgreSQL's own limit is 8,000 bytes."""


class Notice(NamedTuple):
    """What a process tells the others about its latest batches."""

    process: str
    version: int  # of the last of these batches; 0 if it is not known
    woken: frozenset[str]  # the queues in which messages became ready; empty: look at everything

    def text(self) -> str:
        """The notice as it is sent. If it is too long it names no queue, which means all."""
        sender = f"{self.process}:{self.version}"
        text = " ".join((sender, *sorted(self.woken)))
        return text if len(text) <= NOTIFY_BYTES_MAX else sender


def read_notice(text: str) -> Notice:
    """Read a notice. It may come from any version of this program, or from any role of the database."""
    sender, *woken = text.split(" ")
    process, _, version = sender.partition(":")  # `forq.send` sends no version
    number = int(version) if version.isascii() and version.isdigit() and len(version) < 20 else 0
    return Notice(process, number, frozenset(woken))


class Notices:
    """The notices of this process that wait to be sent. Used from any thread.

    tell_at_once: called for each new notice, to send it; returns False if it could not. Then on_notice is called.
    """

    def __init__(self, process: str) -> None:
        self.tell_at_once: Callable[[], bool] = _cannot
        self.on_notice: Callable[[], None] = lambda: None
        self._process = process
        self._lock = Lock()
        self._version = 0
        self._woken: set[str] = set()
        self._bytes = 0
        self._has_others = False
        self._prepared: tuple[int, Iterable[str] | None] | None = (
            None  # of the running batch; used only by its thread
        )

    def prepare(self, version: int, woken: Iterable[str] | None) -> None:
        """Set the notice of the running batch, to be sent once it is committed; see `add`."""
        self._prepared = version, woken

    def discard_prepared(self) -> None:
        """Drop the notice of the batch that ran: it was not committed."""
        self._prepared = None

    def add_prepared(self) -> None:
        """Send the notice of the batch, if it has one, now that it is committed."""
        if self._prepared is not None:
            self.add(*self._prepared)
            self._prepared = None

    def add(self, version: int, woken: Iterable[str] | None) -> None:
        """Add the notice of a batch. woken: queues in which messages became ready; None for any other change."""
        with self._lock:
            self._version = version
            new = set(woken or ()) - self._woken
            self._bytes += sum(map(len, new)) + len(new)
            if woken is None or self._bytes > NOTIFY_BYTES_MAX:
                self._has_others, new = True, set()
            self._woken |= new
        if not self.tell_at_once():
            self.on_notice()

    def forget(self, tell_at_once: Callable[[], bool]) -> None:
        """Stop calling this `tell_at_once`."""
        if self.tell_at_once == tell_at_once:
            self.tell_at_once = _cannot

    def take(self) -> Notice | None:
        """The notice to send now, None for none; after this it no longer waits."""
        with self._lock:
            notice = None
            if self._has_others or self._woken:
                woken = frozenset() if self._has_others else frozenset(self._woken)
                notice = Notice(self._process, self._version, woken)
            self._woken, self._bytes, self._has_others = set(), 0, False
        return notice


def _cannot() -> bool:
    return False
