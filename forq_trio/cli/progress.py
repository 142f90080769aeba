"""A progress bar on stderr, if that is a terminal, and the pauses between two reads of the server's progress."""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from forq_trio.cli.tables import shortened
from forq_trio.telemetry.styles import is_styled

if TYPE_CHECKING:
    from rich.console import Console

_LOOK_SECONDS_MIN = 0.05
_LOOK_SECONDS_MAX = 0.5


class Show(Protocol):
    """Shows how much is done and the total (None: unchanged), with a few words."""

    def __call__(self, done: int, total: int | None = None, status: str = "") -> None: ...


def errors_on_terminal() -> bool:
    """True if stderr is a terminal."""
    return sys.stderr.isatty()


def error_console() -> "Console":
    """rich on stderr. Without a colour system it writes no bold or dim either."""
    from rich.console import Console

    return Console(stderr=True, color_system="auto" if is_styled(sys.stderr) else None)


def _show_nothing(done: int, total: int | None = None, status: str = "") -> None:
    pass


@contextmanager
def progress_bar(description: str, total: int | None = None, *, hidden: bool = False) -> Iterator[Show]:
    """Show a bar while the body runs; yields the function that updates it.

    description: what is done, or the name of a queue, which is cut in the middle. total: None while it is not known.
    """
    if hidden or not errors_on_terminal():
        yield _show_nothing
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(30),
        TaskProgressColumn(show_speed=False),
        TextColumn("{task.fields[status]}", markup=False),
        TimeElapsedColumn(),
        console=error_console(),
        transient=True,
    ) as progress:
        named = shortened(description, shutil.get_terminal_size().columns // 3)
        task = progress.add_task(named, total=total, status="")

        def show(done: int, total: int | None = None, status: str = "") -> None:
            progress.update(task, completed=done, total=total, status=status)
            # When everything is done rich would stop its clock, but the total may still grow.
            progress.tasks[0].finished_time = None

        yield show


def updates() -> Iterator[None]:
    """Yield whenever the server's progress should be read: soon at first, then twice a second, without end."""
    pause = _LOOK_SECONDS_MIN
    while True:
        time.sleep(pause)
        pause = min(2 * pause, _LOOK_SECONDS_MAX)
        yield
