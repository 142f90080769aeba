"""The lifespan of an application: what its handlers share, made before the first of them and gone after the last."""

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

from forq_trio.worker.handlers import WorkerSetupError, place_of
from forq_trio.worker.outcomes import reason_of

Lifespan: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]
"""A function below `@asynccontextmanager`. What it yields is `job.state`."""


def check_lifespan(lifespan: Lifespan | None) -> None:
    """Raise TypeError for a function without the decorator: it would never be left."""
    if lifespan is not None and (not callable(lifespan) or inspect.isasyncgenfunction(lifespan)):
        raise TypeError("lifespan is a function below @asynccontextmanager, without parameters")


@asynccontextmanager
async def state_of(lifespan: Lifespan | None) -> AsyncIterator[Any]:
    """What a lifespan yields, while the body runs; None without one.

    Raises WorkerSetupError if it fails before its yield, and what it raises after it as it is.
    """
    async with AsyncExitStack() as stack:
        if lifespan is None:
            yield None
            return
        try:
            state = await stack.enter_async_context(lifespan())
        except Exception as error:
            name = getattr(lifespan, "__qualname__", type(lifespan).__name__)
            problem = f"{place_of(lifespan)}: {name}: the lifespan failed at its start: {reason_of(error)}"
            raise WorkerSetupError(problem) from error
        yield state
