"""The pages of docs/reference that are made from declarations are up to date, and guides are short enough to read."""

import re

from docs._generate import pages
from docs._generate.cli import parts_added
from docs._generate.markdown import table, with_code, with_links
from forq_trio.model.logs.events import KINDS, MEANINGS

RUN = "run `python -m docs._generate`"


def test_the_pages_are_up_to_date() -> None:
    for path, text in pages().items():
        assert path.exists(), f"{path.name} is not there: {RUN}"
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is old: {RUN}"


def test_no_page_is_left_of_what_is_gone() -> None:
    made = set(pages())
    (folder,) = {path.parent for path in made}
    ours = "Made by `python -m docs._generate`"
    assert {path for path in folder.glob("*.md") if ours in path.read_text(encoding="utf-8")} == made


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


def test_what_stands_behind_a_meaning_is_taken_apart() -> None:
    assert parts_added("Stop.  [default: 1; with --follow no limit]  [x>=1]") == [
        "default: 1; with --follow no limit",
        "x>=1",
    ]
    assert parts_added("Where.  [env var: FORQ_URL; default: http://localhost:8080]") == [
        "env var: FORQ_URL",
        "default: http://localhost:8080",
    ]
