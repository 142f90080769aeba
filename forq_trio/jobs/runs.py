"""The runs of a job: when the latest began, how long it took, its result, and when the next begins."""

from collections.abc import Iterator
from contextlib import contextmanager

import trio
from msgspec import Struct

from forq_trio.model.clock import Clock
from forq_trio.model.errors import ForqError, Stopping
from forq_trio.telemetry import words

NOTHING_TO_DO = "nothing to do"


class JobReport(Struct, frozen=True, kw_only=True):
    """A job, for the admin UI."""

    name: str
    title: str
    last_run_at: int | None = None  # when its latest run began, epoch ms; None before the first
    took_seconds: float | None = None  # how long that took
    result: str = ""  # in words, or why it failed; a failure stays until a run succeeds
    failed: bool = False
    running: bool = False
    # epoch ms; None while it runs, or if only `next_when` says it, in words
    next_run_at: int | None = None
    next_when: str | None = None
    runnable: bool = True  # `JobBoard.run_now` takes it
    ran_on: str = ""  # the processes of that run; "" if they are not known


class RunOutcome:
    """The result in words, filled in by the body of `Runs.run`."""

    result = NOTHING_TO_DO


class Runs:
    """The runs of one job, one after the other.

    name: of the job in logs; title: for people. next_at: when the next begins, on trio's clock; None if not known.
    next_when: says in words when the next begins, if that depends on something else than the time.
    """

    def __init__(self, name: str, title: str, *, next_when: str | None = None) -> None:
        self.name = name
        self.title = title
        self.next_at: float | None = None
        self.next_when = next_when
        self.running = False
        self._began_at: float | None = None
        self._took_seconds: float | None = None
        self._result = ""
        self._failed = False
        self._begun = 0
        self._ended = 0
        self._changed = trio.Event()
        self._closed = False

    @contextmanager
    def run(self) -> Iterator[RunOutcome]:
        """The body is one run. An exception is its failure; a run that is cancelled or stopped is not counted."""
        began_at = trio.current_time()
        outcome = RunOutcome()
        self._begun += 1
        self.running, self.next_at = True, None
        try:
            yield outcome
        except Stopping:
            raise
        except Exception as error:
            self.note(began_at, failure_words(error), failed=True)
            raise
        else:
            self.note(began_at, outcome.result)
        finally:
            self.running = False
            self._ended = self._begun
            self._wake()

    def note(self, began_at: float, result: str, *, failed: bool = False) -> None:
        """Note the result of a run that began at this time of trio's clock."""
        self._began_at = began_at
        self._took_seconds = trio.current_time() - began_at
        self._result, self._failed = result, failed

    async def wait_for_next(self) -> None:
        """Return when a run that begins from now on has ended, also if it failed. Raises Stopping after `close`."""
        wanted = self._begun + 1
        while self._ended < wanted:
            if self._closed:
                raise Stopping
            await self._changed.wait()

    def close(self) -> None:
        """Wake callers of `run_now` with Stopping; no run follows."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def report(self, clock: Clock, *, runnable: bool = True) -> JobReport:
        """The job's report. Times are converted to `clock` only now, so they are right even if it was set meanwhile."""
        now_ms, now = clock.now_ms(), trio.current_time()
        return JobReport(
            name=self.name,
            title=self.title,
            last_run_at=None if self._began_at is None else now_ms - round((now - self._began_at) * 1_000),
            took_seconds=self._took_seconds,
            result=self._result,
            failed=self._failed,
            running=self.running,
            next_run_at=None if self.next_at is None else now_ms + round(max(0, self.next_at - now) * 1_000),
            next_when=self.next_when,
            runnable=runnable,
        )


def failure_words(error: Exception) -> str:
    """Why something failed, in one sentence."""
    return error.message if isinstance(error, ForqError) else f"{type(error).__name__}: {error}"


def counted(count: int, one: str, many: str) -> str:
    """`3 messages`, with NOTHING_TO_DO for none."""
    return NOTHING_TO_DO if count == 0 else words.counted(count, one, many)
