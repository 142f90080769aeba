"""What a message and a schedule can say, and what can be set for a queue."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, get_type_hints

import click
import msgspec

from docs._generate.markdown import code, page, table, with_code
from docs._site.fields import declared_in, fields_of
from forq_trio.cli.schedule import add
from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.declared import ValueKind
from forq_trio.model.messages.new_message import OPTIONS, Option
from forq_trio.model.queues.setting_types import Setting
from forq_trio.model.queues.setting_values import Defaults
from forq_trio.model.queues.settings import SETTINGS
from forq_trio.model.schedules.types import NewSchedule, Timing
from forq_trio.schedules.times import NominalTimes
from forq_trio.schedules.zones import change_between, local_of, zone_of
from forq_trio.ui.settings_form import value_words

SOURCE = "the declarations in forq_trio/model/messages, queues and schedules"
WILDCARDS = ("*/20 * * * *", "0 * * * *")
CLOCK_CHANGES = (
    ("America/New_York", "2026-03-08", "10,50 2 * * *"),
    ("America/New_York", "2026-11-01", "10,50 1 * * *"),
    ("Europe/Berlin", "2026-03-29", "10,50 2 * * *"),
    ("Europe/Berlin", "2026-10-25", "10,50 2 * * *"),
    ("Australia/Lord_Howe", "2026-10-04", "5,25 2 * * *"),
    ("Australia/Lord_Howe", "2026-04-05", "35,55 1 * * *"),
    ("America/Santiago", "2026-09-06", "10,50 0 * * *"),
    ("America/Santiago", "2026-04-05", "10,50 23 * * *"),
    ("Africa/Casablanca", "2026-03-22", "10,50 2 * * *"),
    ("Africa/Casablanca", "2026-02-15", "10,50 2 * * *"),
)
"""The changes of a year that is over, so that no law moves them: forward, then back, each with times that it meets."""


def pages() -> Iterator[tuple[str, str]]:
    yield "queues.md", page("Messages, queues and schedules", SOURCE, *_blocks())


def _blocks() -> Iterator[str]:
    yield (
        "Members are those of the API's JSON, options those of `forq send` and `forq queue set`; Python has the "
        "members in its own spelling (`delay_ms`), and the sends of a worker take durations (`delay`). "
        "[What a queue can do](../queues.md) explains what they are for."
    )
    yield "## Options of a message"
    rows = [["`content`", "", "Any text.", "up to 256 KiB of UTF-8", ""]]
    rows += [
        [
            code(each.json_name),
            code(f"--{each.option}"),
            with_code(each.says()),
            RANGE[each.kind](each),
            each.default,
        ]
        for each in OPTIONS.values()
    ]
    yield table(["member", "option", "meaning", "range", "without it"], rows)
    yield "## Settings of a queue"
    yield table(["setting", "option", "meaning", "range", "default"], map(_row, SETTINGS.values()))
    yield "## Members of a schedule"
    yield "[Schedules](../schedules.md) explains them; the options are those of `forq schedule add`."
    yield table(["member", "option", "meaning", "without it"], _of_schedules())
    yield "## Where the clocks change"
    yield (
        "Both changes of 2026 in five zones, with the [rule](../schedules.md#time-zones-and-changes-of-the-clocks) "
        "for each: what runs within 70 minutes of the change, as the clocks show it. The slash is the change."
    )
    heads = ["time zone", "the clocks go", *map(code, WILDCARDS), "fixed times", "run"]
    yield table(heads, [_of_clock_change(*change) for change in CLOCK_CHANGES])


def _of_schedules() -> Iterator[list[str]]:
    """Rows of all members, those of the message included."""
    hints = get_type_hints(NewSchedule, include_extras=True)
    options = {each.name: each for each in add.params if isinstance(each, click.Option)}
    fields = {field.name: field for field in fields_of(NewSchedule)}
    for member in msgspec.structs.fields(NewSchedule):
        declared, option = declared_in(hints[member.name]), options.get(member.name)
        default = getattr(declared, "default", "")
        if not default and member.default not in (msgspec.NODEFAULT, None):
            default = str(member.default)
        says = fields[member.name].says
        if (
            not says or "null:" in says.lower()
        ):  # the comment alone, which is read beside the name and its type
            meant = declared.says() if declared is not None else option and option.help
            says = " ".join(_sentence(each) for each in (meant, says) if each)
        yield [
            code(member.encode_name),
            code(option.opts[0] if option else ""),
            with_code(_sentence(says)),
            default,
        ]


def _of_clock_change(time_zone: str, day: str, fixed: str) -> list[str]:
    zone, midnight = zone_of(time_zone), datetime.fromisoformat(f"{day}T00:00Z")
    low, high = (int((midnight + timedelta(days=days)).timestamp()) for days in (-1, 2))
    change_ms = change_between(low, high, zone) * 1_000
    before = local_of(change_ms - 1_000, zone) + timedelta(seconds=1)
    runs = [_runs_beside(Timing(cron=each, time_zone=time_zone), change_ms) for each in (*WILDCARDS, fixed)]
    clocks = f"{before:%Y-%m-%d %H:%M} → {local_of(change_ms, zone):%H:%M}"
    return [time_zone, clocks, *runs[:-1], code(fixed), runs[-1]]


def _runs_beside(timing: Timing, change_ms: int) -> str:
    """What runs before and after a change, in the order in which it does."""
    window_ms = 70 * limits.MINUTE_MS
    runs = NominalTimes(timing, 0).between(
        change_ms - window_ms - 1, change_ms + window_ms, limits.NEXT_RUNS_MAX
    )
    before, after = ([at for at in runs if (at < change_ms) is early] for early in (True, False))
    return f"{_shown(timing, before)} / {_shown(timing, after)}"


def _shown(timing: Timing, runs: Sequence[int]) -> str:
    zone = zone_of(timing.time_zone)
    words = [f"{local_of(at, zone):%H:%M}" + (f" + {at % 1_000} ms" if at % 1_000 else "") for at in runs]
    return ", ".join(words) or "none"


def _sentence(text: str) -> str:
    assert text, "a member says nothing of itself"
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _number_range(option: Option) -> str:
    show = format.setting if option.kind is ValueKind.DURATION else format.whole
    return f"{show(option.low)} to {show(option.high)}"


RANGE: dict[ValueKind, Callable[[Option], str]] = {
    ValueKind.TIME: lambda option: f"up to {format.setting(limits.PROCESS_AFTER_AHEAD_MS_MAX)} ahead",
    ValueKind.DURATION: _number_range,
    ValueKind.COUNT: _number_range,
    ValueKind.TEXT: lambda option: f"{option.low} to {option.high} characters",
    ValueKind.PAIRS: lambda option: f"up to {option.high}",
    ValueKind.QUEUE: lambda option: "a queue's name",
}
OTHERS = {
    ValueKind.BACK_OFF: "a list of delays, or [a formula](../queues.md#settings-of-a-queue)",
    ValueKind.RATE: "[so many in so much time](../rates.md)",
    ValueKind.QUEUE: "a queue's name, no circles",
}


def _row(setting: Setting) -> list[str]:
    default = setting.default_text or _value(setting, setting.default("q", Defaults()))
    meaning = with_code(setting.meaning)
    return [
        code(setting.json_name),
        code(f"--{setting.option}"),
        meaning,
        _range(setting),
        with_code(default),
    ]


def _value(setting: Setting, value: Any) -> str:
    if setting.kind is ValueKind.WORD or setting.kind is ValueKind.QUEUE:
        return code(value)
    return value_words(setting, value)


def _range(setting: Setting) -> str:
    if setting.kind is ValueKind.WORD:
        return ", ".join(map(code, setting.words))
    if setting.high:
        return f"{_value(setting, setting.low)} to {_value(setting, setting.high)}"
    return OTHERS[setting.kind]
