"""The table of clock changes in docs/reference/queues.md: its runs are those of a walk through all minutes."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from support.clock_walk import MINUTE, walk

WINDOW = timedelta(minutes=70)


@pytest.fixture(scope="module")
def rows(root) -> list[list[str]]:
    """The cells of the table, its head first."""
    page = (root / "docs" / "reference" / "queues.md").read_text(encoding="utf-8")
    table = page.partition("## Where the clocks change\n")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def change_of(zone: ZoneInfo, day: str) -> datetime:
    """The minute from which on the clocks have another offset."""
    instant = datetime.fromisoformat(f"{day}T00:00+00:00") - timedelta(days=1)
    while instant.astimezone(zone).utcoffset() == (instant + MINUTE).astimezone(zone).utcoffset():
        instant += MINUTE
    return instant + MINUTE


def shown(expression: str, zone: str, change: datetime) -> str:
    """The runs beside a change as the table says them."""
    runs = walk(expression, zone, change - WINDOW, change + WINDOW + MINUTE)
    parts: list[list[str]] = [[], []]
    for at in runs:
        instant = datetime.fromtimestamp(at // 1_000, UTC)
        later = f" + {at % 1_000} ms" if at % 1_000 else ""
        parts[instant >= change].append(f"{instant.astimezone(ZoneInfo(zone)):%H:%M}{later}")
    return " / ".join(", ".join(part) or "none" for part in parts)


def test_the_table_has_both_changes_of_five_zones(rows) -> None:
    zones = [row[0] for row in rows[1:]]
    assert len(set(zones)) == 5
    assert all(zones.count(zone) == 2 for zone in zones)


def test_the_table_says_what_runs(rows) -> None:
    wildcards = [cell.strip("`") for cell in rows[0][2:4]]
    for zone, clocks, *cells in rows[1:]:
        day, before, after = re.fullmatch(r"(\S+) (\S+) → (\S+)", clocks).groups()  # type: ignore[union-attr]
        change = change_of(ZoneInfo(zone), day)
        old = (change - MINUTE).astimezone(ZoneInfo(zone)).replace(tzinfo=None) + MINUTE
        assert (f"{old:%Y-%m-%d}", f"{old:%H:%M}") == (day, before)
        assert f"{change.astimezone(ZoneInfo(zone)):%H:%M}" == after
        expressions = [*wildcards, cells[2].strip("`")]
        assert [*cells[:2], cells[3]] == [shown(each, zone, change) for each in expressions]
