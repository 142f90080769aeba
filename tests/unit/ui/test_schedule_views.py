"""What the pages of schedules say about one, and what their form understands."""

import pytest
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.errors import QueueFull
from forq_trio.model.schedules.types import COUNTED_IN_PART, DROPPED, SavedRun, Schedule
from forq_trio.ui import schedule_form
from forq_trio.ui.schedule_views import MARKS_MAX, lateness, missed_words, needs_runs, next_day, row, verdict

NOW = 1_800_000_000_000
HOUR = limits.HOUR_MS
PLAIN = Schedule(
    name="s", queue="q", content="c", every="1h", made_at=NOW, updated_at=NOW, next_run=NOW + HOUR
)


def run(result, late_ms=0, runs=1, **members):
    return SavedRun(nominal=NOW - HOUR, result=result, at=NOW, late_ms=late_ms, runs=runs, **members)


SENT = run("sent")
LATE = run("sent", limits.RUN_GRACE_MS)
JUST_IN_TIME = run("sent", limits.RUN_GRACE_MS - 1)
EARLIER = "more than 1 min late; at least so many, the rest was not counted"  # as it was stored until 0.9
BY_HAND = replace(run("by_hand"), nominal=None)


@pytest.mark.parametrize(
    ("runs", "level", "text"),
    [
        ([SENT], "fine", "Sent"),
        ([JUST_IN_TIME, run("missed")], "fine", "Sent"),
        ([BY_HAND, run("missed")], "fine", "Sent"),
        ([run("missed", runs=3)], "attention", "Missed 3 while stopped, sent none"),
        (
            [run("missed", runs=100, reason=f"late; {COUNTED_IN_PART}")],
            "attention",
            "Missed more than 100 while stopped, sent none",
        ),
        ([LATE, run("missed", runs=2), SENT], "attention", "Missed 3 while stopped, sent the last"),
        ([LATE, LATE, run("missed", runs=2)], "attention", "Missed 4 while stopped, sent the last 2"),
        (
            [run("missed", runs=200, reason=f"200 {DROPPED}"), LATE, LATE],
            "attention",
            "Missed 1,200 while stopped, dropped 200",
        ),
        (
            [LATE, run("missed", runs=200, reason=f"200 {DROPPED}"), LATE],
            "attention",
            "Missed 1,200 while stopped, dropped 200",
        ),
        (
            [run("missed", runs=100, reason=f"100 {DROPPED}; {COUNTED_IN_PART}")],
            "attention",
            "Missed more than 1,100 while stopped, dropped more than 100",
        ),
        ([LATE] * 20, "attention", "Missed at least 20 while stopped, sent all"),
        ([LATE] * 19, "attention", "Missed 19 while stopped, sent all"),
        ([LATE, SENT], "attention", "Missed 1 while stopped, sent it late"),
        ([LATE, LATE], "attention", "Missed 2 while stopped, sent all"),
        ([run("skipped")] * 2 + [SENT], "fine", "Skipped, the last is pending"),
        ([run("skipped")] * 3 + [SENT], "attention", "Skipped 3 times, the last is pending"),
        ([run("refused", reason=QueueFull().message)], "broken", "Not sent: the queue q is full"),
        ([run("refused", reason="no space")], "broken", "Not sent: no space"),
    ],
)
def test_the_verdict_says_what_became_of_the_latest_runs(runs, level, text):
    said = verdict(PLAIN, runs, NOW)
    assert (said.level, said.text) == (level, text)


@pytest.mark.parametrize(
    ("missed", "words"),
    [
        (run("missed"), "Missed while stopped"),
        (run("missed", runs=3), "3 missed while stopped, this one last"),
        (
            run("missed", runs=100, reason=COUNTED_IN_PART),
            "More than 100 missed while stopped, this one last",
        ),
        (run("missed", runs=100, reason=EARLIER), "More than 100 missed while stopped, this one last"),
        (run("missed", reason=COUNTED_IN_PART), "More than 1 missed while stopped, this one last"),
        (run("missed", runs=200, reason=f"200 {DROPPED}"), "200 of 1,200 missed while stopped were dropped"),
        (
            run("missed", runs=200, reason=f"200 {DROPPED}; {COUNTED_IN_PART}"),
            "More than 200 missed while stopped were dropped",
        ),
        (run("missed", reason=f"1 {DROPPED}"), "1 of 1,001 missed while stopped were dropped"),
    ],
)
def test_the_table_of_runs_says_how_many_were_missed_or_dropped(missed, words):
    assert missed_words(missed) == words


@pytest.mark.parametrize(
    ("ahead_ms", "text"),
    [
        (-1, "Never sent, first in 0 ms"),
        (43_000, "Never sent, first in 43 s"),
        (HOUR, "Never sent, first in 1 h"),
        (24 * HOUR - 1, "Never sent, first in 23 h"),
        (24 * HOUR, "Never sent, first on 16 Jan"),
    ],
)
def test_one_that_was_never_sent_says_when_it_will_be(ahead_ms, text):
    said = verdict(replace(PLAIN, next_run=NOW + ahead_ms), [], NOW)
    assert (said.level, said.text) == ("fine", text)


