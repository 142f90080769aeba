"""A job: one delivery of a message to a handler."""

import logging
import math
from collections.abc import Awaitable, Callable
from itertools import starmap
from typing import TYPE_CHECKING, Any, Generic

import anyio
import anyio.lowlevel
from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.clock import machine_ms
from forq_trio.model.durations import Duration, ms_of
from forq_trio.model.messages.types import Delivery
from forq_trio.worker.message_batches import BatchSender, batch_of
from forq_trio.worker.outcomes import LeaseLost, Settlement

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    StateT = TypeVar("StateT", default=Any)
else:
    from typing import TypeVar

    StateT = TypeVar("StateT")  # its default is for type checkers alone, before Python 3.13

logger = logging.getLogger("forq_trio.worker")

_PAIR_BYTES = 4  # the separators of a name and its text take at most this many bytes


class HeldLease:
    """The lease of a job, as far as its worker knows. Only for the event loop's thread."""

    def __init__(self, ends_at: float, until: int, shorten: "Shorten | None") -> None:
        self.since = machine_ms()  # epoch ms, when this worker got it
        self.until = until  # epoch ms, by the queue's clock
        self.ends_at = ends_at  # on the event loop's clock
        self.lost = False
        self.removed: str | None = None  # this and the next: see `Job`
        self.removal_reason: str | None = None
        self.extended = True  # whether heartbeats do so; False once it was shortened, or its thread timed out
        self.timed_out = False  # whether its handler, in a thread, has taken longer than its `timeout`
        self.run: Run | None = None  # the call of the handler, while there is one
        self.shorten = shorten  # asks the queue to end it; None if that is not possible
        self.progress: tuple[float, str] | None = None  # what the handler said last: percent and text
        self.checked = False  # whether the handler has called `check`, by which a thread may end
        self.stops = False  # whether the worker stops, so that a thread is to end

    def end_at(self, ends_at: float) -> None:
        """Note when it ends, on the event loop's clock."""
        self.ends_at = ends_at
        if self.run is not None:
            self.run.refresh()

    def lose(self) -> None:
        """Cancel the handler."""
        self.lost = True
        if self.run is not None:
            self.run.scope.cancel()


class JobAttempts(Struct, frozen=True, gc=False):
    """How many attempts a message gets."""

    last: float = math.inf  # the failure of this one is final, with an error that has no policy of its own
    counted: float = math.inf  # so many by what the queue counts with now
    enough: float = math.inf  # a policy with more than these has the queue told
    queue: int = limits.ATTEMPTS_MAX_DEFAULT  # the queue's bound
    # the same where a policy has raised the message's own: errors that no policy counts get no more; None: it has not
    lowered: int | None = None

    def granted(self, attempt: int, policy: float) -> int | None:
        """The bound that the nack of an attempt gives the message; None: what it has is enough for its policy.

        policy: the attempts by its policy, math.inf if that decides each time.
        """
        wanted = attempt + self.queue if math.isinf(policy) else policy
        return min(int(wanted), limits.MAX_ATTEMPTS_MAX) if wanted > self.enough else None


UNBOUNDED = JobAttempts()


