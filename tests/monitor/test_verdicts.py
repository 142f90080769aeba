"""The table of verdicts: every row with facts that just hold, and the neighbours that just do not."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from forq_trio.model.queues.setting_values import Rate, RatePer
from forq_trio.monitor.verdicts import ROWS, Facts, judge

HOUR = 3_600_000
FULL = Facts(messages=10, max_messages=10, refused=1)
FULL_OF_BYTES = Facts(bytes=5, max_bytes=5, refused=1)
BACKLOG = Facts(ready=1, oldest_ms=60_001)
UNACKED = Facts(ready=1, oldest_ms=60_001, delivered=1, in_flight=1)
PAUSED = Facts(paused=True, paused_ms=12 * 60_000)
NACKS = Facts(nacks=10, same_reason=10, reason="no stock", delivered=20, acked=1)
SLOW = Facts(ended=5, delivered=500, acked=500)
BEHIND = Facts(sent=6_001, acked=901, delivered=901, ready_grew=1, oldest_ms=60_001, ready=9, waiting=1)
BUSY = Facts(workers=4, slots=24, slots_busy_ms=6 * 60_000, oldest_ms=60_001)
SILENT = Facts(workers=12, silent_workers=3, held_by_silent=7)
GREW = Facts(dead_letters=True, grew=1_904)
LOST = Facts(lost=1, acked=1)
RATED = Facts(rate=Rate(5, 1_000), next_token_ms=120, ready=2_310, oldest_ms=325_000, sent=2_130, waiting=1)
RATED_GROUPS = Facts(rate=Rate(5, 1_000, RatePer.GROUP), held=3, waiting=1)
IN_FLIGHT = Facts(in_flight=40, in_flight_max=40, ready=1, waiting=1, acked=1)
DRAINS = Facts(acked=301, sent=1, ready=360, ready_fell=1)
IDLE = Facts(quiet_ms=4 * 24 * HOUR)
UNCHANGED = Facts(dead_letters=True, unchanged_ms=3 * 24 * HOUR)


@pytest.mark.parametrize(
    ("facts", "level", "verdict", "remedy", "value"),
    [
        (FULL, "broken", "Full, sends are refused", "change_limit", None),
        (FULL_OF_BYTES, "broken", "Full, sends are refused", "change_limit", None),
        (BACKLOG, "broken", "Backlog and no consumers", "show_oldest", None),
        (UNACKED, "broken", "Consumers but nothing acked", "show_in_flight", None),
        (replace(UNACKED, delivered=0, waiting=1), "broken", "Consumers but nothing acked", "show_in_flight", None),
        (PAUSED, "paused", "Paused 12 min ago", "resume", None),
        (replace(PAUSED, paused_ms=None), "paused", "Paused", "resume", None),
        (NACKS, "attention", "All nacks say “no stock”", "show_failed", None),
        (SLOW, "attention", "Acks slower than the lease", "set_lease", 600_000),
        (replace(SLOW, handling_p99_ms=400_000.0), "attention", "Acks slower than the lease", "set_lease", 800_000),
        (replace(SLOW, handling_p99_ms=399_617.3), "attention", "Acks slower than the lease", "set_lease", 800_000),
        (BEHIND, "attention", "Falling behind, 17 /s more in than out", "show_consumers", None),
        (BUSY, "attention", "All 24 slots busy for 6 min", "show_workers", None),
        (SILENT, "attention", "3 of 12 workers are silent", "show_workers", None),
        (replace(SILENT, silent_workers=1), "attention", "1 of 12 workers is silent", "show_workers", None),
        (RATED, "paused", "Held back by its rate, 5 min 25 s behind", "change_rate", None),
        (RATED_GROUPS, "paused", "Held back by its rate", "change_rate", None),
        (IN_FLIGHT, "paused", "40 in flight, as many as may be", "change_in_flight", None),
        (GREW, "attention", "1,904 more in the last hour", "open_workbench", None),
        (LOST, "attention", "Dead letters are lost, their queue is full", "change_limit", None),
        (DRAINS, "fine", "Draining, empty in about 6 min", None, None),
        (IDLE, "fine", "Idle, last message 4 d ago", None, None),
        (Facts(watched_ms=2 * HOUR), "fine", "Idle, last message more than 2 h ago", None, None),
        (UNCHANGED, "fine", "Nothing new for 3 d", None, None),
        (Facts(), "fine", "Healthy", None, None),
    ],
)  # fmt: skip
def test_each_row(facts: Facts, level: str, verdict: str, remedy: str | None, value: int | None) -> None:
    found = judge(facts)
    assert (found.level, found.verdict, found.remedy, found.remedy_value) == (level, verdict, remedy, value)
    if level == "fine":
        assert found.explanation == ""
    else:
        assert len(re.findall(r"[.] |[.]$", found.explanation)) == 2


@pytest.mark.parametrize(
    "facts",
    [
        replace(FULL, refused=0),
        replace(FULL, rejects=False),
        replace(FULL, messages=9),
        replace(BACKLOG, oldest_ms=60_000),
        replace(BACKLOG, oldest_ms=None),
        replace(BACKLOG, waiting=1),
        replace(BACKLOG, in_flight=1),
        replace(BACKLOG, delivered=1, acked=1),
        replace(UNACKED, acked=1),
        replace(UNACKED, delivered=0),
        replace(UNACKED, oldest_ms=60_000),
        replace(NACKS, nacks=9, same_reason=9, delivered=9),
        replace(NACKS, nacks=20, same_reason=18),
        replace(NACKS, delivered=21),
        replace(NACKS, reason=None),
        replace(NACKS, reason=""),
        replace(SLOW, ended=4, delivered=4),
        replace(SLOW, delivered=501),
        replace(BEHIND, sent=1_081),
        replace(BEHIND, ready_grew=0),
        replace(BEHIND, ready_grew=None),
        replace(BEHIND, oldest_ms=60_000),
        replace(BUSY, oldest_ms=60_000),
        replace(BUSY, slots_busy_ms=59_999),
        replace(BUSY, slots_busy_ms=None),
        replace(BUSY, slots=0),
        replace(SILENT, silent_workers=0),
        replace(RATED, next_token_ms=0, sent=0, delivered=1, acked=1),
        replace(RATED, ready=0),
        replace(RATED_GROUPS, waiting=0),
        replace(RATED_GROUPS, held=0),
        replace(IN_FLIGHT, in_flight=39),
        replace(IN_FLIGHT, waiting=0),
        replace(IN_FLIGHT, ready=0),
        replace(DRAINS, ready_fell=0),
        replace(DRAINS, ready_fell=None),
        replace(DRAINS, acked=1),
        replace(DRAINS, ready=59),
        replace(DRAINS, ready=86_400),
        replace(IDLE, quiet_ms=HOUR - 1),
        Facts(watched_ms=HOUR - 1),
    ],
)
def test_what_just_misses_a_row_is_healthy(facts: Facts) -> None:
    assert judge(facts).verdict == "Healthy"


def test_the_first_row_that_holds_counts() -> None:
    pairs = [FULL, PAUSED, BACKLOG, NACKS, LOST, IDLE]
    for place, first in enumerate(pairs):
        for second in pairs[place + 1 :]:
            changes = {
                name: getattr(first, name)
                for name in Facts.__struct_fields__
                if getattr(first, name) != getattr(Facts(), name)
            }
            both = replace(second, **changes)
            if second is NACKS and first is BACKLOG:
                continue  # there are deliveries, so there are consumers
            assert judge(both).verdict == judge(first).verdict or judge(both).level == judge(first).level


@pytest.mark.parametrize("facts", [BACKLOG, UNACKED, BEHIND])
def test_nobody_misses_consumers_of_a_paused_queue(facts: Facts) -> None:
    paused = replace(facts, paused=True, paused_ms=12 * 60_000)
    assert judge(paused).verdict == "Paused 12 min ago"
    assert not [row for row in ROWS if row.level in ("broken", "attention") and row.holds(paused)]


def test_dead_letters_are_no_backlog() -> None:
    assert judge(replace(BACKLOG, dead_letters=True)).level == "fine"


@pytest.mark.parametrize(
    ("unchanged_ms", "watched_ms", "verdict"),
    [
        (None, 3_000, "Nothing new since the start"),
        (None, 2 * HOUR, "Nothing new for more than 2 h"),
        (3_000, 3 * HOUR, "New in the last minute"),
        (5 * 60_000, 3 * HOUR, "Nothing new for 5 min"),
    ],
)
def test_dead_letters_that_stay_the_same(unchanged_ms: int | None, watched_ms: int, verdict: str) -> None:
    assert judge(replace(UNCHANGED, unchanged_ms=unchanged_ms, watched_ms=watched_ms)).verdict == verdict


def test_what_is_paused_need_not_be_acked() -> None:
    assert judge(replace(UNACKED, paused=True)).level == "paused"


def test_the_page_has_the_rows_of_the_table_in_their_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "health.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (.+?) \| .+ \|$", page, re.MULTILINE)[1:]
    examples = [
        FULL,
        PAUSED,
        BACKLOG,
        UNACKED,
        BUSY,
        NACKS,
        SLOW,
        SILENT,
        replace(RATED, oldest_ms=300_000),
        IN_FLIGHT,
        BEHIND,
        GREW,
        LOST,
        DRAINS,
        IDLE,
        UNCHANGED,
        Facts(),
    ]
    assert rows == [(row.level, row.says(facts)) for row, facts in zip(ROWS, examples, strict=True)]
