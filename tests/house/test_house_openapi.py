"""What the HTTP reference has beside what all pages of docs/reference have; its guide is short."""

import json
import re

import pytest

from docs._generate import http
from docs._generate.http_operations import WIDTH, shown
from docs._generate.http_types import kind_of
from docs._generate.markdown import made_from, prose

GUIDE_WORDS_MAX = 1_200


@pytest.fixture(scope="module")
def document() -> dict:
    return http.read_document()


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """The text of each page."""
    return dict(http.pages())


def test_every_operation_has_a_section_and_a_line_in_the_overview(document, made) -> None:
    operations = {
        f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods
    }
    headings = [
        heading for text in made.values() for heading in re.findall(r"^### (.+)$", text, re.MULTILINE)
    ]
    assert sorted(headings) == sorted(operations)
    listed = re.findall(r"^\| \[([A-Z]+ \S+)\]", made["http.md"], re.MULTILINE)
    assert sorted(listed) == sorted(operations)


def test_every_type_has_a_section(document, made) -> None:
    types = re.findall(r"^## (\w+)$", made["http-types.md"], re.MULTILINE)
    assert types == sorted(document["components"]["schemas"])


def test_pages_are_plain_markdown(made) -> None:
    pages = {name: text.replace(made_from(http.SOURCE), "", 1) for name, text in made.items()}
    assert {name for name, text in pages.items() if re.search(r"^<|</\w+>", text, re.MULTILINE)} == set()
    rows = [line for text in pages.values() for line in text.splitlines() if line.startswith("|")]
    assert len(rows) > 500
    heads = [text.splitlines()[0] for text in pages.values()]
    assert all(head.startswith("# ") for head in heads)


def test_every_row_has_the_cells_of_its_head(made) -> None:
    for name, text in made.items():
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            cells = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(cells) == 1, (name, block.splitlines()[0])


def test_the_guide_is_short(root) -> None:
    words = (root / "docs" / "api.md").read_text(encoding="utf-8").split()
    assert len(words) <= GUIDE_WORDS_MAX


LONG = {
    "ids": ["a" * 30] * 4,
    "more": [{"name": "b" * 40, "at": 1}, {"name": "c" * 40, "at": 2}],
    "last": None,
}


def test_examples_are_broken_where_they_are_too_long() -> None:
    assert shown({"a": 1}) == '{"a": 1}'
    text = shown(LONG)
    assert json.loads(text) == LONG
    assert max(map(len, text.splitlines())) <= WIDTH + 2
    assert len(text.splitlines()) == 5


@pytest.mark.parametrize(
    ("name", "schema", "kind"),
    [
        ("waitMs", {"type": "integer", "minimum": 0, "maximum": 30_000}, "milliseconds, 0 to 30,000"),
        ("count", {"type": "integer", "minimum": 1}, "integer, at least 1"),
        ("after", {"type": "integer", "maximum": 2**63 - 1, "minimum": 0}, "integer"),
        ("group", {"type": ["string", "null"], "minLength": 1, "maxLength": 9}, "text, 1 to 9 characters or null"),
        ("order", {"enum": ["fifo", "shuffle"]}, "`fifo` or `shuffle`"),
        ("kind", {"type": ["string", "null"], "x-extensible-enum": ["sent", "acked"]}, "`sent`, `acked` or null"),
        ("x", {"type": "array", "items": {"$ref": "#/a/b/Failure"}}, "list of [Failure](http-types.md#failure)"),
        ("x", {"type": "object", "additionalProperties": {"type": "string"}}, "object of text"),
    ],
)  # fmt: skip
def test_types_are_said_in_words(name, schema, kind) -> None:
    assert kind_of(schema, name) == kind


def test_words_of_the_document_become_markdown() -> None:
    said = prose("See docs/queues.md#full-queues and FORQ_EVENTS=on, the header X-Forq-Next; `docs/a.md`.")
    assert said == (
        "See [queues.md](../queues.md#full-queues) and `FORQ_EVENTS=on`, the header `X-Forq-Next`; `docs/a.md`."
    )
