"""When schedules run, at each bound of what is valid; test_schedule_clock_changes.py is about changes of the clocks."""

from datetime import UTC, date, datetime

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from forq_trio.model import limits
from forq_trio.model.errors import InvalidCron, InvalidRequest, InvalidSchedule
from forq_trio.model.schedules.types import Timing
from forq_trio.schedules.cron import local_times
from forq_trio.schedules.local_times import DAY_SECONDS, LOCAL_MAX
from forq_trio.schedules.times import NominalTimes, check_timing, jitter_of


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000)


@settings(deadline=None, max_examples=40)
@given(
    every_s=st.integers(1, 10_000),
    start=st.one_of(st.none(), st.integers(0, 10**7)),
    at=st.integers(-10, 10**8),
)
def test_every_counts_from_the_start_or_from_when_it_was_made(every_s, start, at):
    made_at, every_ms = 5_000_000, every_s * 1_000
    runs = NominalTimes(Timing(every=f"{every_s}s", start=start), made_at)
    first = made_at + every_ms if start is None else start
    assert runs.after(-1) == first
    found = runs.after(at)
    assert found is not None
    assert (found - first) % every_ms == 0
    assert found > at
    assert found == first or found - every_ms <= at
    assert runs.latest(found) == found
    assert runs.latest(found - 1) == (None if found == first else found - every_ms)


def test_no_run_is_before_the_start_or_after_the_end():
    day = ms(datetime(2026, 1, 1, tzinfo=UTC))
    hour = 3_600_000
    runs = NominalTimes(Timing(cron="0 * * * *", start=day + hour, end=day + 3 * hour), 0)
    assert runs.between(0, day + 100 * hour, 9) == [day + hour, day + 2 * hour, day + 3 * hour]
    assert runs.after(day + 3 * hour) is None
    assert runs.latest(day + hour - 1) is None
    assert runs.latest(day + 100 * hour) == day + 3 * hour


@pytest.mark.parametrize(
    ("zone", "day", "notes"),
    [
        (
            "Europe/Paris",
            (2026, 3, 28),
            [None, "The clocks go forward: 02:30 does not exist on this day", None],
        ),
        ("Europe/Paris", (2026, 10, 24), [None, "The clocks go back: 02:30 comes twice on this day", None]),
        ("UTC", (2026, 3, 28), [None, None, None]),
    ],
)
def test_a_note_says_where_a_change_of_the_clocks_moves_a_run(zone, day, notes):
    found = NominalTimes(Timing(daily=("02:30",), time_zone=zone), 0).next(ms(datetime(*day, tzinfo=UTC)), 3)
    assert [each.note and each.note.split(",")[0].split(";")[0] for each in found] == notes
    assert found[1].local[11:16] == ("03:00" if notes[1] and "forward" in notes[1] else "02:30")


@given(
    nominal=st.integers(0, 10**13),
    jitter_ms=st.integers(0, 10**8),
    gap_ms=st.integers(1, 10**8),
    name=st.text(),
)
def test_jitter_is_the_same_each_time_and_below_the_next_run(nominal, jitter_ms, gap_ms, name):
    jitter = jitter_of(name, nominal, jitter_ms, gap_ms)
    assert 0 <= jitter <= min(jitter_ms, gap_ms - 1)
    assert jitter == jitter_of(name, nominal, jitter_ms, gap_ms)


def test_jitter_differs_between_schedules():
    assert len({jitter_of(f"s{n}", 10**12, 60_000, 3_600_000) for n in range(100)}) > 90


@pytest.mark.parametrize(
    "expression",
    [
        "* * * * *",
        "0 8 * * MON-FRI",
        "*/30 * * * * *",
        " @daily ",
        "@HOURLY",
        "0 0 L * *",
        "0 0 29 2 *",
        "0 9 * * MON#5",
    ],
)
def test_these_are_cron_expressions(expression):
    check_timing(Timing(cron=expression))
    assert NominalTimes(Timing(cron=expression), 0).after(0) is not None


@pytest.mark.parametrize(
    ("expression", "number", "wrong"),
    [
        ("60 * * * *", 1, "60"),
        ("* 24 * * *", 2, "24"),
        ("* * 0 * *", 3, "0"),
        ("* * 32 * *", 3, "32"),
        ("* * * 13 *", 4, "13"),
        ("* * * * 8", 5, "8"),
        ("0 * * * * 9", 6, "9"),
        ("60 0 * * * *", 1, "60"),
        ("0 8,9,x * * *", 2, "x"),
        ("0  8 * JANUARY *", 4, "JANUARY"),
        ("*/0 * * * *", 1, "*/0"),
        ("5-1 * * * *", 1, "5-1"),
        ("1- * * * *", 1, "1-"),
        ("٣ * * * *", 1, "٣"),
    ],
)
def test_a_wrong_field_is_named_with_its_place(expression, number, wrong):
    with pytest.raises(InvalidCron) as caught:
        check_timing(Timing(cron=expression))
    place = caught.value.place
    assert place is not None
    assert (place.number, expression[place.start : place.end]) == (number, wrong)
    assert place.allowed in caught.value.message
    assert (caught.value.field, caught.value.code) == ("cron", "bad_request.cron.invalid")


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "*",
        "* * * *",
        "* * * * * * *",
        "@never",
        "0 0 30 2 *",
        "0 0 31 2,4 *",
        "0 0 29 2 */7",
        "* * * 2 SUN#5",
        "x" * 257,
        "0 0 * * \0",
        "1,,2 * * * *",
    ],
)
def test_another_text_is_no_cron_expression(expression):
    with pytest.raises(InvalidCron) as caught:
        check_timing(Timing(cron=expression))
    assert caught.value.place is not None
    assert 0 <= caught.value.place.start <= caught.value.place.end <= max(len(expression), 1)


