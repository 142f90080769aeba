"""What `forq work` shows while it runs: a table with rates on a terminal, else lines of JSON on stdout.

A thread of its own reads the counters of the Worker, whichever event loop that runs on.
"""

import logging
import shutil
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from forq_trio.cli.output import echo, one_line, print_json, visible
from forq_trio.cli.progress import error_console, errors_on_terminal
from forq_trio.cli.tables import shortened

if TYPE_CHECKING:
    from rich.table import Table

    from forq_trio.worker import QueueStats, Worker

TERMINAL_SECONDS = 0.5
LINES_SECONDS = 10.0
_RATE_LOOKS = 10
_ROWS_MAX = 20
_NAME_WIDTH_MIN = 10
_NAME_WIDTH_MAX = 28
_COUNTS_WIDTH = 40
_LINE_LENGTH_MAX = 2_000
_LOGGER = "forq_trio"


class Rates:
    """How many messages a second each queue has finished recently."""

    def __init__(self) -> None:
        self._looks: dict[str, deque[tuple[float, int]]] = {}

    def rate_at(self, queue: str, finished: int, now: float) -> float:
        """Note how many were finished at `now` (seconds); returns the rate since the oldest note that is stored."""
        looks = self._looks.setdefault(queue, deque(maxlen=_RATE_LOOKS))
        looks.append((now, finished))
        since, before = looks[0]
        return (finished - before) / (now - since) if now > since else 0.0


@contextmanager
def reporting(worker: "Worker", *, as_json: bool) -> Iterator[None]:
    """Report while the body runs, and once at its end. Warnings of the worker go to stderr."""
    if errors_on_terminal() and not as_json:
        with _on_terminal(worker.stats):
            yield
    else:
        with _logging_to(_Lines()), _each(LINES_SECONDS, _JsonLines(worker.stats)):
            yield


class _JsonLines:
    """Prints a line for each queue in which something has happened since its last line."""

    def __init__(self, stats: Mapping[str, "QueueStats"]) -> None:
        self._stats = stats
        self._reported: dict[str, dict[str, Any]] = {}
        self._rates = Rates()

    def __call__(self) -> None:
        now = time.monotonic()
        for queue, stats in tuple(self._stats.items()):
            rate = self._rates.rate_at(queue, stats.finished, now)
            line = counters(queue, stats)
            if self._reported.get(queue) != line:
                self._reported[queue] = line
                print_json(line | {"perSecond": round(rate, 1)})


def counters(queue: str, stats: "QueueStats") -> dict[str, Any]:
    """The counters of a queue for a line of JSON, without its rate."""
    names = ("handled", "failed", "discarded", "dead", "lost", "running")
    return {"queue": queue} | {name: getattr(stats, name) for name in names}


@contextmanager
def _on_terminal(stats: Mapping[str, "QueueStats"]) -> Iterator[None]:
    from rich.live import Live

    rates = Rates()
    with Live(console=error_console(), auto_refresh=False, transient=False) as live:

        def show() -> None:
            live.update(table(stats, rates, time.monotonic()), refresh=True)

        class ToConsole(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                live.console.print(_line(record), markup=False, highlight=False)

        with _logging_to(ToConsole()), _each(TERMINAL_SECONDS, show):
            yield


def table(stats: Mapping[str, "QueueStats"], rates: Rates, now: float) -> "Table":
    """The counters of all queues, in at most 80 columns; where the terminal is narrower, names are shorter."""
    from rich.table import Table
    from rich.text import Text

    free = shutil.get_terminal_size().columns - _COUNTS_WIDTH
    width = max(_NAME_WIDTH_MIN, min(free, _NAME_WIDTH_MAX))
    shown = Table(box=None, pad_edge=False)
    shown.add_column("queue", no_wrap=True, overflow="ellipsis")
    for name in ("handled", "/s", "failed", "dead", "running"):
        shown.add_column(name, justify="right", no_wrap=True)
    for number, (queue, each) in enumerate(tuple(stats.items())):
        rate = rates.rate_at(queue, each.finished, now)
        if number < _ROWS_MAX:
            cells = (each.handled + each.discarded, round(rate, 1), each.failed, each.dead, each.running)
            shown.add_row(Text(shortened(visible(queue), width)), *(f"{cell:,}" for cell in cells))
    if len(stats) > _ROWS_MAX:
        shown.add_row(f"and {len(stats) - _ROWS_MAX} more")
    return shown


class _Lines(logging.Handler):
    """Log records as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        echo(f"forq: {_line(record)}", err=True)


def _line(record: logging.LogRecord) -> str:
    """A log record as one line, because reasons contain text of commands and receivers."""
    return visible(one_line(record.getMessage(), _LINE_LENGTH_MAX))


@contextmanager
def _logging_to(handler: logging.Handler) -> Iterator[None]:
    logger = logging.getLogger(_LOGGER)
    propagated, logger.propagate = logger.propagate, False
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


@contextmanager
def _each(seconds: float, show: Any) -> Iterator[None]:
    """Call `show` every so many seconds from a thread, and at the end."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(seconds):
            try:
                show()
            except OSError:  # nobody reads the report, which must not stop the work
                return

    thread = threading.Thread(target=run, name="forq-work-report", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    show()
