"""A part of Sphinx that changes pages as they are read.

The contents come from docs/index.md, the index from docs/finding.md, and the pages on Python are filled by autodoc.
"""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from docs._site.contents import with_contents
from docs._site.docstrings import write_as_rst
from docs._site.fields import fields_of
from docs._site.finding import anchor_of, found_words
from docs._site.links import with_links
from docs._site.python_pages import with_autodoc

ROOT = Path(__file__).parents[2]


def change_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Change the text of a page before it is read."""
    text = source[0]
    if docname == app.config.root_doc:
        text = with_contents(text, docname)
    if docname.startswith("docs/reference/python-"):
        text = with_autodoc(text)
    source[0] = with_links(text, docname, ROOT, app.env.found_docs)


class IndexWords(SphinxTransform):
    """Makes entries of the index, which the search shows first, of the words that lead to sections of a page."""

    default_priority = 500

    def apply(self, **_: Any) -> None:
        words = found_words(ROOT).get(self.env.docname, {})
        for number, section in enumerate(self.document.findall(nodes.section)):
            found = [*words.get("", ())] if number == 0 else []
            found += words.get(anchor_of(section.next_node(nodes.title).astext()), ())
            entries = [("single", word, section["ids"][0], "main", None) for word in found]
            if entries:
                section.insert(1, addnodes.index(entries=entries))


def leave_out_signature(
    _: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str
) -> tuple[str, str] | None:
    """Records list their fields instead; most errors are made like all others."""
    is_record = what == "class" and any(fields_of(thing))
    is_alike = what == "exception" and "__init__" not in vars(thing)
    return ("", "") if signature and (is_record or is_alike) else None


def skip_member(_: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what is documented as a field of its class."""
    return True if (getattr(member, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", change_source)
    app.add_transform(IndexWords)
    app.connect("autodoc-process-signature", leave_out_signature)
    app.connect("autodoc-process-docstring", write_as_rst)
    app.connect("autodoc-skip-member", skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
