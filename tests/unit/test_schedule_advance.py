"""Which run of a schedule is next: also of one that was stored by other rules, and how the missed ones are counted."""

from datetime import UTC, datetime

import pytest

from forq_trio.model import limits
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.storage.schedules import StoredSchedule, advance

NEW_YORK = "America/New_York"
MINUTE_MS, HOUR_MS = 60_000, 3_600_000


def at(*utc: int) -> int:
    return int(datetime(*utc, tzinfo=UTC).timestamp() * 1_000)


def stored(next_run: int, last_nominal: int | None = None, **members) -> StoredSchedule:
    new = NewSchedule(queue="q", content="c", time_zone=NEW_YORK, **members)
    return StoredSchedule("s", new, 0, None, 0, next_run=next_run, due_at=next_run, last_nominal=last_nominal)


def ran(schedule: StoredSchedule, until: int) -> list[int]:
    """The runs that are sent up to a time, each when it is due."""
    found = []
    while schedule.due_at is not None and schedule.due_at <= until:
        step = advance(schedule, schedule.due_at)
        assert step.missed is None
        assert step.nominal is not None
        found.append(step.nominal)
        schedule = step.after
    return found


def test_a_hole_that_was_stored_while_clocks_go_back_is_not_filled_and_nothing_is_doubled():
    """Until 0.9 the run after the first 01:40 was the one at 02:00, 80 minutes later."""
    first, second = at(2026, 11, 1, 5, 40), at(2026, 11, 1, 7)
    assert ran(stored(second, first, cron="*/20 * * * *"), at(2026, 11, 1, 7, 30)) == [
        second,
        second + 20 * MINUTE_MS,
    ]


def test_a_run_that_was_stored_for_both_times_of_a_gap_is_the_first_of_them():
    gap = at(2026, 3, 8, 7)
    schedule = stored(gap, at(2026, 3, 7, 7, 50), cron="10,50 2 * * *")
    assert ran(schedule, at(2026, 3, 9, 6, 10)) == [gap, gap + 1, at(2026, 3, 9, 6, 10)]


def test_what_ran_for_both_times_of_a_gap_does_not_run_again():
    gap, following = at(2026, 3, 8, 7), at(2026, 3, 9, 6, 10)
    assert ran(stored(following, gap, cron="10,50 2 * * *"), following) == [following]


def test_a_stored_run_that_no_longer_is_one_is_sent_and_the_next_one_is_by_the_present_rules():
    """Until 0.9 a wildcard in the hour that is skipped ran after the gap."""
    gap, following = at(2026, 3, 8, 7), at(2026, 3, 9, 6)
    assert ran(stored(gap, cron="*/30 2 * * *"), following) == [gap, following]


@pytest.mark.parametrize(
    ("missed", "counted", "sent"),
    [("skip", 3, None), ("last", 2, (2026, 3, 9, 6, 30)), ("all", None, (2026, 3, 8, 7))],
)
def test_a_stored_run_that_no_longer_is_one_counts_when_it_was_missed(missed, counted, sent):
    schedule = stored(at(2026, 3, 8, 7), cron="*/30 2 * * *", missed=missed)
    step = advance(schedule, at(2026, 3, 9, 12))
    assert (step.missed and step.missed.runs) == counted
    assert step.nominal == (None if sent is None else at(*sent))


@pytest.mark.parametrize(("span_years", "in_part"), [(9, False), (30, True)])
def test_the_number_of_missed_runs_is_exact_up_to_ten_years(span_years, in_part):
    begin, end = at(2026, 1, 1, 5), at(2026 + span_years, 1, 1, 5)
    step = advance(stored(begin, cron="0 0 * * *", missed="skip"), end + HOUR_MS)
    assert step.missed is not None
    days = (end - begin) // limits.DAY_MS + 1
    assert step.missed.runs == (3_660 if in_part else days)
    assert ("more than so many" in (step.missed.reason or "")) is in_part
    assert step.cost <= 1 + 11


def test_of_more_missed_runs_than_are_sent_the_latest_are_sent_also_after_a_hundred_years():
    begin, end = at(2026, 1, 1, 5), at(2126, 1, 1, 5)
    step = advance(stored(begin, cron="0 0 1 * *", missed="all"), end + HOUR_MS)
    assert step.missed is not None
    assert step.nominal == at(2042, 10, 1, 4)
    assert (step.missed.runs, step.missed.nominal) == (121, at(2042, 9, 1, 4))


def test_a_step_is_charged_for_what_it_counts():
    begin = at(2026, 1, 1, 5)
    costs = [
        advance(stored(begin, cron="0 0 * * *", missed="skip"), begin + days * limits.DAY_MS).cost
        for days in (1, 400, 3_000)
    ]
    assert costs == [1, 2, 9]
    assert advance(stored(begin, every="1h", missed="all"), begin + limits.DAY_MS).cost > 1
