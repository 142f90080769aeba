"""Ticks and their keys, as DelayedQueue has them: hashes, keys, daily and periodic times, changes of the clocks."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from forq_trio.delayed import CronConfigHash, CronDailySchedule, CronMessage
from forq_trio.delayed.cron import (
    IN_ADVANCE_MAX,
    PREFIX_LENGTH_MAX,
    check_prefix,
    epoch_ms,
    hash_of_key,
    instant_of,
    key_of,
    next_periodic,
    of_epoch_ms,
    periodic_interval,
)
from forq_trio.model import limits

HOUR = timedelta(hours=1)
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
HASH = CronConfigHash("4916474562628112070d240d515ba44d")
NEW_YORK = "America/New_York"


def daily(*hours: int, **options) -> CronDailySchedule:
    return CronDailySchedule(tuple(time(hour) for hour in hours), **options)


def at(hour: int, minute: int = 0, day: int = 1) -> datetime:
    return datetime(2025, 3, day, hour, minute, tzinfo=UTC)


def test_d47_the_hash_of_a_period() -> None:
    assert str(CronConfigHash.of_periodic(HOUR)) == "4916474562628112070d240d515ba44d"


def test_d47_the_hash_of_a_daily_schedule() -> None:
    assert str(CronConfigHash.of_daily(daily(12, 18))) == "ac4a97d66f972bdaad77be2731bb7c2a"


def test_d47_only_zone_and_hours_are_in_the_hash_and_hours_in_any_order() -> None:
    same = daily(18, 12, 12, in_advance=timedelta(days=3), interval=timedelta(seconds=1))
    assert CronConfigHash.of_daily(same) == CronConfigHash.of_daily(daily(12, 18))
    others = {CronConfigHash.of_daily(each) for each in (daily(12), daily(12, 18, zone=NEW_YORK))}
    assert len(others | {CronConfigHash.of_daily(daily(12, 18))}) == 3


@pytest.mark.parametrize(
    ("hour", "text"),
    [
        (time(8, 5), "08:05"),
        (time(8, 5, 30), "08:05:30"),
        (time(8, 5, 0, 250_000), "08:05:00.250"),
        (time(8, 5, 0, 1), "08:05:00.000001"),
    ],
)
def test_d47_an_hour_is_written_as_java_does(hour, text) -> None:
    expected = CronConfigHash.of_text(f"\ndaily-cron:\n  zone: UTC\n  hours: {text}\n")
    assert CronConfigHash.of_daily(CronDailySchedule((hour,))) == expected


@pytest.mark.parametrize("value", ["", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "%" * 32])
def test_a_hash_is_32_digits(value) -> None:
    with pytest.raises(ValueError, match="32 digits"):
        CronConfigHash(value)


def test_d42_the_key_of_a_tick() -> None:
    local = datetime(2025, 3, 1, 13, 4, 5, 123_456, tzinfo=ZoneInfo("Europe/Paris"))
    assert CronMessage("x", local).key(HASH, "report") == f"report/{HASH}/20250301-120405.123456000"


def test_d46_two_times_in_one_second_are_two_keys() -> None:
    keys = [CronMessage("x", NOON.replace(microsecond=each)).key(HASH, "p") for each in (1, 2)]
    assert keys == [f"p/{HASH}/20250301-120000.000001000", f"p/{HASH}/20250301-120000.000002000"]


def test_d46_another_due_time_is_not_in_the_key() -> None:
    moved = CronMessage("x", NOON, schedule_at_actual=NOON + HOUR)
    assert (moved.key(HASH, "p"), moved.due_at) == (CronMessage("x", NOON).key(HASH, "p"), NOON + HOUR)
    assert CronMessage("x", NOON).due_at == NOON


def test_a_time_without_a_zone_is_refused() -> None:
    naive = datetime(2025, 3, 1)
    for wrong in (
        lambda: CronMessage("x", naive),
        lambda: CronMessage("x", NOON, naive),
        lambda: daily(12).next_times(naive),
        lambda: next_periodic(naive, HOUR),
        lambda: epoch_ms(naive),
    ):
        with pytest.raises(ValueError, match="no time zone"):
            wrong()


def test_a_prefix_leaves_space_for_the_rest_of_the_key() -> None:
    assert len(key_of(HASH, "p" * PREFIX_LENGTH_MAX, NOON)) == 200
    for wrong in ("", "p" * (PREFIX_LENGTH_MAX + 1)):
        with pytest.raises(ValueError, match="prefix"):
            check_prefix(wrong)


def test_the_hash_in_a_key_is_found_under_exactly_its_prefix() -> None:
    for prefix in ("a", "a/b", "a_b", "50%", "a.b", "é'\"\\"):
        assert hash_of_key(key_of(HASH, prefix, NOON), prefix) == HASH
    for key, prefix in (
        (key_of(HASH, "axb", NOON), "a_b"),
        (key_of(HASH, "50 and more", NOON), "50%"),
        (key_of(HASH, "a/b", NOON), "a"),
        (key_of(HASH, "ab", NOON), "a"),
        (key_of(HASH, "A", NOON), "a"),
        (f"a/{HASH}", "a"),
        (f"a/{HASH}/20250301-120000", "a"),
        (f"a/{HASH}/20250301-120000.000000000\n", "a"),
        ("", "a"),
    ):
        assert hash_of_key(key, prefix) is None


def test_d48_the_next_tick_of_a_period() -> None:
    assert next_periodic(at(10, 37) + timedelta(seconds=42, milliseconds=123), HOUR) == at(11)
    assert next_periodic(at(11), HOUR) == at(12)
    assert next_periodic(at(11) - timedelta(microseconds=1), HOUR) == at(11)


def test_d48_how_often_a_node_looks() -> None:
    looks = {
        seconds: periodic_interval(timedelta(seconds=seconds)).total_seconds() for seconds in (1, 4, 5, 3_600)
    }
    assert looks == {1: 1, 4: 1, 5: 1.25, 3_600: 900}


@pytest.mark.parametrize("period", [timedelta(0), timedelta(seconds=-1), timedelta(microseconds=1_500)])
def test_d48_a_period_is_positive_and_in_milliseconds(period) -> None:
    for wrong in (lambda: next_periodic(NOON, period), lambda: CronConfigHash.of_periodic(period)):
        with pytest.raises(ValueError, match="period"):
            wrong()
    assert next_periodic(NOON, timedelta(milliseconds=1)) == NOON + timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("now", "in_advance", "expected"),
    [
        (at(10), 3 * HOUR, [at(12)]),
        (at(12), 7 * HOUR, [at(18)]),
        (at(20), 24 * HOUR, [at(12, day=2), at(18, day=2)]),
        (at(10), HOUR / 2, [at(12)]),
        (at(10), timedelta(0), [at(12)]),
        (at(10), 2 * HOUR, [at(12)]),
        (at(10), 8 * HOUR, [at(12), at(18)]),
        (at(10), 8 * HOUR - timedelta(microseconds=1), [at(12)]),
    ],
)
def test_d49_daily_times(now, in_advance, expected) -> None:
    assert daily(12, 18, in_advance=in_advance).next_times(now) == expected


def test_d49_hours_in_any_order() -> None:
    assert daily(18, 12, in_advance=8 * HOUR).next_times(at(10)) == [at(12), at(18)]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"hours": ()}, "hours"),
        ({"hours": (time(1),) * (limits.DAILY_MAX + 1)}, "hours"),
        ({"hours": (time(12, tzinfo=UTC),)}, "zone"),
        ({"interval": timedelta(0)}, "interval"),
        ({"interval": timedelta(seconds=-1)}, "interval"),
        ({"in_advance": timedelta(microseconds=-1)}, "in_advance"),
        ({"in_advance": IN_ADVANCE_MAX + timedelta(microseconds=1)}, "in_advance"),
        ({"zone": "Europe/Atlantis"}, "Europe/Atlantis"),
        ({"zone": ""}, "zone"),
        ({"zone": "../etc/passwd"}, "zone"),
    ],
)
def test_d49_a_wrong_daily_schedule_is_refused(wrong, says) -> None:
    with pytest.raises(ValueError, match=says):
        CronDailySchedule(**{"hours": (time(12),), **wrong})


def test_utc_needs_no_list_of_time_zones(monkeypatch) -> None:
    """A system may have none, and the client's packages bring none."""

    def no_zone(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr("forq_trio.delayed.cron.ZoneInfo", no_zone)
    assert daily(12).next_times(at(10))[0] == at(12)
    with pytest.raises(ValueError, match="tzdata"):
        daily(12, zone="Europe/Paris")


def test_d49_the_longest_time_in_advance() -> None:
    assert len(daily(12, in_advance=IN_ADVANCE_MAX).next_times(at(10))) == 366


def test_d51_a_local_time_that_comes_twice_has_one_tick_the_first() -> None:
    schedule = CronDailySchedule((time(1, 30),), NEW_YORK, in_advance=timedelta(hours=26))
    before = datetime(2025, 11, 2, 0, tzinfo=ZoneInfo(NEW_YORK))
    first = datetime(2025, 11, 2, 5, 30, tzinfo=UTC)  # 01:30 in summer time
    assert schedule.next_times(before)[0] == first
    assert schedule.next_times(first) == [first + timedelta(hours=25)]


def test_d51_each_local_time_that_is_skipped_has_one_tick_after_the_gap() -> None:
    schedule = CronDailySchedule((time(2, 15), time(2, 30), time(4)), NEW_YORK, in_advance=timedelta(hours=9))
    midnight = datetime(2025, 3, 9, 0, tzinfo=ZoneInfo(NEW_YORK))
    gap_end = datetime(2025, 3, 9, 7, tzinfo=UTC)  # 03:00 in summer time
    second = gap_end + timedelta(milliseconds=1)
    assert schedule.next_times(midnight) == [gap_end, second, gap_end + HOUR]
    assert schedule.next_times(gap_end) == [second, gap_end + HOUR]
    assert schedule.next_times(second) == [gap_end + HOUR]


def test_d51_a_tick_at_the_end_of_a_gap_comes_after_those_in_it() -> None:
    schedule = CronDailySchedule((time(2), time(3), time(3, 0, 0, 1)), NEW_YORK, in_advance=HOUR)
    gap_end = datetime(2025, 3, 9, 7, tzinfo=UTC)
    ticks = schedule.next_times(gap_end - timedelta(minutes=1))
    assert ticks == [gap_end + timedelta(milliseconds=n) for n in range(3)]


def test_d51_every_tick_of_two_years_comes_once_however_one_looks() -> None:
    schedule = CronDailySchedule((time(1, 30), time(2, 30)), NEW_YORK, in_advance=timedelta(days=3))
    now, end, seen = datetime(2020, 1, 1, tzinfo=UTC), datetime(2022, 1, 1, tzinfo=UTC), set()
    while now < end:
        seen.update(each for each in schedule.next_times(now) if each < end)
        now += timedelta(hours=31)
    local_days = [each.astimezone(ZoneInfo(NEW_YORK)).date() for each in seen]
    days = {date(2020, 1, 1) + timedelta(days=n) for n in range(366 + 365)}
    assert {day: local_days.count(day) for day in days} == dict.fromkeys(days, 2)


@pytest.mark.parametrize(
    ("day", "hour", "zone", "expected"),
    [
        (date(2025, 3, 30), time(2, 30), "Europe/Paris", datetime(2025, 3, 30, 1, tzinfo=UTC)),
        (date(2025, 3, 30), time(2, 30, 0, 1), "Europe/Paris", datetime(2025, 3, 30, 1, tzinfo=UTC)),
        (date(2025, 10, 26), time(2, 30), "Europe/Paris", datetime(2025, 10, 26, 0, 30, tzinfo=UTC)),
        (date(2025, 10, 5), time(2, 15), "Australia/Lord_Howe", datetime(2025, 10, 4, 15, 30, tzinfo=UTC)),
        (date(2011, 12, 30), time(12), "Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ],
)
def test_d51_local_times_where_the_clocks_change(day, hour, zone, expected) -> None:
    assert instant_of(day, hour, ZoneInfo(zone)) == expected


def test_times_become_milliseconds_and_back() -> None:
    assert epoch_ms(NOON.replace(microsecond=1_999)) == epoch_ms(NOON) + 1
    assert of_epoch_ms(epoch_ms(NOON)) == NOON
