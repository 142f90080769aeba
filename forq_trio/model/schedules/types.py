"""Schedules: when each sends its message, and the results of its runs.

A run is one time of a schedule; its nominal time is the one that the timing says, before jitter. At most one message is
sent for each run. The rules are in storage/relational/operations/schedules.py; forq_trio/schedules computes the times.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.declared import Declared, ValueKind
from forq_trio.model.durations import parse_duration
from forq_trio.model.errors import InvalidSchedule
from forq_trio.model.messages.new_message import (
    OPTIONS,
    Attributes,
    Content,
    DeadLetterQueue,
    Group,
    MaxAttempts,
    NewMessage,
    Priority,
    TtlMs,
)
from forq_trio.model.values import Count, EpochMs, Uuid, text_up_to, up_to


class ScheduleOption(Declared, frozen=True, kw_only=True):
    """How a member is given on the command line; `meaning` is its help text."""

    default: str = ""  # what happens without it, in words; "" for nothing
    words: tuple[str, ...] = ()  # the words of a WORD


def _option(kind: ValueKind, meaning: str, default: str = "", words: Any = None) -> Meta:
    """The annotation for the type of a member. words: the type whose values are the words."""
    option = ScheduleOption(kind=kind, meaning=meaning, default=default, words=get_args(words))
    return Meta(extra={"declared": option})


_Missed = Literal["skip", "last", "all"]
Missed = Annotated[
    _Missed,
    _option(
        ValueKind.WORD,
        "Which runs to send of those that were missed while no server ran.",
        default="last",
        words=_Missed,
    ),
]
"""Which missed runs are sent later: none, only the last one that is due, or all (at most the last 1,000)."""
_WhilePending = Literal["send", "skip"]
WhilePending = Annotated[
    _WhilePending,
    _option(
        ValueKind.WORD,
        "What to do while the message of an earlier run is in the queue.",
        default="send",
        words=_WhilePending,
    ),
]
"""What a run does while the message of an earlier run is in its queue: send its own anyway, or skip it."""
RunResult = Literal["sent", "skipped", "missed", "refused", "by_hand"]
"""The result of a run.

skipped: the message of an earlier run was still in the queue. missed: nothing ran at its time. refused: the queue did
not take its message. by_hand: sent by `run_schedule`.
"""

DUE_RESULTS: tuple[RunResult, ...] = ("sent", "skipped", "missed", "refused")
"""The results of runs whose time came."""
NO_OPTIONS = ("process_after", "delay_ms", "deduplication_id", "deduplication_window_ms")
"""The options of a message that a schedule does not have: it decides when a message is sent, and sends it once."""

_NAME = re.compile(rf"(?!\.{{1,2}}\Z)[A-Za-z0-9._-]{{1,{limits.SCHEDULE_NAME_LENGTH_MAX}}}")

Cron = Annotated[
    str,
    text_up_to(
        limits.CRON_LENGTH_MAX,
        "A cron expression of five fields, of six with seconds first, or @hourly, @daily, @weekly, @monthly, "
        "@yearly.",
    ),
    _option(ValueKind.TEXT, "A cron expression such as '0 8 * * 1-5', or @daily and the like."),
]
Every = Annotated[
    str,
    Meta(description="The time between two runs, 1 s to 366 d, such as 90s or 1h30m."),
    _option(ValueKind.DURATION_TEXT, "The time between two runs, such as 90s."),
]
Daily = Annotated[
    tuple[str, ...],
    up_to(limits.DAILY_MAX, "Times of a day in the time zone, such as 08:00 or 08:00:30."),
    _option(ValueKind.DAY_TIMES, "At this time of each day, such as 08:00; may be repeated."),
]
TimeZone = Annotated[
    str,
    text_up_to(limits.TIME_ZONE_LENGTH_MAX, "An IANA time zone, for cron and daily, such as Europe/Paris."),
    _option(ValueKind.TIME_ZONE, "For --cron and --daily, such as Europe/Paris.", default="UTC"),
]
Jitter = Annotated[
    str,
    Meta(
        description=(
            "Each run is sent later by up to this much, at most 24 h, and before the next run. A restart does "
            "not change by how much."
        )
    ),
    _option(ValueKind.DURATION_TEXT, "Send each run up to this much later."),
]
Start = Annotated[
    EpochMs,
    Meta(description="No run before this time. `every` counts from it."),
    _option(ValueKind.TIME, "No run before this time."),
]
End = Annotated[
    EpochMs, Meta(description="No run after this time."), _option(ValueKind.TIME, "No run after this time.")
]


class Timing(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """When a schedule runs: exactly one of cron, every and daily.

    A fixed local time has one run: at the first instant after the change if a clock change skips it, at the first of
    the two if one repeats it. A cron expression whose minute or hour begins with * runs whenever the clocks show a
    matching time. docs/schedules.md explains the members.
    """

    cron: Cron | None = None  # null: not by cron
    every: Every | None = None  # null: not by an interval
    daily: Daily | None = None  # 1 to 100 different times; null: not by times of a day
    time_zone: TimeZone = "UTC"
    jitter: Jitter | None = None  # null: none
    start: Start | None = None  # null: from now on
    end: End | None = None  # null: never

    @property
    def every_ms(self) -> int | None:
        """The time between two runs; None for cron and daily. Raises InvalidSchedule."""
        return None if self.every is None else duration_of("every", self.every)

    @property
    def jitter_ms(self) -> int:
        """The longest jitter, 0 for none. Raises InvalidSchedule."""
        return 0 if self.jitter is None else duration_of("jitter", self.jitter)


def duration_of(member: str, text: str) -> int:
    """The milliseconds of a duration. Raises InvalidSchedule, which names the member, for a text that is not one."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidSchedule(f"{member}: {error}", field=member) from None


