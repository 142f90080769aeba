"""Printing: text for people, or JSON with --json.

Data goes to stdout; progress, hints and errors go to stderr.
"""

import sys
from typing import Any

import click
import msgspec

from forq_trio.model import durations
from forq_trio.model.clock import machine_ms

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def ago(at_ms: int) -> str:
    """The time since then (epoch ms), in words: "5 min"."""
    return durations.about(machine_ms() - at_ms)


def on_terminal() -> bool:
    """True if stdout is a terminal."""
    return sys.stdout.isatty()


def print_json(value: Any) -> None:
    """One JSON object on a line of its own, flushed; of a struct all members."""
    click.echo(msgspec.json.encode(members(value) if isinstance(value, msgspec.Struct) else value))


def members(value: msgspec.Struct) -> dict[str, Any]:
    """The members of a struct by their names in JSON, also those that its JSON leaves out at their defaults."""
    return dict(zip(value.__struct_encode_fields__, msgspec.structs.astuple(value), strict=True))


def visible(text: str) -> str:
    """`text` with control characters spelled out, so that a message cannot command the terminal."""
    return text.translate(_CONTROL)


def one_line(text: str, length_max: int) -> str:
    """`text` on one line, cut where it is long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length_max else flat[: length_max - 1] + "…"
