"""What all pages have in common: tables, words that are code, links."""

import re
import textwrap
from collections.abc import Iterable

OPTION = re.compile(r"(?<![\w`/-])--[a-z][\w-]*(?![`\w])")
VARIABLE = re.compile(r"(?<![\w`$])FORQ_[A-Z_]*[A-Z](?:=\w+)?(?![`\w])")
CODE = re.compile(r"(`[^`]*`)")
HEADER = re.compile(r"(?<![`\w])X-Forq-[A-Za-z-]+(?![`\w])")
PAGE = re.compile(r"(?<![\w/`])(?<!\]\()docs/([\w-]+\.md)(#[\w-]+)?")
PROSE_WIDTH = 120


def made_from(what: str) -> str:
    """The comment below the title of a page, which only its editors see."""
    return f"<!-- Made by `python -m docs._generate` from {what}: change it there. -->"


def with_code(text: str) -> str:
    """Options and variables of a sentence as code, and stars as such."""
    return "".join(part if part.startswith("`") else _marked(part) for part in CODE.split(text))


def _marked(text: str) -> str:
    for pattern in (OPTION, VARIABLE):
        text = pattern.sub(r"`\g<0>`", text)
    return re.sub(r"(?<![*\w])\*(?!\*)|(?<=\w)\*(?![*\w])", r"\\*", text)


def with_links(text: str) -> str:
    """Links from the root of the repository, as declarations have them, as links from docs/reference."""
    return text.replace("](docs/reference/", "](").replace("](docs/", "](../")


def prose(text: str) -> str:
    """A text of several lines, with its variables and headers as code, and its pages of docs as links."""
    for pattern in (VARIABLE, HEADER):
        text = pattern.sub(r"`\g<0>`", text)
    text = PAGE.sub(lambda found: f"[{found[1]}](../{found[1]}{found[2] or ''})", text)
    return "\n".join(
        textwrap.fill(line, PROSE_WIDTH, break_long_words=False, break_on_hyphens=False)
        for line in text.strip().split("\n")
    )


def cell(text: str) -> str:
    """A text as `prose`, on one line."""
    return " ".join(prose(text).split())


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table. A bar within a cell is written with a backslash."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(_row(cells) for cells in lines)


def _row(cells: Iterable[str]) -> str:
    escaped = [re.sub(r"(?<!\\)\|", r"\\|", " ".join(cell.split())) for cell in cells]
    return "|" + "|".join(f" {cell} " if cell != "---" else cell for cell in escaped) + "|"


def page(title: str, source: str, *blocks: str) -> str:
    """A page of blocks with an empty line between each two."""
    return "\n\n".join([f"# {title}", made_from(source), *filter(None, blocks)]) + "\n"
