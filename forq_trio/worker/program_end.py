"""Errors of handlers that end the program: KeyboardInterrupt, which is Ctrl-C, and GeneratorExit; and ProgramEnds.

Raised in a task of asyncio they would leave the event loop at once, and nobody would close what is open. So the worker
gives the message back and stops first, as at a signal. They are raised at its very end.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class ProgramEnds(Exception):
    """Ends the worker because of `error`, which a handler raised, or for which it cannot be called."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"the worker ends: {type(error).__name__}")
        self.error = error


def end_of_program(error: BaseException) -> BaseException | None:
    """The error, or the first one inside a group, that ends the program; None if there is none."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(end_of_program, error.exceptions)), None)
    if isinstance(error, ProgramEnds):
        return error.error
    return error if isinstance(error, (KeyboardInterrupt, GeneratorExit)) else None


def raising_at_last(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Raise the error of ProgramEnds in its place, now that all is closed."""

    @functools.wraps(function)
    async def run(*args: P.args, **options: P.kwargs) -> R:
        try:
            return await function(*args, **options)
        except ProgramEnds as end:
            raise end.error from None

    return run
