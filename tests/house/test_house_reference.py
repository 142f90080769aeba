"""The pages of docs/reference are what the declarations make of them, as is docs/openapi.json."""

import re
from pathlib import Path

import click
import pytest

from docs._generate import files
from docs._generate.cli import Explained, explained
from docs._generate.markdown import table, with_code, with_links
from docs._generate.python import text_below
from forq_trio.model.logs.events import KINDS, MEANINGS

RUN = "run `python -m docs._generate`"


@pytest.fixture(scope="module")
def made() -> dict[Path, str]:
    return files()


def test_pages_and_document_are_up_to_date(made) -> None:
    for path, text in made.items():
        assert path.exists(), f"{path.name} is not there: {RUN}"
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is old: {RUN}"


def test_no_page_is_left_of_what_is_gone(made, root) -> None:
    reference = root / "docs" / "reference"
    assert {*reference.iterdir(), root / "docs" / "openapi.json"} == made.keys()


def test_every_name_of_python_says_what_it_is_for(made) -> None:
    pages = {path.name: text for path, text in made.items() if path.name.startswith("python-")}
    found = [empty for text in pages.values() for empty in empty_entries(text)]
    assert len(pages) > 5
    assert found == []


def empty_entries(page: str) -> list[str]:
    """The names that a page has nothing to say of, but perhaps of their methods."""
    return re.findall(r"^<!-- \w+ ([\w.]+) -->\n+(?=## |- `|\Z)", page, re.MULTILINE)


def test_a_name_that_says_nothing_is_found() -> None:
    page = "## A\n\n<!-- data m.A -->\n\n## B\n\n<!-- class m.B -->\n\nB.\n\n## C\n\n<!-- class m.C -->\n\n- `d()`\n"
    assert empty_entries(page) == ["m.A", "m.C"]


def test_an_alias_has_its_text_below_it() -> None:
    assert text_below("forq_trio.telemetry.families", "Number").startswith("A value; ")
    with pytest.raises(AssertionError, match="nothing is said of Text"):
        text_below("forq_trio.telemetry.families", "Text")


def test_every_kind_of_event_has_its_meaning() -> None:
    assert sorted(MEANINGS) == sorted(KINDS)


def test_words_become_code_once() -> None:
    said = with_code("Not --ack, `--lease` or FORQ_EVENTS=on, but orders*; see $FORQ_URL and `a*`.")
    assert said == "Not `--ack`, `--lease` or `FORQ_EVENTS=on`, but orders\\*; see $FORQ_URL and `a*`."


def test_links_lead_from_the_folder_of_the_pages() -> None:
    text = "[a](docs/queues.md#x) [b](docs/reference/cli.md) [c](https://example.com/docs/d)"
    assert with_links(text) == "[a](../queues.md#x) [b](cli.md) [c](https://example.com/docs/d)"


def test_a_bar_in_a_cell_is_no_end_of_it() -> None:
    made = table(["a", "b"], [["x|y", "two\nlines"]])
    assert made == "| a | b |\n|---|---|\n| x\\|y | two lines |"
    assert len(re.findall(r"(?<!\\)\|", made.splitlines()[-1])) == 3


OPTIONS = [
    (
        click.Option(["--max"], type=click.IntRange(1), metavar="N", help="Stop.  [default: 1; with --all no limit]"),
        Explained("--max N", "Stop. Allowed: `x >= 1`.", "1; with `--all` no limit"),
    ),
    (
        click.Option(["--url"], envvar="FORQ_URL", show_envvar=True, default="a:1", show_default=True, help="Where."),
        Explained("--url TEXT", "Where. Environment variable: `FORQ_URL`.", "a:1"),
    ),
    (
        click.Option(["--db"], required=True, metavar="FILE", help="The file.  [env var: FORQ_DB_PATH]"),
        Explained("--db FILE", "The file. Environment variable: `FORQ_DB_PATH`.", "required"),
    ),
    (
        click.Option(["--update"], is_flag=True, help="Change it.  [default]"),
        Explained("--update", "Change it. (default)", ""),
    ),
    (click.Option(["--old"], hidden=True, help="Gone."), None),
]  # fmt: skip


@pytest.mark.parametrize(("option", "said"), OPTIONS)
def test_an_option_is_explained(option: click.Option, said: Explained | None) -> None:
    assert explained(option, click.Context(click.Command("run"))) == said
