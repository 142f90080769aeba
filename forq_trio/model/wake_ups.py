"""Decides whether applications notify waiting consumers of their messages, in their own transactions.

PostgreSQL commits transactions that notify one at a time in the whole cluster, and each waits for the disk: 16
publishers commit 150 times a second instead of 2,700. So applications notify only while somebody waits. A waiting
process holds an advisory lock, and the function that applications call checks for it. A lock is visible to every
transaction, whatever its snapshot, and ends with its connection.

- A process holds the lock while somebody waits in it, and for WAKE_AWAITED_SECONDS longer, so that a consumer that
  takes one message after the other keeps it.
- A transaction may have checked before the lock was taken, and commit later. So a process that has just got the lock
  looks at the database at once, again after WAKE_LOOK_SECONDS, after twice that, and so on. The message then waits at
  most as long as the transaction took.
- A process that is notified more than WAKE_NOTICES_MAX times in a second releases the lock for WAKE_QUIET_SECONDS, and
  looks every WAKE_LOOK_SECONDS in the meantime.
- A process that does not get the lock, because somebody holds it exclusively, looks every WAKE_UNTOLD_SECONDS.
"""

from math import inf

from forq_trio.model import limits


class WakeUps:
    """Decides about lock and looks for one table, or for all queues. Times are seconds of a clock that never goes back.

    holds_lock: whether the lock is held, so that applications notify.
    """

    __slots__ = ("_awaited_until", "_looks_at", "_notices", "_pause", "_quiet_until", "_second", "holds_lock")

    def __init__(self) -> None:
        self.holds_lock = False
        self._awaited_until = self._quiet_until = self._second = -inf
        self._notices = 0
        self._pause = limits.WAKE_LOOK_SECONDS
        self._looks_at = -inf

    def await_until(self, now: float) -> None:
        """Note that somebody waits."""
        self._awaited_until = now + limits.WAKE_AWAITED_SECONDS

    def awaited(self, now: float) -> bool:
        """Whether somebody waits, or waited a moment ago."""
        return now < self._awaited_until

    def wanted(self, now: float) -> bool:
        """Whether the lock should be held."""
        return self._quiet_until <= now < self._awaited_until

    def set_lock(self, now: float, *, held: bool) -> None:
        """Note that the lock is held from now on, or no longer."""
        self.holds_lock = held
        self._pause = limits.WAKE_LOOK_SECONDS
        self._looks_at = now

    def notice(self, now: float) -> None:
        """Note that a notification came."""
        if now >= self._second + 1.0:
            self._second, self._notices = now, 0
        self._notices += 1
        if self._notices > limits.WAKE_NOTICES_MAX:
            self._quiet_until = now + limits.WAKE_QUIET_SECONDS

    def next_look_at(self, now: float) -> float:
        """When to look, besides the usual times; inf for never."""
        return self._looks_at if self.awaited(now) else inf

    def note_look(self, now: float, tables: int = 1) -> None:
        """Note that somebody looks now. tables: how many share these looks, so that each is looked at less often."""
        if now < self._quiet_until:
            self._looks_at = now + limits.WAKE_LOOK_SECONDS * tables
        elif not self.holds_lock:
            self._looks_at = now + limits.WAKE_UNTOLD_SECONDS * tables
        elif now >= self._looks_at:
            self._pause *= 2
            self._looks_at = now + self._pause

    def changes_at(self, now: float) -> float:
        """When the answer of `wanted` may change by itself."""
        times = (self._quiet_until, self._awaited_until)
        return min((time for time in times if time > now), default=inf)
