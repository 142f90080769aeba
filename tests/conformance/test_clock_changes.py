"""Schedules where the clocks change, on every engine: against a walk through all minutes, and against the model."""

import random
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from forq_trio.model.commands import DeleteSchedule, PauseSchedule, RunSchedule, SaveSchedule
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.schedules import times
from forq_trio.storage import schedules
from forq_trio.storage.engine import EngineSettings
from oracle.engine import MemoryEngine
from support.clock_walk import walk
from support.effort import count, many_trials

from .scheduled import MINUTE_MS, at, results, save, tick, until
from .script import DAY_MS, HOUR_MS, run

CHANGES = [
    ("America/New_York", (2026, 3, 8)),
    ("America/New_York", (2026, 11, 1)),
    ("Europe/Berlin", (2026, 3, 29)),
    ("Europe/Berlin", (2026, 10, 25)),
    ("Australia/Lord_Howe", (2026, 4, 4)),
    ("Australia/Lord_Howe", (2026, 10, 3)),
    ("America/Santiago", (2026, 4, 5)),
    ("America/Santiago", (2026, 9, 6)),
    ("Africa/Casablanca", (2026, 2, 15)),
    ("Africa/Casablanca", (2026, 3, 22)),
]
EXPRESSIONS = [
    *("*/20 * * * *", "0 * * * *", "30 */2 * * *", "*/30 2 * * *"),
    *("10,50 2 * * *", "10,50 0,1,23 * * *", "0 0-23 * * *", "5,25,45 1-3 * * *", "0 2,3 * * 0"),
]
NAMES = ("a", "b", "c")


def expected_of(expression: str, zone: str, begin: int, end: int) -> list[int]:
    """The runs after `begin`, up to `end`."""
    first, last = (datetime.fromtimestamp(each / 1_000, UTC) for each in (begin, end))
    return walk(expression, zone, first + timedelta(minutes=1), last + timedelta(minutes=1))


@pytest.mark.parametrize(("zone", "day"), CHANGES)
def test_each_run_where_the_clocks_change_is_sent_once(engine, reader, zone, day):
    begin, end = at(*day) - 6 * HOUR_MS, at(*day) + 20 * HOUR_MS
    for number, expression in enumerate(EXPRESSIONS):
        save(engine, f"s{number}", cron=expression, time_zone=zone, now=begin)
    until(engine, end, begin)
    for number, expression in enumerate(EXPRESSIONS):
        expected = expected_of(expression, zone, begin, end)
        assert results(reader, f"s{number}") == [("sent", nominal, 1) for nominal in expected]


@pytest.mark.parametrize(("zone", "day"), CHANGES)
@pytest.mark.parametrize("missed", ["skip", "all"])
def test_runs_that_are_missed_over_a_change_are_counted_or_sent(engine, reader, missed, zone, day):
    begin, end = at(*day) - 6 * HOUR_MS, at(*day) + 20 * HOUR_MS
    for number, expression in enumerate(EXPRESSIONS):
        save(engine, f"s{number}", cron=expression, time_zone=zone, missed=missed, now=begin)
    until(engine, end + 2 * MINUTE_MS, end + 2 * MINUTE_MS)
    for number, expression in enumerate(EXPRESSIONS):
        expected = expected_of(expression, zone, begin, end)
        noted = [("missed", expected[-1], len(expected))] if expected else []
        sent = [("sent", nominal, 1) for nominal in expected]
        assert results(reader, f"s{number}") == (sent if missed == "all" else noted)


def test_a_clock_that_is_set_back_repeats_no_run_of_a_gap(engine, reader):
    gap = at(2026, 3, 8, 7)
    save(engine, cron="10,50 2 * * *", time_zone="America/New_York", now=gap - HOUR_MS)
    assert tick(engine, gap) == 1
    assert tick(engine, gap - 10 * MINUTE_MS) == 0
    assert until(engine, gap + 10 * MINUTE_MS, gap - 10 * MINUTE_MS) == 1
    assert [nominal for _, nominal, _ in results(reader)] == [gap, gap + 1]


