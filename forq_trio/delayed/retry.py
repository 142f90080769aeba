"""Repeats a call after temporary errors, within a budget of time, and then raises one error for all of them."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from forq_trio.model.errors import (
    ForqUnreachable,
    Overloaded,
    ReadDeadlineExceeded,
    ServiceError,
    Stopping,
    StorageFull,
    StorageLost,
    StorageUnavailable,
)

T = TypeVar("T")

PAUSE_SECONDS_MIN = 0.05
PAUSE_SECONDS_MAX = 2.0

_PASSING = (ForqUnreachable, Overloaded, ReadDeadlineExceeded, Stopping, StorageUnavailable)
_LASTING = (StorageFull, StorageLost)


class QueueUnavailable(ServiceError):
    """The queue could not be reached, or could not do it, for as long as was tried"""

    code = "delayed.unavailable"


async def with_retries(call: Callable[[], Awaitable[T]], budget_seconds: float, *, repeatable: bool) -> T:
    """Return what `call` returns; repeat it with growing pauses after temporary errors, then raise QueueUnavailable.

    budget_seconds: counts from the first error; 0: the call is not repeated. repeatable: whether to repeat it even if
    it may have been carried out; if not, such an error becomes QueueUnavailable at once. Stopping always does. Other
    errors are raised as they are.
    """
    pause = PAUSE_SECONDS_MIN
    deadline: float | None = None
    while True:
        try:
            return await call()
        except _PASSING as error:
            if isinstance(error, _LASTING):
                raise
            # A client has repeated the call while its server restarted; a broker that stops does not come back.
            final = isinstance(error, Stopping) or (
                isinstance(error, ForqUnreachable) and error.sent and not repeatable
            )
            now = anyio.current_time()
            deadline = now + budget_seconds if deadline is None else deadline
            if final or now + pause > deadline:
                raise QueueUnavailable(f"the queue is unavailable: {error.message}") from error
        await anyio.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)