def test_a_leap_day_comes_again_after_a_century_that_has_none():
    runs = NominalTimes(Timing(cron="0 0 29 2 *"), 0)
    last, following = (ms(datetime(year, 2, 29, tzinfo=UTC)) for year in (2096, 2104))
    assert (runs.after(last), runs.latest(following - 1)) == (following, last)


@pytest.mark.parametrize("expression", ["0 0 29 2 */7", "* * * 2 SUN#5", "* * */31 */2 SUN#5", "0 0 29 2 *"])
def test_a_search_looks_at_each_kind_of_month_once(expression, monkeypatch):
    """It keeps the loop busy, so others wait for it. A kind of month has a length and a first weekday."""
    days = 0

    def match_day(self, day, match=CronSim.match_day):
        nonlocal days
        days += 1
        return match(self, day)

    monkeypatch.setattr(CronSim, "match_day", match_day)
    local_times.cache_clear()
    local = local_times(expression)
    begin = (date(2097, 1, 1) - date(1970, 1, 1)).days * DAY_SECONDS
    local.next(begin)
    assert 0 < days <= 7 * (28 + 29 + 30 + 31)
    local.previous(begin + 20 * 366 * DAY_SECONDS)
    local.count(0, begin)
    assert 0 < days <= 7 * (28 + 29 + 30 + 31)
    local_times.cache_clear()


def test_the_longest_expression_is_one():
    expression = ",".join(["1"] * 124) + " * * * *"
    assert len(expression) <= limits.CRON_LENGTH_MAX
    check_timing(Timing(cron=expression.ljust(limits.CRON_LENGTH_MAX)))
    with pytest.raises(InvalidCron):
        check_timing(Timing(cron=expression.ljust(limits.CRON_LENGTH_MAX + 1)))


BEYOND = limits.SCHEDULE_TIME_MS_MAX + 1


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({}, None),
        ({"cron": "@daily", "every": "1h"}, None),
        ({"every": "1h", "daily": ("08:00",)}, None),
        ({"every": "999ms"}, "every"),
        ({"every": "0"}, "every"),
        ({"every": "8784h1s"}, "every"),
        ({"every": "1"}, "every"),
        ({"every": "soon"}, "every"),
        ({"every": "1h", "jitter": "24h1s"}, "jitter"),
        ({"every": "1h", "jitter": "-1s"}, "jitter"),
        ({"daily": ()}, "daily"),
        ({"daily": tuple(f"{n // 60:02}:{n % 60:02}" for n in range(101))}, "daily"),
        ({"daily": ("08:00", "08:00:00")}, "daily"),
        ({"daily": ("24:00",)}, "daily"),
        ({"daily": ("8:00",)}, "daily"),
        ({"daily": ("08:60",)}, "daily"),
        ({"daily": ("08:00\n",)}, "daily"),
        ({"every": "1h", "time_zone": "Mars"}, "time_zone"),
        ({"every": "1h", "time_zone": ""}, "time_zone"),
        ({"every": "1h", "time_zone": "../etc/passwd"}, "time_zone"),
        ({"every": "1h", "time_zone": "Europe/\0"}, "time_zone"),
        ({"every": "1h", "time_zone": "x" * 65}, "time_zone"),
        ({"every": "1h", "time_zone": "Europe"}, "time_zone"),
        ({"every": "1h", "time_zone": "localtime"}, "time_zone"),
        ({"every": "1h", "time_zone": "Factory"}, "time_zone"),
        ({"every": "1h", "time_zone": "right/Europe/Paris"}, "time_zone"),
        ({"every": "1h", "start": -1}, "start"),
        ({"every": "1h", "start": BEYOND}, "start"),
        ({"every": "1h", "end": -1}, "end"),
        ({"every": "1h", "end": BEYOND}, "end"),
        ({"every": "1h", "start": 5, "end": 4}, "end"),
    ],
)
def test_what_is_not_valid_is_refused_and_named(members, field):
    with pytest.raises(InvalidSchedule) as caught:
        check_timing(Timing(**members))
    assert caught.value.field == field


