"""Printing: text for people, or JSON with --json.

Data goes to stdout; progress, hints and errors go to stderr. A pipe or file gets the text unchanged, as UTF-8:
`click.echo` would remove escape sequences there, which may be part of a content. On a terminal all control characters
are spelled out, and lines on stderr are broken between words.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from forq_trio.model import durations
from forq_trio.model.clock import machine_ms
from forq_trio.telemetry.styles import is_styled

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
_CONTROL_IN_JSON = {code: f"\\u{code:04x}" for code in range(127, 160)}
"""Control characters that JSON need not escape. U+009B, for example, begins a command of a terminal."""

WRAPPED_WIDTH_MIN = 20
"""Texts are broken into lines of this width, however narrow the terminal is."""


def ago(at_ms: int) -> str:
    """The time since then (epoch ms), in words: "5 min"."""
    return durations.about(machine_ms() - at_ms)


def on_terminal() -> bool:
    """True if stdout is a terminal."""
    return sys.stdout.isatty()


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print `text` and a line end, flushed: into a pipe or a file as it is, on a terminal as `visible` spells it."""
    if (sys.stderr if err else sys.stdout).isatty():
        spelled = visible(text)
        click.echo("\n".join(wrapped(spelled, terminal_width())) if err else spelled, err=err, nl=nl)
    else:
        # An error may name an argument that is not UTF-8 and so has surrogates; a content never has them.
        click.echo(text.encode(errors="backslashreplace" if err else "strict"), err=err, nl=nl)


def echo_styled(line: str) -> None:
    """Print a line on a terminal. Its parts come from `styled` or `visible`."""
    click.echo(line, color=True)


def styled(text: str, *, bold: bool | None = None, dim: bool | None = None) -> str:
    """`text` as `visible` spells it, in bold or dim where stdout is styled."""
    spelled = visible(text)
    return click.style(spelled, bold=bold, dim=dim) if is_styled(sys.stdout) else spelled


def print_json(value: Any) -> None:
    """One JSON object on a line of its own, flushed; of a struct all members."""
    line = msgspec.json.encode(members(value) if isinstance(value, msgspec.Struct) else value)
    click.echo(_visible_json(line) if on_terminal() else line)


@contextmanager
def writing_lines(file: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes lines of JSON to a file. file: None for stdout."""
    if file is None:
        out = sys.stdout.buffer
        terminal = on_terminal()
        yield lambda lines: out.write(_visible_json(lines) if terminal else lines)
        out.flush()
    else:
        with open(file, "wb") as stream:
            yield stream.write
            stream.flush()


def _visible_json(lines: bytes) -> bytes:
    """The same values, with all control characters escaped."""
    return lines.decode().translate(_CONTROL_IN_JSON).encode()


def members(value: msgspec.Struct) -> dict[str, Any]:
    """The members of a struct by their names in JSON, including defaults that its JSON leaves out."""
    return dict(zip(value.__struct_encode_fields__, msgspec.structs.astuple(value), strict=True))


def visible(text: str) -> str:
    """`text` with control characters spelled out, so that a message cannot command the terminal."""
    return text.translate(_CONTROL)


def terminal_width() -> int:
    """How many cells a line of the terminal has."""
    return shutil.get_terminal_size().columns


def wrapped(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells of the terminal, broken between words where there are any."""
    if len(text) * (1 if text.isascii() else 2) <= width:  # without rich, whose import takes a while
        return text.split("\n")
    from rich.cells import cell_len, chop_cells

    width = max(width, WRAPPED_WIDTH_MIN)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line, *words = paragraph.split(" ")
        for word in words:
            if cell_len(line) + 1 + cell_len(word) <= width:
                line = f"{line} {word}"
            else:
                lines += chop_cells(line, width)
                line = word
        lines += chop_cells(line, width) or [""]
    return lines


def one_line(text: str, length_max: int) -> str:
    """`text` on one line, cut where it is long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length_max else flat[: length_max - 1] + "…"
