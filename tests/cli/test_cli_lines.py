"""Cutting a stream into lines: the same whatever the chunks, bounded, and nothing lost around a bad line."""

import random

import pytest

from forq_trio.cli.lines import LINE_BYTES_MAX, NOT_UTF8, TOO_LONG, InputLine, LineCutter
from forq_trio.model.limits import CONTENT_BYTES_MAX

TEXT = "one\n\ntwo\r\nkäse\n\r\n  spaces \nthree".encode() + b"\nbad \xff\nlast\r"
LINES = [
    InputLine(1, "one"),
    InputLine(3, "two"),
    InputLine(4, "käse"),
    InputLine(6, "  spaces "),
    InputLine(7, "three"),
    InputLine(8, None, NOT_UTF8),
    InputLine(9, "last"),
]


def cut(*chunks: bytes) -> list[InputLine]:
    cutter = LineCutter()
    return [line for chunk in chunks for line in cutter.feed(chunk)] + list(cutter.finish())


def test_whole_and_byte_by_byte():
    assert cut(TEXT) == LINES
    assert cut(*(TEXT[index : index + 1] for index in range(len(TEXT)))) == LINES


def test_in_any_chunks(rng: random.Random):
    for _ in range(200):
        cuts = sorted(rng.sample(range(len(TEXT)), 4))
        assert cut(*(TEXT[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True))) == LINES


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_a_line_may_be_as_long_as_a_message(ending: bytes):
    assert LINE_BYTES_MAX == CONTENT_BYTES_MAX
    longest = b"x" * LINE_BYTES_MAX
    assert cut(longest + ending) == [InputLine(1, longest.decode())]
    assert cut(longest + b"x" + ending) == [InputLine(1, None, TOO_LONG)]


@pytest.mark.parametrize("chunk_bytes", [1_000, 65_536, 10_000_000])
def test_a_line_that_is_far_too_long_is_reported_once_and_not_stored(chunk_bytes: int):
    text = b"a\n" + b"x" * (3 * LINE_BYTES_MAX) + b"\nb\n"
    cutter = LineCutter()
    lines = []
    for start in range(0, len(text), chunk_bytes):
        lines += cutter.feed(text[start : start + chunk_bytes])
        assert len(cutter._rest) <= LINE_BYTES_MAX + 1
    assert lines + list(cutter.finish()) == [
        InputLine(1, "a"),
        InputLine(2, None, TOO_LONG),
        InputLine(3, "b"),
    ]


def test_a_byte_order_mark_at_the_start_belongs_to_no_line():
    marked = "\ufeff".encode() + TEXT
    assert cut(marked) == cut(*(marked[index : index + 1] for index in range(len(marked)))) == LINES
    longest = "\ufeff".encode() + b"x" * LINE_BYTES_MAX
    assert cut(longest, b"\n") == [InputLine(1, "x" * LINE_BYTES_MAX)]
    assert cut(longest + b"x", b"\n") == [InputLine(1, None, TOO_LONG)]
    assert cut(b"a\n", "\ufeffb\n".encode()) == [InputLine(1, "a"), InputLine(2, "\ufeffb")]
    assert cut("\ufeff".encode()) == cut("\ufeff\n".encode()) == []


def test_nothing_is_no_line():
    assert cut() == cut(b"") == cut(b"\n\n") == []
