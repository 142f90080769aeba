"""Ctrl-C for commands that change something: it takes effect when the outcome of the request is known.

While a request is under way Ctrl-C is remembered; otherwise it ends the command. A second Ctrl-C ends the command at
once, and the command says which outcomes it does not know.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Self

_NOTICE = b"\nforq: waiting for the server's answer; Ctrl-C again does not\n"


class Interrupts:
    """Within `with`, KeyboardInterrupt is raised only in `allowed`, by a second Ctrl-C, and at the end."""

    def __init__(self) -> None:
        self._pressed = False
        self._allowed = False

    def __enter__(self) -> Self:
        # The parent process may have set SIGINT to be ignored, as shells do for background jobs.
        self._ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._ours:
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._pressed and kind is None:
            raise KeyboardInterrupt

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """In the body Ctrl-C raises KeyboardInterrupt at once; an earlier one that is remembered does at the start."""
        self._allowed = True
        try:
            if self._pressed:
                self._interrupt()
            yield
        finally:
            self._allowed = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._allowed or self._pressed:
            self._interrupt()
        self._pressed = True
        # Not through Python's buffers, which the interrupted code may be using.
        with suppress(OSError):
            if sys.stderr.isatty():
                os.write(sys.stderr.fileno(), _NOTICE)

    def _interrupt(self) -> None:
        self._pressed = self._allowed = False
        raise KeyboardInterrupt
