"""How pages show a schedule: its verdict, its last and next run, and the marks of its next 24 hours.

A missed run needs attention until the next planned one was sent, or until somebody runs the schedule by hand.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from zoneinfo import ZoneInfo

from markupsafe import Markup
from msgspec import Struct

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import QueueFull
from forq_trio.model.schedules.types import SavedRun, Schedule, is_counted_in_part, is_dropped
from forq_trio.schedules.times import NominalTimes
from forq_trio.schedules.words import in_words
from forq_trio.schedules.zones import local_of, zone_of
from forq_trio.ui.viewer import Viewer

GROUPS = ("Need attention", "Paused", "As planned")
SKIPS_IN_A_ROW = 3
MARKS_MAX = 144
MARKS_PLAIN_MAX = 30
MARKS_LEFT_OUT_MIN = MARKS_MAX // 24
ON_TIME_MS = 1_000
WIDTH = 240
CONTENT_SHOWN = 80


class Said(Struct, frozen=True):
    """A verdict. at: the page says between `text` and `rest` how long ago this was; None for `text` alone."""

    level: str
    text: str
    at: int | None = None
    rest: str = ""


class ScheduleRow(Struct, frozen=True):
    """A row of the list. strip: the drawing of the next 24 hours; None if it is not wanted."""

    schedule: Schedule
    group: str
    when: str
    rule: str
    said: Said
    detail: str
    content: str
    strip: Markup | None


def needs_runs(schedule: Schedule) -> int:
    """How many of the latest runs the verdict needs; 0 if the last one is enough."""
    last = schedule.last_run
    if last is None or schedule.paused:
        return 0
    if last.result == "skipped":
        return limits.RUNS_KEPT_MAX
    return limits.RUNS_SHOWN_DEFAULT if last.result == "sent" and _is_late(last) else 0


def _is_late(run: SavedRun) -> bool:
    return run.late_ms >= limits.RUN_GRACE_MS


def verdict(schedule: Schedule, runs: Sequence[SavedRun], now_ms: int) -> Said:
    """The verdict on a schedule. runs: its latest ones, newest first."""
    if schedule.paused:
        return Said("paused", "Paused", schedule.paused_at, f"ago by {schedule.paused_by or 'secret'}")
    last = runs[0] if runs else None
    if last is not None:
        if last.result == "refused":
            full = last.reason == QueueFull().message
            return Said(
                "broken",
                f"Not sent: the queue {schedule.queue} is full" if full else f"Not sent: {last.reason}",
            )
        if (missed := _missed(runs)) is not None:
            return Said("attention", missed)
        if last.result == "skipped":
            count = len(list(takewhile(lambda run: run.result == "skipped", runs)))
            if count >= SKIPS_IN_A_ROW:
                return Said("attention", f"Skipped {count} times, the last is pending")
            return Said("fine", "Skipped, the last is pending")
    if schedule.next_run is None:
        return Said("fine", "Over", last.at, "ago") if last is not None else Said("fine", "Over, never sent")
    if last is None:
        if (ahead_ms := schedule.next_run - now_ms) < limits.DAY_MS:
            return Said("fine", f"Never sent, first in {format.duration(max(0, ahead_ms))}")
        first = local_of(schedule.next_run, zone_of(schedule.time_zone))
        return Said("fine", f"Never sent, first on {first.day} {first:%b}")
    return Said("fine", "Sent", last.at, "ago")


def _missed(runs: Sequence[SavedRun]) -> str | None:
    """A sentence if the latest runs were missed, else None."""
    sent = len(list(takewhile(lambda run: run.result == "sent" and _is_late(run), runs)))
    before = runs[sent] if sent < len(runs) else None
    missed = before.runs if before is not None and before.result == "missed" else 0
    if not sent and not missed:
        return None
    unread = sent == len(runs) >= limits.RUNS_SHOWN_DEFAULT
    least = "at least " if unread else ""
    if before is not None and missed and is_counted_in_part(before):
        least = "more than "
    if before is not None and is_dropped(before):
        whole = format.whole(missed + limits.RUNS_CAUGHT_UP_MAX)
        return f"Missed {least}{whole} while stopped, dropped {least}{format.whole(missed)}"
    if not sent:
        return f"Missed {least}{format.whole(missed)} while stopped, sent none"
    which = {
        (True, True): "the last",
        (True, False): f"the last {sent}",
        (False, True): "it late",
        (False, False): "all",
    }
    return f"Missed {least}{format.whole(missed + sent)} while stopped, sent {which[missed > 0, sent == 1]}"


def missed_words(run: SavedRun) -> str:
    """The words for missed runs in the table of runs."""
    in_part = is_counted_in_part(run)
    if run.runs == 1 and not in_part and not is_dropped(run):
        return "Missed while stopped"
    least = "more than " if in_part else ""
    count = f"{least}{format.whole(run.runs)}"
    count = count[:1].upper() + count[1:]
    if is_dropped(run) and in_part:
        return f"{count} missed while stopped were dropped"
    if is_dropped(run):
        return f"{count} of {format.whole(run.runs + limits.RUNS_CAUGHT_UP_MAX)} missed while stopped were dropped"
    return f"{count} missed while stopped, this one last"


def days_in(zone: ZoneInfo, now_ms: int) -> Callable[[int], str]:
    """A function that writes the time of a future run in the schedule's zone, with the year if it is another year."""
    this_year = local_of(now_ms, zone).year

    def day(at_ms: int) -> str:
        at = local_of(at_ms, zone)
        year = "" if at.year == this_year else f" {at.year}"
        return f"{at:%a} {at.day} {at:%b}{year} {at:%H:%M:%S}".removesuffix(":00")

    return day


