"""Links of the documents lead somewhere, and scripts can be run."""

import os
import re

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)")
SHOWN = re.compile(r"(?:src|href)=\"(?!https?:|mailto:|#|/)([^\"#]+)\"")


def test_every_link_of_the_documents_exists(root) -> None:
    documents = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    broken = [
        f"{document.relative_to(root)} -> {link}"
        for document in documents
        for pattern in (LINK, SHOWN)
        for link in pattern.findall(document.read_text(encoding="utf-8"))
        if not (document.parent / link).exists()
    ]
    assert broken == []


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
