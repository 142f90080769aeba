"""The words of docs/finding.md, which the search finds at the places to which they lead."""

import posixpath
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| \[[^\]]+\]\(([^)#]+)\.md(?:#([^)]+))?\) \|$", re.MULTILINE)


@cache
def found_words(root: Path) -> Mapping[str, Mapping[str, list[str]]]:
    """By page and heading the words that lead there; the heading is empty for the page as a whole."""
    found: dict[str, dict[str, list[str]]] = {}
    for word, page, anchor in ROW.findall((root / "docs" / "finding.md").read_text(encoding="utf-8")):
        name = posixpath.join("docs", page)
        found.setdefault(name, {}).setdefault(anchor, []).append(word)
    return found


def anchor_of(heading: str) -> str:
    """The fragment of a link to a heading, as Git hosts have it."""
    words = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading)).strip()
    return words.lower().replace(" ", "-")
