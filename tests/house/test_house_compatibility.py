"""What code, tests and documents refer to is there: numbered behaviours (F13), rules of the engine, documents."""

import re
from pathlib import Path

import pytest

# Contracts by the first letters of their numbers: Forq, Sasquatch, DelayedQueue, pgq, SQS.
NUMBER = re.compile(r"(?<![%\w])([FSDPQ])([1-9][0-9]?)\b(?:(?:-| to )\1([1-9][0-9]?)\b)?")
PROMISE = re.compile(r"\bpromises? [0-9]")
DOCUMENT = re.compile(r"(?<![\w./-])(?:docs/(?:compatibility/)?)?[\w-]+\.md\b")
RULE = re.compile(r"\brules? ([1-9][0-9]?)\b", re.IGNORECASE)
SUFFIXES = {".py", ".md", ".sql", ".toml", ".yaml", ".yml"}
FOLDERS = ("forq_trio", "pyspark_forq", "tests", "bench", "examples", "script", "docs", ".ci")


def named(text: str) -> set[str]:
    """The numbers that a text names, and those of a range (F2-F7) between its ends."""
    return {
        f"{letter}{number}"
        for letter, first, last in NUMBER.findall(text)
        for number in range(int(first), int(last or first) + 1)
    }


@pytest.fixture(scope="module")
def texts(root) -> dict[str, str]:
    """Everything that we write, by its place in the project."""
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*")] + list(root.glob("*"))
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(paths)
        if path.is_file() and (path.suffix in SUFFIXES or path.parent.name == "script")
    }


@pytest.fixture(scope="module")
def sections(root) -> dict[str, dict[str, str]]:
    """The entries of each page of docs/compatibility: number and what stands below its heading."""
    pages = {}
    for page in sorted((root / "docs" / "compatibility").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        pages[page.name] = dict(re.findall(r"^### ([A-Z]\d+) .+\n((?:(?!^#).*\n)*)", text, re.MULTILINE))
    return pages


@pytest.fixture(scope="module")
def defined(sections) -> set[str]:
    return {number for page in sections.values() for number in page}


def test_every_number_that_is_named_is_defined(texts, defined) -> None:
    undefined = {place: sorted(named(text) - defined) for place, text in texts.items()}
    assert {place: numbers for place, numbers in undefined.items() if numbers} == {}


@pytest.mark.parametrize("letter", "FSDPQ")
def test_a_number_that_nobody_defined_is_found(defined, letter) -> None:
    made_up = f"{letter}{99}"
    assert named(f"As {letter.lower()}99 says (contract {made_up}).") - defined == {made_up}
    assert named(f"{letter}{97}-{made_up}, {letter}{95} to {letter}{96}") == {
        f"{letter}{number}" for number in (95, 96, 97, 98, 99)
    }


def test_what_only_looks_like_a_number_is_none() -> None:
    assert named("%D9%A3 xF3 F3x F0 F100 f3 Q_3 SHA256 P.4") == set()


def test_the_walk_reaches_code_tests_and_documents(texts) -> None:
    assert {"README.md", "docs/api.md", "forq_trio/http/access.py", "script/test"} <= set(texts)
    assert str(Path(__file__).relative_to(Path(__file__).parents[2])) in texts
    assert any(place.endswith(".sql") for place in texts)
    assert all(
        "F13" in named(texts[place])
        for place in ("forq_trio/model/server/commands.py", "docs/compatibility/forq.md")
    )


@pytest.mark.parametrize(
    ("page", "letter", "last"),
    [("forq.md", "F", 16), ("sasquatch.md", "S", 11), ("delayed-queue.md", "D", 51), ("pgq.md", "Q", 41)],
)
def test_a_page_has_all_numbers_in_their_order(sections, page, letter, last) -> None:
    assert list(sections[page]) == [f"{letter}{number}" for number in range(1, last + 1)]


def test_every_behaviour_has_a_test_that_shows_it(sections) -> None:
    without = [
        number
        for page in sections.values()
        for number, text in page.items()
        if not re.search(r"\*Shown by\* .*\]\(\.\./\.\./tests/", text)
    ]
    assert without == [number for number, text in sections["pgq.md"].items() if "*Not yet*" in text]


def test_rules_of_the_engine_are_named_by_their_file(texts) -> None:
    """storage/engine.py lists the files; a number would have to be looked up there. Migrations stay as they are."""
    found = {place: RULE.findall(text) for place, text in texts.items() if "/migrations/" not in place}
    assert {place: numbers for place, numbers in found.items() if numbers} == {}


def test_promises_have_no_numbers(texts) -> None:
    assert [place for place, text in texts.items() if PROMISE.search(text)] == []


def test_every_document_that_code_names_is_there(texts, root) -> None:
    missing = {
        f"{place}: {name}"
        for place, text in texts.items()
        if not place.startswith("tests/house/") and not place.endswith(".md")
        for name in DOCUMENT.findall(text)
        if not any((root / folder / name).exists() for folder in ("", "docs", "docs/reference"))
    }
    assert missing == set()