def test_a_next_run_that_other_rules_stored_stays_and_the_one_after_it_is_by_the_present_ones(
    engine, reader, monkeypatch
):
    """As after an update from 0.9, where wildcards ran like fixed times."""
    last = at(2026, 11, 1, 5, 40)
    with other_rules(monkeypatch):
        save(engine, cron="*/20 * * * *", time_zone="America/New_York", now=last - MINUTE_MS)
        assert tick(engine, last) == 1
        assert reader.schedule("s", 0)[0].next_run == last + 80 * MINUTE_MS
    until(engine, last + 100 * MINUTE_MS, last)
    assert [nominal for _, nominal, _ in results(reader)] == [last + n * MINUTE_MS for n in (0, 80, 100)]


def test_a_run_of_a_gap_that_other_rules_stored_is_sent_once(engine, reader, monkeypatch):
    gap = at(2026, 3, 8, 7)
    with other_rules(monkeypatch):
        save(engine, cron="*/30 2 * * *", time_zone="America/New_York", now=gap - HOUR_MS)
        assert reader.schedule("s", 0)[0].next_run == gap
    until(engine, gap + DAY_MS, gap - MINUTE_MS)
    assert [nominal for _, nominal, _ in results(reader)] == [
        gap,
        gap + 23 * HOUR_MS,
        gap + 23 * HOUR_MS + 30 * MINUTE_MS,
    ]


@contextmanager
def other_rules(monkeypatch):
    """Every expression has fixed times, for as long as this lasts."""
    with monkeypatch.context() as patched:
        patched.setattr(times, "is_wildcard", lambda expression: False)
        schedules._runs.cache_clear()
        yield
    schedules._runs.cache_clear()


@many_trials
def test_random_histories_of_schedules_over_changes_are_those_of_the_model(make_engine):
    with closing(MemoryEngine(EngineSettings())) as model:
        engines = [make_engine(EngineSettings()), model]
        for seed in range(count("clock_histories")):
            history(random.Random(seed), engines)


def history(rng, engines):
    """Both do the same; each time of a schedule is sent once at most, and is one of a walk since it was saved."""
    zone, day = rng.choice(CHANGES)
    now = at(*day) - 12 * HOUR_MS
    begin, chosen = now, dict[str, set[str]]()
    while now < at(*day) + DAY_MS:
        commands = [command_of(rng, zone) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
        for command in commands:
            if isinstance(command, SaveSchedule):
                chosen.setdefault(command.name, set()).add(command.new.cron)
        due, _ = (run(engine, *commands, now=now).next_due_ms for engine in engines)
        steps = (0, 1, MINUTE_MS, 20 * MINUTE_MS, 50 * MINUTE_MS, 5 * HOUR_MS, -30 * MINUTE_MS)
        now = due if due is not None and due > now and rng.random() < 0.7 else now + rng.choice(steps)
    for engine in engines:
        until(engine, now, now)
    seen = [seen_of(engine) for engine in engines]
    assert seen[0] == seen[1]
    for name, expressions in chosen.items():
        nominal = [run.nominal for run in seen[0].get(name, ()) if run.result in ("sent", "skipped")]
        walked = {each for expression in expressions for each in expected_of(expression, zone, begin, now)}
        assert len(nominal) == len(set(nominal))
        assert set(nominal) <= walked
    for engine in engines:
        run(engine, *map(DeleteSchedule, NAMES), now=now)


def command_of(rng, zone):
    name = rng.choice(NAMES)
    match rng.randrange(6):
        case 0:
            return PauseSchedule(name, rng.random() < 0.5)
        case 1:
            return RunSchedule(name)
        case 2:
            return DeleteSchedule(name)
    new = NewSchedule(
        queue=name,
        content=name,
        cron=rng.choice(EXPRESSIONS),
        time_zone=zone,
        jitter=rng.choice((None, None, "90s")),
        missed=rng.choice(("skip", "last", "all")),
        while_pending=rng.choice(("send", "skip")),
    )
    return SaveSchedule(name, new)


def seen_of(engine):
    """The runs of each schedule, oldest first, without the ids of messages, and what it says of itself."""
    with closing(engine.open_reader()) as reader:
        found = {}
        for name in NAMES:
            if (shown := reader.schedule(name, 100)) is not None:
                found[name] = [replace(each, message_id=None) for each in shown[1][::-1]]
        return found