class NewSchedule(Timing, frozen=True, kw_only=True):
    """A schedule to save: its timing, and the message of its runs, with the options that a message has."""

    queue: str  # the queue that its runs send to
    content: Content
    priority: Priority = limits.PRIORITY_DEFAULT
    ttl_ms: TtlMs | None = None
    attributes: Attributes | None = None
    group: Group | None = None
    max_attempts: MaxAttempts | None = None
    dead_letter_queue: DeadLetterQueue | None = None
    # which runs are sent later of those that were missed while no server ran: none (`skip`), only the last
    # one that is due (`last`), or all, at most the last 1,000 (`all`)
    missed: Missed = "last"
    # what a run does while the message of an earlier run is in its queue: `send` its own anyway, or `skip` it
    while_pending: WhilePending = "send"
    paused: bool | None = (
        None  # whether it is paused; null leaves it as it is, and a new schedule is not paused
    )

    @property
    def timing(self) -> Timing:
        """The timing, without the message."""
        return Timing(**{name: getattr(self, name) for name in Timing.__struct_fields__})

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that its runs name."""
        return (self.queue, self.dead_letter_queue) if self.dead_letter_queue else (self.queue,)

    @property
    def message(self) -> NewMessage:
        """The message that a run sends."""
        return NewMessage(self.content, **{name: getattr(self, name) for name in _OPTION_NAMES})


_OPTION_NAMES = tuple(name for name in OPTIONS if name not in NO_OPTIONS)


_NOT_COUNTED = "the rest was not counted"
COUNTED_IN_PART = f"more than so many, {_NOT_COUNTED}"
"""Ends the reason of missed runs if only those of the last RUNS_COUNTED_MS_MAX were counted."""
DROPPED = "missed runs were dropped"
"""In the reason of missed runs that are not sent because there are too many (RUNS_CAUGHT_UP_MAX)."""


class SavedRun(Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """The stored result of a run."""

    nominal: EpochMs | None  # its nominal time, null for a run by hand
    # `skipped`: the message of an earlier run was still in the queue. `missed`: nothing ran at its time.
    # `refused`: the queue did not take its message. `by_hand`: somebody sent it
    result: RunResult
    # 1, or the number of missed runs that this stands for; `nominal` is then the last of them, and the reason
    # says if there were more
    runs: Count = 1
    at: EpochMs  # when this was recorded
    late_ms: Count = 0  # how much later than its time with jitter
    message_id: Uuid | None = None  # of its message, or of the one that was still pending; null for none
    sequence: int | None = None  # of the same message
    reason: str | None = None  # why no message was sent, null for one that was


def is_dropped(run: SavedRun) -> bool:
    """Whether this stands for missed runs that are not sent, because only the latest RUNS_CAUGHT_UP_MAX are."""
    return run.result == "missed" and DROPPED in (run.reason or "")


def is_counted_in_part(run: SavedRun) -> bool:
    """Whether there were more missed runs than its number says."""
    return _NOT_COUNTED in (run.reason or "")


class Schedule(NewSchedule, frozen=True, kw_only=True, omit_defaults=False, forbid_unknown_fields=False):
    """A schedule as it is stored."""

    name: str  # 1-128 characters of A-Z a-z 0-9 . _ -
    paused: bool = False  # no run is sent until it is resumed
    paused_at: EpochMs | None = None  # since when; null while it is not paused
    paused_by: str | None = None  # the name of the access token, null for the server's secret
    made_at: EpochMs  # when it was first saved
    made_by: str | None = None  # the name of the access token, null for the server's secret
    updated_at: EpochMs  # when it was last changed
    # the nominal time of the next run; null while it is paused, or if there is none any more
    next_run: EpochMs | None = None
    last_run: SavedRun | None = None  # null before the first


class ChangedSchedule(Timing, frozen=True, kw_only=True, omit_defaults=False, forbid_unknown_fields=False):
    """A schedule as the caller who saves, pauses or resumes it sees it: without its message and results of runs.

    Those need `browse`, and are shown with the schedule. The members are those of `Schedule`.
    """

    name: str  # as in its path
    queue: str  # the queue that its runs send to
    missed: Missed  # which missed runs are sent later
    while_pending: WhilePending  # what a run does while the message of an earlier run is in its queue
    paused: bool  # no run is sent until it is resumed
    paused_at: EpochMs | None  # since when; null while it is not paused
    paused_by: str | None  # the name of the access token, null for the server's secret
    made_at: EpochMs  # when it was first saved
    made_by: str | None  # the name of the access token, null for the server's secret
    updated_at: EpochMs  # when it was last changed
    # the nominal time of the next run; null while it is paused, or if there is none any more
    next_run: EpochMs | None


class ScheduleTotals(Struct, frozen=True, gc=False):
    """The totals of all schedules."""

    count: int = 0
    made: Mapping[str, int] = {}  # how many there are by the token that made them
    due_at: EpochMs | None = None  # when the next run is to be sent


class NextRun(Struct, frozen=True, gc=False, omit_defaults=True):
    """A nominal time to come."""

    at: EpochMs  # the nominal time
    local: str  # in the schedule's time zone, as ISO 8601 with its offset
    note: str | None = (
        None  # a sentence if a clock change moves or repeats it, or comes just before it; else absent
    )


class ScheduleDetails(Struct, frozen=True, rename="camel"):
    """A schedule, with what comes and what was."""

    schedule: Schedule  # with its message
    next_runs: tuple[NextRun, ...]  # the next five, even while it is paused
    runs: tuple[SavedRun, ...]  # the results of the latest ones, newest first


class SchedulePage(Struct, frozen=True, gc=False):
    """Schedules by name."""

    schedules: list[Schedule]  # at most `limit`
    next: str | None = None  # the `after` of the next page, null at the end


def check_schedule_name(name: str) -> str:
    """Return `name`, or raise InvalidSchedule unless it is 1-128 characters of A-Z a-z 0-9 . _ -, not . or .. alone."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InvalidSchedule(
            f"the name of a schedule is 1 to {limits.SCHEDULE_NAME_LENGTH_MAX} characters of A-Z a-z 0-9 . _ -",
            field="schedule",
        )
    return name