def test_a_paused_schedule_says_by_whom_and_one_whose_times_are_over_says_so():
    paused = replace(PLAIN, paused=True, paused_at=NOW - HOUR, paused_by="ops", next_run=None)
    said = verdict(paused, [run("missed")], NOW)
    assert (said.level, said.text, said.at, said.rest) == ("paused", "Paused", NOW - HOUR, "ago by ops")
    assert verdict(replace(PLAIN, next_run=None), [SENT], NOW).text == "Over"


def test_more_runs_are_read_only_where_the_last_one_does_not_tell():
    counts = [
        needs_runs(replace(PLAIN, last_run=last))
        for last in (None, SENT, LATE, run("skipped"), run("missed"))
    ]
    assert counts == [0, 0, limits.RUNS_SHOWN_DEFAULT, limits.RUNS_KEPT_MAX, 0]


def test_lateness_tells_the_jitter_from_what_was_late():
    assert lateness(replace(SENT, nominal=NOW)) == "on time"
    assert lateness(replace(SENT, nominal=NOW - 18_000)) == "18 s late, by its jitter"
    assert lateness(replace(SENT, nominal=NOW - 18_000, late_ms=18_000)) == "18 s late"
    assert lateness(BY_HAND) == "by hand"
    assert lateness(run("missed")) == ""


@pytest.mark.parametrize(
    ("every", "marks", "css"), [("1h", 24, '"mark"'), ("40min", 36, "many"), ("10min", MARKS_MAX, "many")]
)
def test_the_next_day_has_a_mark_for_each_run(every, marks, css):
    schedule = replace(
        PLAIN, every=every, made_at=NOW, next_run=NOW + {"1h": 60, "40min": 40, "10min": 10}[every] * 60_000
    )
    strip = str(next_day(schedule, NOW))
    assert strip.count('class="mark') == marks
    assert css in strip
    assert strip.count("mark nx") == 1


def test_more_than_six_runs_an_hour_are_a_band_and_a_paused_schedule_has_no_mark():
    assert 'class="band"' in next_day(replace(PLAIN, every="9min", next_run=NOW + 540_000), NOW)
    assert 'class="band"' in next_day(replace(PLAIN, every="1s", next_run=NOW + 1_000), NOW)
    assert "mark" not in next_day(replace(PLAIN, next_run=None, paused=True), NOW)
    assert "mark" not in next_day(replace(PLAIN, next_run=NOW + 24 * HOUR + 1), NOW)


def test_a_row_shows_the_beginning_of_the_content_in_one_line():
    found = row(replace(PLAIN, content="a\n  b" + "x" * 1_000), [], NOW, with_strip=False)
    assert found.content.startswith("a bxx")
    assert len(found.content) <= 80


@pytest.mark.parametrize(
    "schedule",
    [
        PLAIN,
        replace(PLAIN, every=None, cron="0 8 * * *", time_zone="Europe/Prague", jitter="30s"),
        replace(PLAIN, every=None, daily=("08:00", "17:30:10"), start=NOW + 1, end=NOW + 86_400_007),
        replace(PLAIN, missed="all", while_pending="skip", priority=5, group="g", attributes={"a": "b"}),
        replace(
            PLAIN, ttl_ms=60_000, max_attempts=3, dead_letter_queue="d-dlq", content=" spaces\nand lines "
        ),
    ],
)
def test_the_form_of_a_schedule_reads_as_the_same_schedule(schedule):
    found = schedule_form.read(schedule_form.texts_of(schedule), schedule)
    assert found.errors == {}
    for name in found.schedule.__struct_fields__:
        if name != "paused":
            assert getattr(found.schedule, name) == getattr(schedule, name), name


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"kind": "cron", "cron": ""}, "cron"),
        ({"kind": "cron", "cron": "30 2 * * 7,8"}, "cron"),
        ({"kind": "every", "every": "999 ms"}, "every"),
        ({"kind": "every", "every": "soon"}, "every"),
        ({"daily": "8 o'clock"}, "daily"),
        ({"daily": "08:00, 08:00"}, "daily"),
        ({"time_zone": "Europe/Nowhere"}, "time_zone"),
        ({"jitter": "25 h"}, "jitter"),
        ({"start": "tomorrow"}, "start"),
        ({"start": "2027-03-22", "end": "2027-03-21"}, "end"),
        ({"priority": "high"}, "priority"),
        ({"attributes": "no colon"}, "attributes"),
    ],
)
def test_what_cannot_be_read_is_said_at_its_field(typed, field):
    texts = schedule_form.empty() | {"daily": "08:00", "queue": "q", "content": "c"} | typed
    assert list(schedule_form.read(texts).errors) == [field]


def test_the_caret_stands_under_the_wrong_characters():
    found = schedule_form.read(schedule_form.empty() | {"kind": "cron", "cron": "30 2 * * 7,8"})
    assert found.caret == " " * 11 + "^"
    assert found.errors["cron"].startswith("Field 5, characters 12 to 12: ")


def test_a_date_is_of_the_zone_and_an_end_without_a_time_is_the_end_of_its_day():
    texts = schedule_form.empty() | {"daily": "08:00", "time_zone": "Europe/Prague"}
    found = schedule_form.read(texts | {"start": "2027-03-22", "end": "2027-03-22"}).schedule
    assert (found.start, found.end) == (1_805_670_000_000, 1_805_756_399_999)
