"""Texts from outside as people see them: what cannot be seen, or changes how its surroundings are seen, is a symbol.

That is control characters, marks of direction, zero-width characters, separators of lines and lone surrogates.
"""

import re
from collections.abc import Iterator

_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_HAS_UNSEEN = re.compile(f"[{_UNSEEN}]")
_CONTROL_PICTURES = 0x2400
_DELETE, _DELETE_PICTURE = 0x7F, "\u2421"


def visible(text: str) -> str:
    """The text with a symbol in the place of each character that cannot be seen; tabs and line feeds stay."""
    return text.translate(_SYMBOLS) if _HAS_UNSEEN.search(text) else text


def _symbol(code: int) -> str:
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    return _DELETE_PICTURE if code == _DELETE else f"\u27e8U+{code:04X}\u27e9"


def _members(characters: str) -> Iterator[int]:
    """The code points of the inside of a character class."""
    for first, last in re.findall("(.)(?:-(.))?", characters, re.DOTALL):
        yield from range(ord(first), ord(last or first) + 1)


_SYMBOLS = {code: _symbol(code) for code in _members(_UNSEEN)}
