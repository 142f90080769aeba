"""Writes all pages, and docs/openapi.json; needs what script/test installs."""

import sys

from docs._generate import DOCS, files

# Where a server without a socket is, which is asked for its series and its document.
sys.path.insert(0, str(DOCS.parent / "tests"))
for path, text in files().items():
    path.write_text(text, encoding="utf-8")