class Job(Generic[StateT]):
    """A message in process.

    A handler in a thread may use all members but the coroutines, `progress` and `set_deadline`, and `seconds_left`,
    which belong to the event loop.

    `Job[Resources]` says what its `state` is.
    """

    def __init__(
        self,
        queue: str,
        delivery: Delivery,
        ends_at: float,
        *,
        attempts: JobAttempts = UNBOUNDED,
        shorten: "Shorten | None" = None,
        state: Any = None,
    ) -> None:
        self.queue = queue
        self.id = delivery.id
        self.sequence = delivery.sequence
        self.content = delivery.content
        self.attributes = delivery.attributes
        self.attempt = delivery.attempts  # counted from 1
        self.group = delivery.group
        self.key = delivery.key
        self.kind = delivery.kind
        self.priority = delivery.priority
        self.received_at = delivery.received_at  # epoch ms, when the message arrived
        self.receipt = delivery.receipt
        self.lease = HeldLease(ends_at, delivery.lease_until, shorten)
        self.state: StateT = state
        """What the lifespan of the application yielded; None without one, and in a process of a handler."""
        self.attempts = attempts

    def __repr__(self) -> str:
        return f"<Job {self.queue} {self.id} attempt {self.attempt}>"

    def __getstate__(self) -> dict[str, Any]:
        """Its members for another process, which neither extends the lease nor has the state."""
        lease = HeldLease(self.lease.ends_at, self.lease.until, None)
        return vars(self) | {"lease": lease, "state": None}

    @property
    def last_attempt(self) -> bool:
        """Whether a failure now is final, with an error that `retry` has no policy for.

        False if nothing bounds the attempts, as far as the worker knows: it may not be able to read the settings.
        """
        return self.attempt >= self.attempts.last

    @property
    def batch(self) -> BatchSender | None:
        """The batch that the message is a member of, to add to; None if it has none, and with `pool="process"`."""
        return batch_of(self.attributes)

    @property
    def seconds_left(self) -> float:
        """Seconds until the handler is cancelled: by its `timeout`, or when its lease ends, unless that is extended.

        Not below 0. Only on the event loop: neither in a thread nor in a process of a pool.
        """
        ends_at = self.lease.ends_at if self.lease.run is None else self.lease.run.scope.deadline
        return max(0.0, ends_at - anyio.current_time())

    @property
    def lost(self) -> bool:
        """Whether the lease was lost, so that the handler's result no longer counts."""
        return self.lease.lost

    @property
    def removed(self) -> str | None:
        """How somebody else removed the message: "cancelled", or "deleted" (also by a purge or a drop of its key).

        The lease is lost then. None: nobody did, or the worker was not told, but learned that the lease is lost.
        """
        return self.lease.removed

    @property
    def removal_reason(self) -> str | None:
        """The reason that was given when the message was cancelled; None: none was."""
        return self.lease.removal_reason

    @property
    def lease_until(self) -> int:
        """When the lease ends, unless it is extended (epoch ms)."""
        return self.lease.until

    def check(self) -> None:
        """Raise LeaseLost if the lease was lost, the `timeout` is over, or the worker stops. Thread-safe.

        For handlers in threads, which cannot be cancelled. A worker that stops gives the message back.
        """
        self.lease.checked = True
        if self.lost:
            raise LeaseLost(self.loss_in_words())
        if self.lease.timed_out:
            raise LeaseLost(f"the handler of {self.id} has taken longer than its timeout")
        if self.lease.stops:
            raise LeaseLost(f"the worker stops, and gives {self.id} back")

    async def progress(self, percent: float, text: str = "") -> None:
        """Say how far the handler is: 0 to 100, and what it has done, of which 80 characters are shown.

        The worker's next report, one every 5 seconds, has the latest one; the admin UI and `workers` show it. It is
        gone with the lease. A call costs no request, so a handler may say it at every step. Raises ValueError.
        """
        self.progress_blocking(percent, text)
        await anyio.lowlevel.checkpoint_if_cancelled()

    def progress_blocking(self, percent: float, text: str = "") -> None:
        """`progress` of a handler in a thread; in a process it is not told. Thread-safe."""
        if not 0 <= percent <= limits.PROGRESS_PERCENT_MAX:
            raise ValueError(f"a progress is 0 to 100, not {percent!r}")
        self.lease.progress = percent, text

    async def set_deadline(self, after: Duration) -> None:
        """End the lease so long from now, and do not extend it again; the handler is cancelled then.

        Raises ValueError if that is later than the current end of the lease, LeaseLost if the lease was lost.
        """
        self.check()
        seconds, left = ms_of(after) / 1_000, max(0.0, self.lease.ends_at - anyio.current_time())
        if not 0 <= seconds < left + 0.001:  # a duration is rounded up
            raise ValueError(f"a deadline can only be earlier: 0 to {left:.3f} s, not {after!r}")
        if self.lease.shorten is not None:
            await self.lease.shorten(self, min(seconds, left))

    def loss_in_words(self) -> str:
        """What happened to the lease that was lost."""
        if self.removed is None:
            return f"the lease of {self.id} was lost"
        because = f" ({self.removal_reason})" if self.removal_reason else ""
        return f"{self.id} was {self.removed}{because}"

    def lose(self, removed: str | None = None, reason: str | None = None) -> None:
        """Cancel the handler, because the lease is lost; its result no longer counts.

        removed, reason: see `removed` and `removal_reason`.
        """
        self.lease.removed, self.lease.removal_reason = removed, reason
        self.lease.lose()
        if self.lease.run is not None and self.lease.run.in_thread:
            logger.warning(
                "%s: %s, and its handler runs in a thread, which goes on until it returns or calls job.check()",
                self.queue,
                self.loss_in_words(),
            )


