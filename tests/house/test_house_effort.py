"""FORQ_TEST_EFFORT: what it may be, what it comes to, and that docs/testing.md says so."""

import re

import pytest

from support import tiers
from support.effort import COUNTS, VARIABLE, count, parse, soak_seconds

READ = re.compile(r"environ(?:\.get\(|\[)\s*\"(FORQ_TEST_[A-Z_]+|FORQ_SEED)\"")
STEERING = re.compile(r"\bFORQ_(?:TEST_[A-Z_]+|SEED)\b")


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "testing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "tiers", "times", "seconds"),
    [
        ("quick", {"tier1"}, None, 0),
        ("full", {"tier1", "tier2"}, 1, 0),
        ("10", {"tier1", "tier2"}, 10, 0),
        ("0.5", {"tier1", "tier2"}, 0.5, 0),
        ("30m", {"soak"}, 1, 1_800),
        ("0.1m", {"soak"}, 1, 6),
    ],
)
def test_what_an_effort_means(text, tiers, times, seconds) -> None:
    effort = parse(text)
    assert (effort.tiers, effort.times, soak_seconds(effort)) == (tiers, times, seconds)


@pytest.mark.parametrize("text", ["", "Quick", "0", "0m", "-1", "10 m", "10s", "1e3", "full5"])
def test_an_effort_that_means_nothing_is_refused(text) -> None:
    with pytest.raises(ValueError, match=f"{VARIABLE}={text}: quick, full, a number, or minutes"):
        parse(text)


@pytest.mark.parametrize("name", COUNTS)
def test_more_effort_tries_more(name) -> None:
    """Of a stride, less is more. There is always something to try."""
    tried = [count(name, parse(text)) for text in ("0.001", "quick", "full", "3", "1000")]
    if name.endswith("_stride"):
        tried.reverse()
    assert all(tried)
    assert tried[1:] == sorted(tried[1:])
    assert tried[0] <= tried[2] < tried[-1]


def test_every_count_is_used(root) -> None:
    used = {
        name
        for path in (root / "tests").rglob("*.py")
        for name in re.findall(r"\bcount\(\"(\w+)\"\)", path.read_text(encoding="utf-8"))
    }
    assert COUNTS.keys() <= used


def test_the_counts_are_documented(page) -> None:
    rows = re.findall(r"^\| (.+) \| ([\d,]+|only tier 2) \| ([\d,]+) \|$", page, re.MULTILINE)
    expected = [
        (each.what, "only tier 2" if each.quick is None else f"{each.quick:,}", f"{each.full:,}")
        for each in COUNTS.values()
    ]
    assert rows == expected


def test_every_tier_and_its_bound_are_documented(page) -> None:
    commands = re.findall(r"^\| (?:1|2|soak) \| `(script/[^`]+)` \|", page, re.MULTILINE)
    assert [command.removesuffix(" --minutes 30") for command in commands] == list(tiers.RUN_BY.values())
    assert f"more than {tiers.CALL_SECONDS_MAX:g} seconds of processor time" in page


def test_every_variable_that_steers_the_tests_is_documented(root, page) -> None:
    read = {VARIABLE}
    for path in (root / "tests").rglob("*.py"):
        read.update(READ.findall(path.read_text(encoding="utf-8")))
    for name in ("test", "soak"):
        read.update(STEERING.findall((root / "script" / name).read_text(encoding="utf-8")))
    assert set(STEERING.findall(page)) == read