def lateness(run: SavedRun) -> str:
    """`on time`, `14 min late`, `18 s late, by its jitter`, `by hand`; "" for a run without a message."""
    if run.result == "by_hand":
        return "by hand"
    if run.result != "sent" or run.nominal is None:
        return ""
    if run.late_ms >= ON_TIME_MS:
        return f"{format.duration(run.late_ms)} late"
    by_jitter_ms = run.at - run.nominal - run.late_ms
    return f"{format.duration(by_jitter_ms)} late, by its jitter" if by_jitter_ms >= ON_TIME_MS else "on time"


def detail(schedule: Schedule) -> str:
    """The line under the verdict, without its message."""
    last = schedule.last_run
    if last is None:
        return ""
    if last.result == "missed":
        return "too many to be sent" if is_dropped(last) else "run it now if it is still wanted"
    return lateness(last)


def when(schedule: Schedule) -> str:
    words = in_words(schedule.timing)
    return words[:1].upper() + words[1:]


def rule(schedule: Schedule) -> str:
    """The rules that differ from the defaults, in words; "" for none."""
    if schedule.jitter_ms:
        return f"up to {format.setting(schedule.jitter_ms)} later, at random"
    if schedule.while_pending == "skip":
        return "skips while one is pending"
    return {"skip": "skips missed runs", "last": "sends the last missed run", "all": "sends all missed runs"}[
        schedule.missed
    ]


def row(schedule: Schedule, runs: Sequence[SavedRun], now_ms: int, *, with_strip: bool) -> ScheduleRow:
    """The row of a schedule. with_strip: whether to draw the next 24 hours."""
    said = verdict(schedule, runs, now_ms)
    group = GROUPS[0] if said.level in ("broken", "attention") else GROUPS[1 if said.level == "paused" else 2]
    content = " ".join(schedule.content[: CONTENT_SHOWN * 2].split())[:CONTENT_SHOWN]
    strip = next_day(schedule, now_ms) if with_strip else None
    return ScheduleRow(
        schedule, group, when(schedule), rule(schedule), said, detail(schedule), content, strip
    )


def next_day(schedule: Schedule, now_ms: int) -> Markup:
    """A drawing of the next 24 hours with a mark for each run, or a band if there are more than six an hour."""
    marks: list[int] = []
    end = now_ms + limits.DAY_MS
    if schedule.next_run is not None and schedule.next_run <= end:
        times = NominalTimes(schedule, schedule.made_at)
        marks = [schedule.next_run, *times.between(schedule.next_run, end, MARKS_LEFT_OUT_MIN)]
        dense = len(marks) > MARKS_LEFT_OUT_MIN and marks[-1] - marks[0] < limits.HOUR_MS
        if not dense:
            marks[1:] = times.between(schedule.next_run, end, MARKS_MAX)
        if dense or len(marks) > MARKS_MAX:
            return _strip(Markup('<rect class="band" x="0" y="13" width="240" height="6"/>'))
    many = " many" if len(marks) > MARKS_PLAIN_MAX else ""
    drawn = [
        f'<path class="mark{many if place else " nx"}" d="M{max(0, at - now_ms) / limits.DAY_MS * WIDTH:.1f} 5V19"/>'
        for place, at in enumerate(marks)
    ]
    return _strip(Markup("".join(drawn)))


def _strip(inside: Markup) -> Markup:
    return Markup(
        '<svg class="day" viewBox="0 0 240 20" preserveAspectRatio="none" aria-hidden="true">'
        '<path class="gl" d="M0 19.5H240"/><path class="gl" d="M60 15V20M120 15V20M180 15V20"/>{}</svg>'
    ).format(inside)


def lacking(viewer: Viewer, schedule: Schedule) -> list[str]:
    """The scopes that the viewer lacks to change a schedule, and to let it run."""
    named = schedule.dead_letter_queue or schedule.queue
    may_send = viewer.may(Scope.PRODUCE, schedule.queue) and viewer.may(Scope.PRODUCE, named)
    may_change = viewer.may(Scope.SCHEDULE, schedule.queue)
    return [
        scope.value for scope, may in ((Scope.SCHEDULE, may_change), (Scope.PRODUCE, may_send)) if not may
    ]
