"""The contents: the lists of links of docs/index.md, each below its heading, as Sphinx has them."""

import posixpath
import re

SECTION = re.compile(r"^## (.+)\n\n((?:- .+\n)+)", re.MULTILINE)
ITEM = re.compile(r"^- \[(.+)\]\((.+)\.md\)$", re.MULTILINE)


def with_contents(text: str, docname: str) -> str:
    """The start page with hidden contents, in which each page has its own title."""
    sections = SECTION.findall(text)
    return text + "".join(_toctree(caption, items, docname) for caption, items in sections)


def _toctree(caption: str, items: str, docname: str) -> str:
    folder = posixpath.dirname(docname)
    pages = [posixpath.normpath(posixpath.join(folder, page)) for _, page in ITEM.findall(items)]
    lines = "\n".join(f"/{page}" for page in pages)
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n"
