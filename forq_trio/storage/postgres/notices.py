"""What batches of a process have to tell the other processes, and the text in which it is told.

A batch is told of right after its COMMIT, by the thread in which it runs: while this one waits for the disk, another
process wakes up. Only where that cannot be done at once the event loop does it later.
"""

from collections.abc import Callable, Iterable
from threading import Lock
from typing import NamedTuple

NOTIFY_BYTES_MAX = 7_000
"""PostgreSQL takes 8,000."""


class Notice(NamedTuple):
    """What one process tells the others of its batches."""

    process: str
    version: int  # of the last of these batches; 0 if it is not known
    woken: frozenset[str]  # the queues that they woke; empty: any change, all queues are to be looked at

    def text(self) -> str:
        """As it is sent. What is too long tells of all queues."""
        sender = f"{self.process}:{self.version}"
        text = " ".join((sender, *sorted(self.woken)))
        return text if len(text) <= NOTIFY_BYTES_MAX else sender


def read_notice(text: str) -> Notice:
    """A notice as it was sent, by whatever version of this program, or by any role of the database."""
    sender, *woken = text.split(" ")
    process, _, version = sender.partition(":")  # `forq.send` tells no version
    number = int(version) if version.isascii() and version.isdigit() and len(version) < 20 else 0
    return Notice(process, number, frozenset(woken))


class Notices:
    """What batches of one process have to tell the others. Used from any thread.

    tell_at_once: is called when there is more; returns False where it could not be told. Then on_notice is called.
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
            None  # of the batch that runs; for its thread only
        )

    def prepare(self, version: int, woken: Iterable[str] | None) -> None:
        """What the batch that runs has to tell once it is committed: see `add`."""
        self._prepared = version, woken

    def discard_prepared(self) -> None:
        """The batch that ran was not committed."""
        self._prepared = None

    def add_prepared(self) -> None:
        """The batch is committed: tell the others, if they have to know."""
        if self._prepared is not None:
            self.add(*self._prepared)
            self._prepared = None

    def add(self, version: int, woken: Iterable[str] | None) -> None:
        """Of a batch. woken: queues in which messages became ready; None for another change that others have to see."""
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
        """Do not call this one any more."""
        if self.tell_at_once == tell_at_once:
            self.tell_at_once = _cannot

    def take(self) -> Notice | None:
        """What to tell; None: nothing."""
        with self._lock:
            notice = None
            if self._has_others or self._woken:
                woken = frozenset() if self._has_others else frozenset(self._woken)
                notice = Notice(self._process, self._version, woken)
            self._woken, self._bytes, self._has_others = set(), 0, False
        return notice


def _cannot() -> bool:
    return False
