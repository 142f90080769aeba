"""Where clocks change: what runs, against a walk through all minutes, and by name where people ask."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forq_trio.model.schedules.types import Timing
from forq_trio.schedules import runs as runs_module
from forq_trio.schedules import zones as zones_module
from forq_trio.schedules.cron import is_wildcard
from forq_trio.schedules.times import NominalTimes
from support.clock_walk import walk
from support.effort import EFFORT

CHANGES = [
    ("America/New_York", datetime(2026, 3, 8)),
    ("America/New_York", datetime(2026, 11, 1)),
    ("Europe/Berlin", datetime(2026, 3, 29)),
    ("Europe/Berlin", datetime(2026, 10, 25)),
    ("Europe/Dublin", datetime(2026, 10, 25)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4)),  # half an hour
    ("Australia/Lord_Howe", datetime(2026, 10, 3)),
    ("America/Santiago", datetime(2026, 4, 5)),  # at midnight
    ("America/Santiago", datetime(2026, 9, 6)),
    ("Africa/Casablanca", datetime(2026, 2, 15)),  # five weeks apart
    ("Africa/Casablanca", datetime(2026, 3, 22)),
    ("Antarctica/Troll", datetime(2026, 3, 29)),  # two hours
    ("Antarctica/Troll", datetime(2026, 10, 25)),
    ("Pacific/Apia", datetime(2011, 12, 30)),  # a whole day is skipped
    ("Asia/Pyongyang", datetime(2015, 8, 14)),  # for good
    ("Asia/Pyongyang", datetime(2018, 5, 4)),
    ("America/Caracas", datetime(2016, 5, 1)),
    ("Asia/Kathmandu", datetime(1985, 12, 31)),  # a quarter of an hour
    ("Africa/Juba", datetime(2021, 1, 31)),
    ("UTC", datetime(2026, 3, 29)),
]
MINUTES = ["*", "*/20", "*/7", "*,5", "0", "30", "59", "10,50", "0-59", "0,1,2"]
HOURS = ["*", "*/2", "*/5", "0-23", "0", "1", "2", "3", "23", "0-3", "23,0", "1,2,3"]
DAYS = ["*", "*", "*", "1", "8", "29-31", "1-15", "*/2"]
WEEKDAYS = ["*", "*", "*", "0", "6,7", "1-5", "*/2"]
expressions = st.builds(
    lambda *fields: " ".join(fields),
    *map(st.sampled_from, (MINUTES, HOURS, DAYS, ["*", "*", "*", "3-11"], WEEKDAYS)),
)
NEW_YORK = "America/New_York"


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000)


def around(day: datetime) -> tuple[datetime, datetime]:
    return (day - timedelta(days=1)).replace(tzinfo=UTC), (day + timedelta(days=3)).replace(tzinfo=UTC)


def local_runs(timing: Timing, begin: str, end: str) -> list[str]:
    """The runs between two times in UTC, as the clocks show them with their offset, and the ms after that."""
    times = NominalTimes(timing, 0)
    first, last = (ms(datetime.fromisoformat(f"{each}+00:00")) for each in (begin, end))
    runs = times.between(first - 1, last, 10_000)
    found = [(datetime.fromtimestamp(at // 1_000, ZoneInfo(timing.time_zone)), at % 1_000) for at in runs]
    return [f"{at:%H:%M}{at.isoformat()[-6:-3]}" + (f" +{later}ms" if later else "") for at, later in found]


def check_times(times: NominalTimes, expected: list[int], begin: int, end: int, looks: list[int]) -> None:
    assert times.between(begin - 1, end - 1, 100_000) == expected
    beside = [at + by for at in expected[:: max(1, len(expected) // 20)] for by in (-1, 0, 1)]
    for at in sorted({begin, end - 1, *beside, *(begin + look % (end - begin) for look in looks)}):
        before, after = [each for each in expected if each <= at], [each for each in expected if each > at]
        if after:
            assert times.after(at) == after[0]
        if before:
            assert times.latest(at) == before[-1]
        assert times.count(begin - 1, at) == (len(before), True)
        assert times.count(at, end - 1) == (len(after), True)
        for number in {1, 2, len(before), len(before) + 1} - {0}:
            found = times.back(at, number, begin - 1)
            assert found == (before[-number] if number <= len(before) else None)


@settings(deadline=None, max_examples=300 if EFFORT.times else 12)
@given(
    change=st.sampled_from(CHANGES), expression=expressions, looks=st.lists(st.integers(0, 10**9), max_size=5)
)
def test_runs_are_those_of_a_walk_through_all_minutes(change, expression, looks):
    zone, day = change
    begin, end = around(day)
    times = NominalTimes(Timing(cron=expression, time_zone=zone), 0)
    check_times(times, walk(expression, zone, begin, end), ms(begin), ms(end), looks)


@settings(deadline=None, max_examples=60 if EFFORT.times else 4)
@given(
    change=st.sampled_from(CHANGES),
    hours=st.sets(st.integers(0, 23), min_size=1, max_size=5),
    minutes=st.sets(st.integers(0, 59), min_size=1, max_size=5),
)
def test_times_of_each_day_are_fixed_times(change, hours, minutes):
    zone, day = change
    begin, end = around(day)
    daily = tuple(f"{hour:02}:{minute:02}" for hour in hours for minute in minutes)
    expression = f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * *"
    times = NominalTimes(Timing(daily=daily, time_zone=zone), 0)
    check_times(times, walk(expression, zone, begin, end), ms(begin), ms(end), [])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/20 * * * *", True),
        ("* 2 * * *", True),
        ("0 * * * *", True),
        ("0 */2 * * *", True),
        ("*,30 2 * * *", True),
        ("@hourly", True),
        (" @HOURLY ", True),
        ("0 0 * * * *", True),
        ("*/5 30 2 * * *", False),
        ("5 * 2 * * *", True),
        ("5 30 * * * *", True),
        ("0 0-23 * * *", False),
        ("0-59 0-23 * * *", False),
        ("30,* 2 * * *", False),
        ("30 2 * * *", False),
        ("@daily", False),
    ],
)
def test_a_wildcard_is_a_minute_or_hour_that_begins_with_a_star(expression, expected):
    assert is_wildcard(expression) is expected


def test_every_20_minutes_goes_on_while_clocks_go_back():
    timing = Timing(cron="*/20 * * * *", time_zone=NEW_YORK)
    runs = local_runs(timing, "2026-11-01T05:00", "2026-11-01T07:20")
    assert runs == [
        *("01:00-04", "01:20-04", "01:40-04"),
        *("01:00-05", "01:20-05", "01:40-05"),
        *("02:00-05", "02:20-05"),
    ]


@pytest.mark.parametrize(("month", "day", "count"), [(3, 8, 23), (11, 1, 25)])
def test_an_hourly_run_is_neither_lost_nor_doubled(month, day, count):
    zone = ZoneInfo(NEW_YORK)
    begin, end = (ms(datetime(2026, month, each, tzinfo=zone)) for each in (day, day + 1))
    runs = NominalTimes(Timing(cron="0 * * * *", time_zone=NEW_YORK), 0).between(begin - 1, end - 1, 100)
    assert runs == list(range(begin, end, 3_600_000))
    assert len(runs) == count


@pytest.mark.parametrize("how", [{"cron": "10,50 2 * * *"}, {"daily": ("02:10", "02:50")}])
def test_two_times_that_are_skipped_are_two_runs(how):
    timing = Timing(time_zone=NEW_YORK, **how)
    assert local_runs(timing, "2026-03-07T00:00", "2026-03-10T00:00") == [
        *("02:10-05", "02:50-05"),
        *("03:00-04", "03:00-04 +1ms"),
        *("02:10-04", "02:50-04"),
    ]
    notes = [each.note for each in NominalTimes(timing, 0).next(ms(datetime(2026, 3, 8, tzinfo=UTC)), 3)]
    assert notes == [
        "The clocks go forward: 02:10 does not exist on this day, so it runs at 03:00.",
        "The clocks go forward: 02:50 does not exist on this day, so it runs at 03:00.",
        None,
    ]


def test_a_time_that_is_skipped_does_not_become_the_one_after_the_gap():
    timing = Timing(cron="0 2,3 * * *", time_zone=NEW_YORK)
    assert local_runs(timing, "2026-03-08T00:00", "2026-03-09T00:00") == ["03:00-04", "03:00-04 +1ms"]


def test_a_fixed_time_that_comes_twice_runs_once():
    timing = Timing(cron="30 1 * * *", time_zone=NEW_YORK)
    assert local_runs(timing, "2026-11-01T00:00", "2026-11-02T12:00") == ["01:30-04", "01:30-05"]
    note = NominalTimes(timing, 0).next(ms(datetime(2026, 11, 1, tzinfo=UTC)), 1)[0].note
    assert note == "The clocks go back: 01:30 comes twice on this day; it runs at the first."


def test_a_wildcard_in_the_hour_that_is_skipped_has_no_run_on_that_day():
    timing = Timing(cron="*/30 2 * * *", time_zone=NEW_YORK)
    assert local_runs(timing, "2026-03-07T00:00", "2026-03-10T00:00") == [
        "02:00-05",
        "02:30-05",
        "02:00-04",
        "02:30-04",
    ]


def test_a_rare_wildcard_runs_in_both_of_the_hours_that_are_the_same():
    timing = Timing(cron="*/30 1 * * 0", time_zone=NEW_YORK)
    assert local_runs(timing, "2026-11-01T00:00", "2026-11-09T00:00") == [
        *("01:00-04", "01:30-04"),
        *("01:00-05", "01:30-05"),
        *("01:00-05", "01:30-05"),
    ]
    assert NominalTimes(timing, 0).latest(ms(datetime(2026, 11, 7, tzinfo=UTC))) == ms(
        datetime(2026, 11, 1, 6, 30, tzinfo=UTC)
    )


def test_a_wildcard_at_times_that_are_always_skipped_never_runs():
    times = NominalTimes(Timing(cron="*/20 2 * 3 SUN#2", time_zone=NEW_YORK), 0)
    now = ms(datetime(2026, 11, 1, tzinfo=UTC))
    assert (times.after(now), times.latest(now)) == (None, None)


def test_the_first_run_after_a_change_says_that_the_clocks_changed():
    times = NominalTimes(Timing(cron="*/30 * * * *", time_zone="Australia/Lord_Howe"), 0)
    autumn, spring = (ms(datetime(2026, *at, tzinfo=UTC)) for at in ((4, 4, 14, 29), (10, 3, 14, 59)))
    assert [(each.local[11:16], each.note) for each in times.next(autumn, 3)] == [
        ("01:30", None),
        ("01:30", "The clocks go back by 30 min before this run."),
        ("02:00", None),
    ]
    assert [(each.local[11:16], each.note) for each in times.next(spring, 2)] == [
        ("01:30", None),
        ("02:30", "The clocks go forward by 30 min before this run."),
    ]


@pytest.mark.parametrize("expression", ["*/20 10,50 2 * * *", "* 0-59 2-3 * * *", "0-59 59 1,2 * * *"])
def test_seconds_that_are_skipped_come_a_millisecond_apart(expression):
    """By the definition, second by second."""
    zone = ZoneInfo(NEW_YORK)
    begin, end = datetime(2026, 3, 8, 6, 50, tzinfo=UTC), datetime(2026, 3, 8, 7, 15, tzinfo=UTC)
    texts = expression.split()[:3]
    seconds, minutes, hours = (
        set(range(0, 60, 20)) if text == "*/20" else set(range(60)) if text == "*" else numbers(text)
        for text in texts
    )
    expected: list[int] = []
    latest, instant = begin.astimezone(zone).replace(tzinfo=None) - timedelta(seconds=1), begin
    while instant < end:
        local = instant.astimezone(zone).replace(tzinfo=None)
        while latest < local:
            latest += timedelta(seconds=1)
            if latest.second in seconds and latest.minute in minutes and latest.hour in hours:
                expected.append(max(ms(instant), expected[-1] + 1) if expected else ms(instant))
        instant += timedelta(seconds=1)
    times = NominalTimes(Timing(cron=expression, time_zone=NEW_YORK), 0)
    assert times.between(ms(begin) - 1, ms(end) - 1, 100_000) == expected
    change = ms(datetime(2026, 3, 8, 7, tzinfo=UTC))
    for at in range(change - 2, change + 10_000, 37):
        before = [each for each in expected if each <= at]
        assert times.latest(at) == (before[-1] if before else times.latest(ms(begin)))
        assert times.count(ms(begin) - 1, at) == (len(before), True)


def numbers(text: str) -> set[int]:
    found: set[int] = set()
    for term in text.split(","):
        first, _, last = term.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("0 0 29 2 *", NEW_YORK),
        ("*/20 2 29 2 *", NEW_YORK),
        ("*/20 2 * 3 SUN#2", NEW_YORK),
        ("* * * * *", "Africa/Casablanca"),
        ("30 2 * * *", "Europe/Berlin"),
    ],
)
def test_a_search_asks_the_zone_a_bounded_number_of_times(expression, zone, monkeypatch):
    """It keeps the loop busy, so others wait for it."""
    asked = 0

    def offset_at(*arguments, look=runs_module.offset_at):
        nonlocal asked
        asked += 1
        return look(*arguments)

    monkeypatch.setattr(runs_module, "offset_at", offset_at)
    times = NominalTimes(Timing(cron=expression, time_zone=zone), 0)
    for day in range(0, 366 * 3, 5):
        at = ms(datetime(2097, 1, 1, tzinfo=UTC) + timedelta(days=day))
        for search in (times.after, times.latest):
            asked = 0
            search(at)
            assert asked <= 60


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Africa/Casablanca"])
def test_a_count_asks_the_zone_about_each_year_once(zone, monkeypatch):
    asked = 0

    def offset_at(*arguments, look=zones_module.offset_at):
        nonlocal asked
        asked += 1
        return look(*arguments)

    monkeypatch.setattr(zones_module, "offset_at", offset_at)
    zones_module._changes_of_year.cache_clear()
    years, day_ms = 11, 86_400_000
    times = NominalTimes(Timing(cron="*/20 * * * *", time_zone=zone), 0)
    first = times.count(0, 10 * 366 * day_ms)
    assert 0 < asked <= years * (62 + 2 * 22)
    asked = 0
    assert times.count(0, 10 * 366 * day_ms) == first
    assert asked == 0