@pytest.mark.parametrize(
    "members",
    [
        {"every": "1s"},
        {"every": "8784h", "jitter": "24h"},
        {"every": "1h", "jitter": "0", "start": 0, "end": 0},
        {"every": "1h", "start": limits.SCHEDULE_TIME_MS_MAX, "end": limits.SCHEDULE_TIME_MS_MAX},
        {"daily": tuple(f"{n // 60:02}:{n % 60:02}" for n in range(100))},
        {"daily": ("00:00", "23:59:59"), "time_zone": "Pacific/Kiritimati"},
    ],
)
def test_the_bounds_themselves_are_valid(members):
    check_timing(Timing(**members))
    NominalTimes(Timing(**members), 0).after(0)


def test_a_time_is_an_integer():
    with pytest.raises(InvalidRequest):
        check_timing(Timing(every="1h", start=1.5))  # type: ignore[arg-type]


@pytest.mark.parametrize("at", [-(10**15), -1, 10**15])
@pytest.mark.parametrize("timing", [Timing(cron="@daily"), Timing(every="1h"), Timing(daily=("08:00",))])
def test_a_clock_that_is_far_off_breaks_nothing(timing, at):
    runs = NominalTimes(timing, 0)
    after = runs.after(at)
    assert after is None or after > at
    latest = runs.latest(at)
    assert latest is None or latest <= at
    assert runs.next(limits.SCHEDULE_TIME_MS_MAX, 3) == []


def test_an_expression_that_ends_with_the_calendar_ends():
    local = local_times("@yearly")
    assert local.next(LOCAL_MAX - 30 * DAY_SECONDS) is None
    assert local.next(LOCAL_MAX + 30 * DAY_SECONDS) is None
    assert local.previous(LOCAL_MAX) == (date(9999, 1, 1) - date(1970, 1, 1)).days * DAY_SECONDS


@settings(deadline=None, max_examples=40)
@given(
    day=st.sampled_from(("*", "1", "29,30", "31", "L", "LW", "*/5", "1-7")),
    month=st.sampled_from(("*", "2", "2,4", "JUN-DEC", "*/5")),
    weekday=st.sampled_from(("*", "SUN", "7", "1-5", "MON#2", "5L", "*/3")),
    begin=st.integers(0, 60_000),
    length=st.integers(0, 800),
)
def test_the_days_of_an_expression_are_those_that_match_one_by_one(day, month, weekday, begin, length):
    expression = f"0 12 {day} {month} {weekday}"
    try:
        check_timing(Timing(cron=expression))
    except InvalidCron:  # a day that the month does not have
        return
    local, read = local_times(expression), CronSim(expression, datetime(2024, 1, 1))
    epoch = date(1970, 1, 1).toordinal()
    days = [date.fromordinal(epoch + begin + n) for n in range(length)]
    matching = [
        each.toordinal() - epoch for each in days if each.month in read.months and read.match_day(each)
    ]
    expected = [each * DAY_SECONDS + DAY_SECONDS // 2 for each in matching]
    first, last = begin * DAY_SECONDS, (begin + length) * DAY_SECONDS
    assert local.count(first, last) == len(expected)
    found, found_back = [], []
    at: int | None = first - 1
    while (at := local.next(at + 1)) is not None and at < last:
        found.append(at)
    at = last
    while (at := local.previous(at)) is not None and at >= first:
        found_back.append(at)
    assert (found, found_back[::-1]) == (expected, expected)


@pytest.mark.parametrize("number", [1, 2, 999, 1_000, 1_001])
@pytest.mark.parametrize("timing", [Timing(cron="* * * * *"), Timing(every="7s"), Timing(cron="0 0 29 2 *")])
def test_the_run_that_is_so_many_before_another_is_found(timing, number):
    runs = NominalTimes(timing, 0)
    last = runs.latest(ms(datetime(2026, 11, 29, tzinfo=UTC)))
    assert last is not None
    expected: int | None = last
    for _ in range(number - 1):
        expected = None if expected is None else runs.latest(expected - 1)
    assert runs.back(last, number, -1) == expected
    if expected is not None:
        assert runs.back(last, number, expected) is None
        assert runs.back(last, number, expected - 1) == expected


def test_runs_of_the_last_ten_years_are_counted_and_those_of_an_interval_always():
    last = ms(datetime(2026, 1, 1, tzinfo=UTC))
    begin = last - limits.RUNS_COUNTED_MS_MAX
    for timing, count in (
        (Timing(daily=("00:00",)), 3_660),
        (Timing(cron="0 0 * * *"), 3_660),
        (Timing(cron="*/20 * * * *"), 3_660 * 72),
        (Timing(cron="* * * * * *", time_zone="Europe/Paris"), 3_660 * 86_400),
    ):
        runs = NominalTimes(timing, 0)
        assert runs.count(begin, last) == (count, True)
        assert runs.count(begin - 1, last) == (count, False)
    assert NominalTimes(Timing(every="1s"), 0).count(0, last) == (last // 1_000, True)
