"""Finds what is new in a content compared with another one: as marks in its HTML, or as members of JSON objects."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from markupsafe import Markup

from forq_trio.model.json_text import loads
from forq_trio.ui.content import Shown

UNITS_MAX = 400
"""How many values or lines are compared. It takes the square of their number, so of more none are marked."""
_VALUES = re.compile(r'<span class="[ksn]">[^<]*</span>')
_LINES = re.compile(r"[^\n]+")


def differing_members(old: str, new: str) -> list[str] | None:
    """The names of members that differ between two JSON objects; None unless both are objects."""
    try:
        before, after = loads(old), loads(new)
    except ValueError:
        return None
    if not isinstance(before, dict) or not isinstance(after, dict):
        return None
    names = [*after, *(name for name in before if name not in after)]
    return [name for name in names if name not in before or name not in after or before[name] != after[name]]


def marked(old: Shown, new: Shown) -> Markup:
    """The HTML of `new` with what `old` does not have in a <mark>: values of JSON, else lines."""
    units = _VALUES if old.kind == new.kind == "JSON" and old.view == new.view == "pretty" else _LINES
    before, after = units.findall(old.html), units.findall(new.html)
    if max(len(before), len(after)) > UNITS_MAX or (units is _LINES and "<" in new.html):
        return new.html
    same = {
        place
        for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        for place in range(block.b, block.b + block.size)
    }
    places = iter(range(len(after)))
    return Markup(units.sub(lambda match: _marked(match, places, same), new.html))


def _marked(match: re.Match[str], places: Iterator[int], same: set[int]) -> str:
    return match[0] if next(places) in same else f"<mark>{match[0]}</mark>"
