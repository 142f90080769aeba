"""Links to files of the repository that are no pages.

Where pyproject.toml says where the repository is, the link leads there. Else a file is a download, and the text of a
link to a folder stays alone.
"""

import posixpath
import re
import tomllib
from collections.abc import Container
from functools import cache
from pathlib import Path

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]+)?\)")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


@cache
def repository(root: Path) -> str:
    """Where the repository is on the web, without a slash at the end; empty if nobody has said so."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = {name.lower(): url for name, url in project.get("urls", {}).items()}
    return next((urls[name].rstrip("/") for name in ("source", "repository") if name in urls), "")


def with_links(text: str, docname: str, root: Path, pages: Container[str]) -> str:
    """The text of a page with links that work on the site. pages: the names of all, without their suffix."""

    def changed(found: re.Match[str]) -> str:
        says, target, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(docname), target))
        if target.endswith(".md") and path.removesuffix(".md") in pages:
            return found[0]
        place = root / path
        if repository(root) and place.exists():
            kind = "tree" if place.is_dir() else "blob"
            return f"[{says}]({repository(root)}/{kind}/HEAD/{path}{anchor or ''})"
        return says if place.is_dir() else found[0]

    return "".join(part if part.startswith("```") else LINK.sub(changed, part) for part in FENCE.split(text))
