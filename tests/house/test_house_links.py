"""Links of the documents lead somewhere, headings included, and scripts can be run."""

import os
import re
from pathlib import Path

import pytest

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")
SHOWN = re.compile(r"(?:src|href)=\"(?!https?:|mailto:|#|/)([^\"#]+)\"")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def documents(root) -> list[Path]:
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md")]


def anchors(text: str) -> set[str]:
    """The fragments by which one links to the headings of a document."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading)).strip()
        name = words.lower().replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return set(found) | {f"{name}-{n}" for name, more in found.items() for n in range(1, more + 1)}


def broken_links(document: Path) -> list[str]:
    text = document.read_text(encoding="utf-8")
    broken = [name for name in SHOWN.findall(text) if not (document.parent / name).exists()]
    for name, fragment in LINK.findall(FENCED.sub("", text)):
        target = document.parent / name if name else document
        if not target.exists():
            broken.append(name)
        elif (
            fragment
            and target.suffix == ".md"
            and fragment not in anchors(target.read_text(encoding="utf-8"))
        ):
            broken.append(f"{name}#{fragment}")
    return broken


def test_every_link_of_the_documents_exists(root, documents) -> None:
    broken = {str(document.relative_to(root)): broken_links(document) for document in documents}
    assert {name: links for name, links in broken.items() if links} == {}


def test_a_broken_link_is_found(tmp_path) -> None:
    document = tmp_path / "page.md"
    document.write_text(
        "# One `word`\n## Two\n## Two\n[a](#one-word) [b](page.md#two-1) [c](#three) [d](no.md) [e](page.md#two-2)\n"
        '<img src="no.svg">\n```\n# no heading\n[f](no.md)\n```\n[g](#no-heading)\n',
        encoding="utf-8",
    )
    assert broken_links(document) == ["no.svg", "#three", "no.md", "page.md#two-2", "#no-heading"]


def test_scripts_can_be_run(root) -> None:
    scripts = [
        path for folder in ("script", ".ci") for path in (root / folder).iterdir() if path.suffix == ""
    ]
    assert {"server", "test", "soak", "run"} <= {path.name for path in scripts}
    assert [
        path.name for path in scripts if path.name != "environment" and not os.access(path, os.X_OK)
    ] == []
    assert [
        path.name for path in scripts if "set -euo pipefail" not in path.read_text(encoding="utf-8")
    ] == []
