"""What the site makes of the pages, without Sphinx; tests/house/test_house_site_built.py builds it."""

import re

from docs._site.contents import with_contents
from docs._site.docstrings import as_rst, with_parameters
from docs._site.fields import fields_of
from docs._site.finding import anchor_of, found_words
from docs._site.links import with_links
from docs._site.python_pages import with_autodoc
from forq_trio import Delivery, ForqClient, NewMessage
from support.searched import SEARCHED


def test_words_that_people_search_for_lead_to_their_page(root) -> None:
    found = {
        word: page
        for page, places in found_words(root).items()
        for words in places.values()
        for word in words
    }
    assert {word: found.get(word) for word in SEARCHED} == SEARCHED


def test_every_row_of_the_words_is_read_and_leads_to_a_heading(root) -> None:
    text = (root / "docs" / "finding.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)[1:]
    assert rows == sorted(rows, key=str.lower)
    found = found_words(root)
    assert sorted(word for places in found.values() for words in places.values() for word in words) == sorted(
        rows
    )
    for page, places in found.items():
        headings = re.findall(r"^#+ (.+)$", (root / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)
        assert set(places) - {""} <= {anchor_of(heading) for heading in headings}, page


def test_the_contents_are_the_lists_of_the_start_page() -> None:
    text = "# T\n\n## Start\n\n- [A: one](a.md)\n- [B](../B.md)\n\n## No list\n\ntext [A](a.md)\n"
    made = with_contents(text, "docs/index").removeprefix(text)
    assert made == "\n```{toctree}\n:hidden:\n:caption: Start\n\n/docs/a\n/B\n```\n"


def test_links_to_what_is_no_page(tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("")
    text = (
        "[page](b.md#x) [file](../tests/test_a.py) [folder `f`](../tests) ![picture](../tests/a.png)\n"
        "```\n[in code](../tests)\n```\n[web](https://example.com) [here](#x)"
    )
    assert with_links(text, "docs/a", tmp_path, {"docs/b"}) == text.replace(
        "[folder `f`](../tests)", "folder `f`"
    )


def test_links_lead_to_the_repository_once_it_is_known(tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project.urls]\nSource = "https://example.com/forq/"\n')
    (tmp_path / "tests").mkdir()
    (tmp_path / "a.py").write_text("")
    changed = with_links("[t](../tests) [a](../a.py#L3)", "docs/a", tmp_path, set())
    assert (
        changed
        == "[t](https://example.com/forq/tree/HEAD/tests) [a](https://example.com/forq/blob/HEAD/a.py#L3)"
    )


def test_pages_on_python_are_filled_by_autodoc() -> None:
    text = (
        "# T\n\nintro\n\n## One\n\n<!-- class m.One -->\n\nshort\n\n- `a()`\n\n"
        "## two\n\n<!-- function m.two -->\n\nshort\n"
    )
    made = with_autodoc(text)
    assert "short" not in made
    assert made.startswith("# T\n\nintro\n\n## One\n\n```{eval-rst}\n.. autoclass:: m.One\n   :members:\n")
    assert made.endswith("## two\n\n```{eval-rst}\n.. autofunction:: m.two\n```\n\n")


def test_the_text_of_an_alias_stays() -> None:
    made = with_autodoc("## Ms\n\n<!-- data m.Ms -->\n\nSome `ms`.\n\n## B\n\n<!-- class m.B -->\n\nB.\n")
    assert made.startswith("## Ms\n\n```{eval-rst}\n.. autodata:: m.Ms\n\n   Some ``ms``.\n```\n\n## B\n")


def test_a_docstring_keeps_its_code_and_lists() -> None:
    text = (
        "Sends `x` to *all* of [these](a.md), as `f(*a)`s do; a_ b|c.\nIt has:\n- one\n- two `y`\n\n"
        "Like this:\n\n    a = *b*\n\nThe end."
    )
    assert as_rst(text) == (
        "Sends ``x`` to \\*all\\* of these, as ``f(*a)``\\ s do; a\\_ b\\|c.\nIt has:\n\n- one\n- two ``y``\n\n"
        "Like this:\n\n::\n\n    a = *b*\n\nThe end."
    )


def test_a_docstring_links_pages() -> None:
    assert as_rst("Runs (docs/workers.md), as docs/compatibility/forq.md#f4 says.") == (
        "Runs (:doc:`/docs/workers`), as :doc:`/docs/compatibility/forq` says."
    )


def test_sentences_on_parameters_become_a_list() -> None:
    text = "Does it.\n\nFirst: this. one: the\none. two, three: both; so. four: no parameter. Raises E if so."
    assert with_parameters(text, ["one", "two", "three"]) == (
        "Does it.\n\nFirst: this.\n\n- `one`: the one.\n- `two, three`: both; so. four: no parameter.\n\n"
        "Raises E if so."
    )
    assert with_parameters(text, []) == text


def test_fields_of_a_record_have_their_types() -> None:
    fields = {field.name: field for field in fields_of(NewMessage)}
    assert list(fields)[:2] == ["content", "process_after"]
    assert fields["content"].type == "str"
    assert fields["content"].default == ""
    assert fields["content"].says.startswith("Any text")
    assert (fields["process_after"].type, fields["process_after"].default) == ("int | None", "None")
    delivered = {field.name: field.says for field in fields_of(Delivery)}
    assert delivered["first_received_at"] == "when it was first handed to a consumer (epoch ms)"
    assert list(fields_of(ForqClient)) == []
