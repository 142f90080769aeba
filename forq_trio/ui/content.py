"""The content of a message as people see it: JSON with indentation, text, or a hex dump.

Rules
- At most CONTENT_SHOWN_BYTES_MAX bytes are shown, of a hex dump HEX_BYTES_MAX. The page says what was cut, and the
  download has everything.
- JSON is not parsed into values: its tokens are shown as they were sent, so numbers, escapes, the order of members and
  duplicate keys stay. Reading it takes one step for each member or value, at most STEPS_MAX, without recursion. Content
  that is nested deeper than DEPTH_MAX, or is not JSON, is shown as text.
- Content is binary, and its first view a hex dump, if more than one in BINARY_SHARE of its first characters, and more
  than BINARY_CONTROLS_MIN of them, are control characters other than tab, line feed and carriage return.
- Characters that are invisible, or change how others are shown, appear as symbols in every view (unseen.py).

The source is escaped as a whole before it is read, since <, > and & mean nothing in JSON; only tags of ours are added.
"""

import html
import re
from collections.abc import Iterator

from markupsafe import Markup
from msgspec import Struct

from forq_trio.drawing import format
from forq_trio.drawing.unseen import visible
from forq_trio.model.limits import KIB

CONTENT_SHOWN_BYTES_MAX = 64 * KIB
HEX_BYTES_MAX = 16 * KIB
STEPS_MAX = 4_000
DEPTH_MAX = 64
INDENT_BYTES_MAX = 128 * KIB
MARKS_MAX = 1_000
BINARY_SHARE = 20
BINARY_CONTROLS_MIN = 3
_BINARY_SAMPLE = 4_096
_ONE_LINE_MAX = 60
_BYTES_A_LINE = 16

VIEWS = ("pretty", "raw", "hex")


class Shown(Struct, frozen=True):
    """Content, ready to be shown."""

    kind: str  # JSON, Text or Binary
    view: str  # one of VIEWS
    html: Markup
    bytes: int
    shown_bytes: int  # how many of all `bytes`
    note: str = ""  # why it is not shown as one might expect; "" if it is

    @property
    def summary(self) -> str:
        """In words: "JSON, 312 bytes, numbers as sent", "Text, first 64 KiB of 256 KiB"."""
        if self.shown_bytes < self.bytes:
            size = f"first {format.size(self.shown_bytes)} of {format.size(self.bytes)}"
        else:
            size = format.plural(self.bytes, "byte") if self.bytes < KIB else format.size(self.bytes)
        words = [self.kind, size]
        if self.view == "pretty" and self.kind == "JSON":
            words.append("numbers as sent")
        return ", ".join([*words, self.note] if self.note else words)


def show(content: str, view: str = "", text: str = "") -> Shown:
    """Prepare content. view: one of VIEWS, else the one that suits it. text: the text of a search, to be marked."""
    data = to_bytes(content)
    source = _beginning(data, CONTENT_SHOWN_BYTES_MAX)
    json = read_json(html.escape(source, quote=False), is_cut=len(source) < len(content))
    binary = not json.is_json and is_binary(content)
    kind = "JSON" if json.is_json else "Binary" if binary else "Text"
    if view not in VIEWS:
        view = "hex" if binary else "pretty"
    if view == "hex":
        return Shown(kind, view, hex_dump(data[:HEX_BYTES_MAX]), len(data), min(len(data), HEX_BYTES_MAX))
    if view == "pretty" and json.is_json:
        shown_bytes = min(len(data), len(to_bytes(_unescape(json.read))))
        return Shown(kind, view, _finish(json.html, text), len(data), shown_bytes)
    shown_bytes = len(data) if len(source) == len(content) else len(to_bytes(source))
    note = json.note if view == "pretty" else ""
    return Shown(kind, view, _finish(html.escape(source, quote=False), text), len(data), shown_bytes, note)


def _unescape(escaped: str) -> str:
    return escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def to_bytes(content: str) -> bytes:
    """The UTF-8 of a content. It also works for lone surrogates, which no sender's text has."""
    return content.encode(errors="surrogatepass")


def _beginning(data: bytes, bytes_max: int) -> str:
    """The text of the first `bytes_max` bytes, without a character that would be cut."""
    end = min(len(data), bytes_max)
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end].decode(errors="surrogatepass")


def is_binary(content: str) -> bool:
    """True if it has too many control characters to be text."""
    sample = content[:_BINARY_SAMPLE]
    controls = len(_CONTROLS.findall(sample))
    return controls > BINARY_CONTROLS_MIN and controls * BINARY_SHARE > len(sample)


_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def _finish(escaped: str, text: str) -> Markup:
    """Escaped text with tags of ours as it is shown: hits marked, and what cannot be seen as symbols."""
    if text and html.escape(text, quote=False) in escaped:
        wanted = re.compile(f"({re.escape(html.escape(text, quote=False))})|<[^<>]*>|&[a-z]+;")
        marks = iter(range(MARKS_MAX))
        escaped = wanted.sub(lambda match: _marked(match, marks), escaped)
    return Markup(visible(escaped.replace("\r\n", "\n")))


def _marked(match: re.Match[str], marks: Iterator[int]) -> str:
    return f"<mark>{match[1]}</mark>" if match[1] and next(marks, None) is not None else match[0]


