"""The share of the event loop's time that the admin UI may use, so that requests to it never hold up the API.

Rules
- The time of each step of a UI task on the event loop is measured (`metered`) and charged to a balance.
- The balance grows with time: by `share` of all time, and by `idle_share` of the time in which the loop had nothing to
  do. It is never more than `burst_seconds`. While it is used up no request begins.
- So in any time T the UI uses at most `share` of a busy loop, plus `burst_seconds` and one request.
- Waiting requests are served round-robin by caller, `running_max` at once. A caller may have a bounded number of
  requests waiting, each for a bounded time; others are refused.
"""

from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar
from time import thread_time
from typing import Any, TypeVar

import trio

from forq_trio.model import limits
from forq_trio.model.errors import Overloaded
from forq_trio.model.round_robin import RoundRobin

T = TypeVar("T")

_LOOKS_SECONDS = 0.05  # how often the loop's idle time is measured


class LoopShare:
    """A balance of seconds, and the requests that wait for it. `run` is its task.

    loop_seconds: returns the processor time that the loop's thread has used for everything.
    """

    def __init__(
        self,
        share: float,
        burst_seconds: float,
        running_max: int,
        idle_share: float = 0.0,
        loop_seconds: Callable[[], float] = thread_time,
    ) -> None:
        self._share = share
        self._burst_seconds = burst_seconds
        self._running_max = running_max
        self._idle_share = idle_share
        self._loop_seconds = loop_seconds
        self._balance = burst_seconds
        self._looked_at: tuple[float, float] | None = None
        self._waiting = RoundRobin[trio.Event]()
        self._running = 0
        self._changed = trio.Event()
        self.spent = 0.0
        """How many seconds of the loop this share has used in all."""

    def spend(self, seconds: float) -> None:
        """Charge this many seconds."""
        self.spent += seconds
        self._balance -= seconds

    def balance(self) -> float:
        """The seconds that may be used at once; negative: a debt."""
        now, worked = trio.current_time(), self._loop_seconds()
        if self._looked_at is not None:
            passed = now - self._looked_at[0]
            idle = max(0.0, passed - (worked - self._looked_at[1]))
            grown = self._balance + self._share * passed + self._idle_share * idle
            self._balance = min(self._burst_seconds, grown)
        self._looked_at = now, worked
        return self._balance

    async def paid(self) -> None:
        """Wait while the debt is more than the burst. For work before a request, which must go on beside requests."""
        owed = -self.balance() - self._burst_seconds
        if owed > 0:
            await trio.sleep(owed / self._share)

    async def permit(self, caller: str) -> "Permit":
        """Wait until a request of the caller may run. Raises Overloaded; cancelled, nothing runs."""
        if self._waiting or self._running >= self._running_max or self.balance() <= 0:
            await self._wait(caller)
        else:
            self._running += 1
        return Permit(self._release)

    async def _wait(self, caller: str) -> None:
        if self._waiting.count(caller) >= limits.UI_WAITING_MAX:
            raise Overloaded
        granted = trio.Event()
        self._waiting.add(caller, granted)
        self._changed.set()
        try:
            with trio.move_on_after(limits.UI_WAIT_SECONDS_MAX) as waited:
                await granted.wait()
        except trio.Cancelled:
            self._withdraw(caller, granted)
            raise
        if waited.cancelled_caught:
            self._withdraw(caller, granted)
            raise Overloaded

    def _withdraw(self, caller: str, granted: trio.Event) -> None:
        if granted.is_set():
            self._release()
        else:
            self._waiting.remove(caller, granted)

    def _release(self) -> None:
        self._running -= 1
        self._changed.set()

    async def run(self) -> None:
        """Grant permits to requests that wait, until cancelled."""
        while True:
            if not self._waiting or self._running >= self._running_max:
                self._changed = trio.Event()
                await self._changed.wait()
            elif (owed := -self.balance()) >= 0:
                await trio.sleep(min(owed / self._share, _LOOKS_SECONDS) + 0.001)
            else:
                self._running += 1
                self._waiting.next().set()
                await trio.lowlevel.checkpoint()


class Permit:
    """Lets one request run."""

    def __init__(self, release: Callable[[], None]) -> None:
        self._release: Callable[[], None] | None = release

    def end(self) -> None:
        """Let the next request run. A second call does nothing."""
        if self._release is not None:
            release, self._release = self._release, None
            release()


class Account:
    """The balance to which the work for a connection is charged. share: None if it is charged elsewhere."""

    __slots__ = ("share",)

    def __init__(self, share: LoopShare) -> None:
        self.share: LoopShare | None = share

    def spend(self, seconds: float) -> None:
        if self.share is not None:
            self.share.spend(seconds)


ACCOUNT: ContextVar[Account | None] = ContextVar("account", default=None)
"""The account of the connection for which the current task works."""


async def metered(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` and charge each of its steps on the loop to the account of the current task, if it has one.

    Neither its waits nor the tasks that it starts are charged.
    """
    account = ACCOUNT.get()
    return await (work if account is None else _Steps(work, account))


class _Steps:
    """Awaits a coroutine and measures the time from each of its resumptions to its next wait."""

    __slots__ = ("_account", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], account: Account) -> None:
        self._work = work
        self._account = account

    def __await__(self) -> Generator[Any, Any, Any]:
        work, account = self._work, self._account
        resume: Callable[[Any], Any] = work.send
        value: Any = None
        while True:
            began = thread_time()
            try:
                trap = resume(value)
            except StopIteration as end:
                return end.value
            finally:
                account.spend(thread_time() - began)
            try:
                value = yield trap
                resume = work.send
            except BaseException as error:  # noqa: ASYNC103  # the coroutine gets it, and raises it again
                value, resume = error, work.throw