def is_last(settlement: Settlement, job: Job) -> bool:
    """Whether the message fails for good with this settlement, as far as its worker knows."""
    if settlement.what != "nack":
        return False
    return settlement.final or job.attempt >= (settlement.max_attempts or job.attempts.counted)


Shorten = Callable[[Job, float], Awaitable[None]]
"""Ends the lease of a job that many seconds from now."""


class Run:
    """Calls of a handler, one after the other, each with a job or a batch of jobs.

    They share a cancel scope: to enter one takes longer (15 µs) than all else that a worker does for a message. Its
    deadline is the first end of a lease of the current call, or of its time. The call that it cancels is the last one.

    timeout: seconds after which a call is cancelled in any case; None for no such bound.
    """

    def __init__(self, timeout: float | None) -> None:
        self.scope = anyio.CancelScope()
        self.jobs: list[Job] = []  # of the current call
        self.in_thread = False  # whether the current call is in a thread
        self.timeout_at = math.inf  # on the event loop's clock
        self._timeout = timeout

    def begin(self, jobs: list[Job]) -> None:
        """Begin a call."""
        self.jobs = jobs
        self.in_thread = False
        for job in jobs:
            job.lease.run = self
        self.start_timeout()

    def start_timeout(self) -> None:
        """Give the call all of its time, from now."""
        if self._timeout is not None:
            self.timeout_at = anyio.current_time() + self._timeout
        self.refresh()

    async def tell_of_timeout(self) -> None:
        """When the time is over: tell the handler in its thread, and extend the leases no more, for it may hang."""
        await anyio.sleep_until(self.timeout_at)
        for job in self.jobs:
            job.lease.timed_out = True
            job.lease.extended = False

    def stop_timeout(self) -> None:
        """Let no time of the call pass until `start_timeout`: the handler cannot begin yet."""
        self.timeout_at = math.inf
        self.refresh()

    def end(self) -> list[Job]:
        """End the call: what becomes of the leases of its jobs, which are returned, cancels nothing now."""
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            job.lease.run = None
        return jobs

    def refresh(self) -> None:
        """Set the deadline of the cancel scope to the earliest end of a lease."""
        ends_at = min(self.timeout_at, *[job.lease.ends_at for job in self.jobs])
        if ends_at != self.scope.deadline:  # to set it costs more than to read it, and messages come together
            self.scope.deadline = ends_at

    def note_lost_leases(self) -> bool:
        """Mark the jobs whose leases have ended as lost; returns whether there are any."""
        now = anyio.current_time()
        for job in self.jobs:
            job.lease.lost = job.lost or now >= job.lease.ends_at
        return any(job.lost for job in self.jobs)


def told_attributes(
    job: Job, pair: Callable[[str, str], tuple[str, str]], bytes_max: int
) -> tuple[dict[str, str], int]:
    """A job's attributes in the form of another program, and how many were left out.

    Left out are those beyond `bytes_max`, and those whose converted name is taken. pair: converts a name and a value.
    """
    told: dict[str, str] = {}
    attributes = job.attributes or {}
    for name, text in starmap(pair, attributes.items()):
        size = len(name) + len(text.encode()) + _PAIR_BYTES
        if name not in told and size <= bytes_max:
            told[name] = text
            bytes_max -= size
    return told, len(attributes) - len(told)