def hex_dump(data: bytes) -> Markup:
    """Lines of sixteen bytes: where they begin, as hexadecimal numbers, as text."""
    lines = []
    for start in range(0, len(data), _BYTES_A_LINE):
        line = data[start : start + _BYTES_A_LINE]
        numbers = f"{line[:8].hex(' ')}  {line[8:].hex(' ')}"
        lines.append(f"{start:06x}  {numbers:<49} {line.translate(_AS_TEXT).decode()}")
    return Markup(html.escape("\n".join(lines), quote=False))


_AS_TEXT = bytes(each if 0x20 <= each < 0x7F else ord(".") for each in range(256))


# ---- JSON ----

# No group has a possessive quantifier: Python matched those wrongly before 3.11.4.
_SPACE = r"[ \t\n\r]*+"
_STRING = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*"'
_VALUE = re.compile(
    rf"{_SPACE}(?:(?P<key>{_STRING}){_SPACE}:{_SPACE})?"
    rf"(?:(?P<string>{_STRING})|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)"
    rf"|(?P<empty>\[{_SPACE}\]|\{{{_SPACE}\}})|(?P<open>[\[{{])){_SPACE}(?P<comma>,?)"
)
_CLOSE = re.compile(rf"{_SPACE}([\]}}]){_SPACE}(?P<comma>,?)")
_UNFINISHED = re.compile(
    rf"{_SPACE}(?:{_STRING}{_SPACE}:?{_SPACE})?"
    r'(?:"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*\\?|[-+.0-9a-zE]*+|[\[{][ \t\n\r]*+)\Z'
)
_SPACE_ONLY = re.compile(rf"{_SPACE}\Z")
_CLOSER = {"[": "]", "{": "}"}


class Json(Struct, frozen=True):
    """The result of `read_json`."""

    is_json: bool
    html: str = ""  # with indentation, if it `is_json`
    read: str = ""  # the part of the source it shows
    steps: int = 0  # how many it took
    note: str = ""  # why it is shown as text


class _Writer:
    """Collects the pieces of indented JSON. An array or object of scalars that fits in a line becomes one."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.closers: list[str] = []
        self.indent_bytes = 0
        self._breaks: list[int] | None = None  # of the innermost container, while it holds no other
        self._started = 0

    def value(self, match: re.Match[str]) -> None:
        """Write a member or a value, and its comma."""
        pieces = self.pieces
        if self.closers:
            self.line()
        key, string, number = match["key"], match["string"], match["number"]
        if key is not None:
            pieces.append(f'<span class="k">{key}</span>: ')
        if string is not None:
            pieces.append(f'<span class="s">{string}</span>{match["comma"]}')
        elif number is not None:
            pieces.append(f'<span class="n">{number}</span>{match["comma"]}')
        elif match["empty"] is not None:
            empty = match["empty"]
            pieces.append(f'<span class="c">{empty[0]}{empty[-1]}</span>{match["comma"]}')
        else:
            pieces.append(f'<span class="c">{match["open"]}</span>')
            self.closers.append(_CLOSER[match["open"]])
            self._breaks, self._started = [], match.end()

    def close(self, match: re.Match[str]) -> None:
        """Write the end of the innermost container, and its comma."""
        self.closers.pop()
        self.line()
        if self._breaks is not None and match.start() - self._started <= _ONE_LINE_MAX:
            for place in self._breaks:
                self.pieces[place] = " "
        self._breaks = None
        self.pieces.append(f'<span class="c">{match[1]}</span>{match["comma"]}')

    def line(self) -> None:
        """Begin a line."""
        if self._breaks is not None:
            self._breaks.append(len(self.pieces))
        indent = "\n" + "  " * len(self.closers)
        self.indent_bytes += len(indent)
        self.pieces.append(indent)


def read_json(source: str, *, is_cut: bool = False) -> Json:
    """Read an object or array from escaped text. is_cut: there is more behind it, so it may end anywhere."""
    if source.lstrip(" \t\n\r")[:1] not in ("{", "["):
        return Json(False)
    writer, at, steps = _Writer(), 0, 0
    wants_value = True
    while wants_value or writer.closers:
        if steps >= STEPS_MAX or writer.indent_bytes > INDENT_BYTES_MAX:
            return _cut(writer, source[:at], steps)
        steps += 1
        match = (_VALUE if wants_value else _CLOSE).match(source, at)
        if match is None:
            if not is_cut or (_UNFINISHED if wants_value else _SPACE_ONLY).match(source, at) is None:
                return Json(False, steps=steps)
            writer.line()
            writer.pieces.append(source[at:])
            return _cut(writer, source, steps)
        if wants_value:
            in_object = writer.closers[-1:] == ["}"]
            if in_object == (match["key"] is None):
                return Json(False, steps=steps)
            writer.value(match)
            wants_value = match["open"] is not None or match["comma"] != ""
        else:
            if match[1] != writer.closers[-1]:
                return Json(False, steps=steps)
            writer.close(match)
            wants_value = match["comma"] != ""
        if len(writer.closers) > DEPTH_MAX:
            return Json(False, steps=steps, note=f"nested deeper than {DEPTH_MAX}, as it was sent")
        at = match.end()
        if match["comma"] and not writer.closers:
            return Json(False, steps=steps)
    if _SPACE_ONLY.match(source, at) is None:
        return Json(False, steps=steps)
    return Json(True, "".join(writer.pieces), source, steps)


def _cut(writer: _Writer, read: str, steps: int) -> Json:
    """The part that was read before the content was cut, with an ellipsis."""
    return Json(True, "".join([*writer.pieces, '<span class="c">\u2026</span>']), read, steps)
