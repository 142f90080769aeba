"""Coroutines that run in place: without a task, a part each time that what they wait for is there.

A task costs a short request more than its work does. So HTTP runs a handler that usually waits for the writer alone in
place: one part until its first call, the next one when the writer resolves that call. Such a coroutine

- waits only in `Call.wait` (waiters.py), which pauses it here;
- says by `require_task` when it would have to wait for anything else. It is then given up and begun again in a task, so
  what it has done so far may be done again.
"""

from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, NamedTuple, Protocol


class Awaited(Protocol):
    """What such a coroutine waits for: a `Call`. on_resolved: to be called, once, when it is there."""

    on_resolved: Callable[[], object] | None

    def abandon(self) -> None:
        """Nobody waits for it any more."""
        ...


class TaskRequired(BaseException):
    """Gives up a coroutine that runs in place. A BaseException, so that no `except Exception` answers it."""


class _Paused(NamedTuple):
    """What such a coroutine yields; trio's own waits yield something else."""

    awaited: Awaited


_running = False  # whether the code that runs now is such a coroutine


def runs_in_place() -> bool:
    """Whether the caller is a coroutine that runs in place."""
    return _running


def require_task() -> None:
    """Call this before waiting for anything but a call of the writer: a caller that runs in place gets TaskRequired."""
    if _running:
        raise TaskRequired


def run_until_paused(running: Coroutine[Any, Any, object]) -> Awaited:
    """Run a coroutine until it pauses; returns what it waits for. Raises StopIteration once it has returned.

    Raises TaskRequired, and RuntimeError for a coroutine that waits for something else without having said so.
    """
    global _running
    before, _running = _running, True
    try:
        paused = running.send(None)
    finally:
        _running = before
    if not isinstance(paused, _Paused):
        running.close()
        raise RuntimeError("a handler that runs in place waits for something else than the writer")
    return paused.awaited


@coroutine
def pause(awaited: Awaited) -> Generator[object, None, None]:
    """Wait, in a coroutine that runs in place, until whoever runs it goes on with it."""
    yield _Paused(awaited)
