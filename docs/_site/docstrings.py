"""Docstrings, which are plain text with marks of Markdown, as reStructuredText; below those of records their fields."""

import inspect
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from docs._site.fields import Field, fields_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CODE = re.compile(r"(`+)(.+?)\1")
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
MARKS = re.compile(r"([\\*|]|_(?=\W|$))")
ITEM = re.compile(r"\s*(?:-|\d+\.) ")
PAGE = re.compile(r"docs/([\w/-]+)\.md(?:#[\w-]+)?")
NAMED = re.compile(r"(?:^|(?<=[.;] ))(\w+(?:, \w+)*): ")
RAISES = re.compile(r" (?=Raises )")


def write_as_rst(_: "Sphinx", what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place."""
    text = as_rst(with_parameters("\n".join(lines).partition("\f")[0], _parameters(thing)))
    if what == "class" and (found := list(fields_of(thing))):
        text = text.rstrip() + "\n\n" + "\n".join(map(_shown, found)) + "\n"
    lines[:] = text.split("\n")


def _parameters(thing: Any) -> Collection[str]:
    try:
        return inspect.signature(thing).parameters
    except (TypeError, ValueError):  # it cannot be called, or is not written in Python
        return ()


def with_parameters(text: str, names: Collection[str]) -> str:
    """A text whose sentences on parameters (`name: what it is.`) are a list, and what it raises a paragraph."""
    return "\n\n".join(_listed(paragraph, names) for paragraph in text.split("\n\n"))


def _listed(paragraph: str, names: Collection[str]) -> str:
    joined = " ".join(paragraph.split())
    starts = [found for found in NAMED.finditer(joined) if set(found[1].split(", ")) <= set(names)]
    if not starts or paragraph.startswith(" "):
        return paragraph
    ends = [found.start() for found in starts[1:]] + [len(joined)]
    items = [(found[1], joined[found.end() : end].strip()) for found, end in zip(starts, ends, strict=True)]
    last, *raises = RAISES.split(items[-1][1], maxsplit=1)
    items[-1] = (items[-1][0], last)
    listed = "\n".join(f"- `{name}`: {says}" for name, says in items)
    return "\n\n".join(filter(None, [joined[: starts[0].start()].strip(), listed, *raises]))


def as_rst(text: str) -> str:
    """A text with lists, code and blocks of code, which are indented below an empty line, but not in a list."""
    lines: list[str] = []
    literal = False
    for line in text.split("\n"):
        indented = line.startswith("    ")
        if literal and (indented or not line.strip()):
            lines.append(line)
            continue
        before = next((each for each in reversed(lines) if each.strip()), "")
        follows_text = bool(lines and lines[-1].strip())
        literal = indented and bool(before) and not follows_text and not ITEM.match(before)
        if literal:
            lines += ["::", "", line]
            continue
        begins_list = ITEM.match(line) and not ITEM.match(before) and not before.startswith("  ")
        ends_list = line.strip() and ITEM.match(before) and not ITEM.match(line) and not line.startswith(" ")
        if follows_text and (begins_list or ends_list):
            lines.append("")
        lines.append(_marked(line))
    return "\n".join(lines)


def _marked(line: str) -> str:
    """A line with its code as such, and everything else that would be a mark escaped."""
    found, end = [], 0
    for code in CODE.finditer(line):
        found += [_escaped(line[end : code.start()]), f"``{code[2].strip()}``"]
        end = code.end()
        if line[end : end + 1].isalnum():
            found.append("\\ ")
    return "".join([*found, _escaped(line[end:])])


def _escaped(text: str) -> str:
    plain = MARKS.sub(r"\\\1", LINK.sub(r"\1", text)).replace("`", "\\`")
    return PAGE.sub(r":doc:`/docs/\1`", plain)


def _shown(field: Field) -> str:
    default = f" = ``{field.default}``" if field.default else ""
    says = f": {_marked(field.says)}" if field.says else ""
    return f"- **{_escaped(field.name)}** (``{field.type}``{default}){says}"
