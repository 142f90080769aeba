"""Errors that pass: a call is repeated within a budget, and then there is one error for all of them."""

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
    """What `call` returns, repeated with growing pauses while errors that pass come; QueueUnavailable at the end.

    budget_seconds: from the first error on; 0: once, and no more. repeatable: also when the call may have been carried
    out. Where it is not, such an error ends in QueueUnavailable at once, and so does Stopping. Other errors are raised
    as they come.
    """
    pause = PAUSE_SECONDS_MIN
    deadline: float | None = None
    while True:
        try:
            return await call()
        except _PASSING as error:
            if isinstance(error, _LASTING):
                raise
            # A client repeated it already while a server restarted; a broker that stops does not come back.
            final = isinstance(error, Stopping) or (
                isinstance(error, ForqUnreachable) and error.sent and not repeatable
            )
            now = anyio.current_time()
            deadline = now + budget_seconds if deadline is None else deadline
            if final or now + pause > deadline:
                raise QueueUnavailable(f"the queue is unavailable: {error.message}") from error
        await anyio.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)
