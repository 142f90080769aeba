"""Writes all pages."""

import sys

from docs._generate import DOCS, pages

sys.path.insert(
    0, str(DOCS.parent / "tests")
)  # where a server without a socket is, which is asked for its series
for path, text in pages().items():
    path.write_text(text, encoding="utf-8")
