"""What a program prints of an error of its worker's source that it does not catch: one line, as `forq work` does.

Such an error is of the surroundings, a missing secret for example, and forty lines of our frames would hide it.
"""

import shutil
import sys
import textwrap
import weakref
from collections.abc import Callable
from types import TracebackType

from forq_trio.model.errors import ForqError


class OneLineHook:
    """A `sys.excepthook` that prints one error as a line. The hook before it prints all others."""

    def __init__(self, before: Callable[..., object]) -> None:
        self._before = before
        self._error: Callable[[], BaseException | None] = lambda: None

    def take(self, error: ForqError) -> None:
        """Print this error as a line, instead of the one that was taken before."""
        self._error = weakref.ref(error)  # it has frames, and may have been caught long ago

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if error is self._error():
            print(_between_words(f"forq: {error}"), file=sys.stderr)
        else:
            self._before(kind, error, trace)


def _between_words(line: str) -> str:
    """The line, on a terminal broken between words."""
    if not sys.stderr.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def tell_in_one_line(error: ForqError) -> None:
    """If nobody catches the error, print it as a line."""
    if not isinstance(sys.excepthook, OneLineHook):
        sys.excepthook = OneLineHook(sys.excepthook)
    sys.excepthook.take(error)
