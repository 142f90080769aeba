"""Cuts a stream of bytes into lines, each a message, without I/O and in bounded memory.

Empty lines are skipped, CR LF ends a line like LF, and a byte order mark at the start is dropped. A line that cannot be
a message is returned with its error, and does not affect the next lines.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import NamedTuple

from forq_trio.model.errors import ContentTooLarge, ForqError, InvalidContent

LINE_BYTES_MAX = 256 * 1024
TOO_LONG = ContentTooLarge()
NOT_UTF8 = InvalidContent("it is not UTF-8")


class InputLine(NamedTuple):
    """A line and its number, counted from 1. Either `text` or `error` (why it cannot be sent) is None."""

    number: int
    text: str | None
    error: ForqError | None = None


class LineCutter:
    """Call `feed` with each chunk, and `finish` once at the end."""

    def __init__(self) -> None:
        self._number = 0
        self._rest = b""
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[InputLine]:
        """The lines that this chunk completes."""
        *complete, rest = (self._rest + chunk).split(b"\n")
        for raw in complete:
            yield from self._line(raw)
        self._rest = rest
        mark_bytes = len(BOM_UTF8) if self._number == 0 else 0
        if len(rest) > LINE_BYTES_MAX + mark_bytes + 1:
            if not self._skipping:
                yield InputLine(self._number + 1, None, TOO_LONG)
            self._skipping, self._rest = True, b""

    def finish(self) -> Iterator[InputLine]:
        """The last line, if it did not end with a line feed."""
        yield from self._line(self._rest)
        self._rest = b""

    def _line(self, raw: bytes) -> Iterator[InputLine]:
        if self._number == 0:
            raw = raw.removeprefix(BOM_UTF8)
        self._number += 1
        if self._skipping:
            self._skipping = False
            return
        raw = raw.removesuffix(b"\r")
        if len(raw) > LINE_BYTES_MAX:
            yield InputLine(self._number, None, TOO_LONG)
        elif raw:
            try:
                yield InputLine(self._number, raw.decode())
            except UnicodeDecodeError:
                yield InputLine(self._number, None, NOT_UTF8)
