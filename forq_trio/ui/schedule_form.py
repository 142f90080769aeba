"""The form of a schedule: turns typed texts into a schedule, and a schedule into texts. Plain functions."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.errors import CallerError, ForqError, InvalidCron
from forq_trio.model.schedules.types import NewSchedule, Schedule
from forq_trio.schedules.times import check_timing
from forq_trio.schedules.zones import instant_of, local_of, zone_of
from forq_trio.ui import attributes
from forq_trio.ui.sizes import parse_count

KINDS = {"daily": "Daily at", "every": "Every", "cron": "Cron"}
MISSED = {"last": "Send the last", "all": "Send all of them", "skip": "Send none"}
PENDING = {"send": "Send all the same", "skip": "Skip"}
NAMES = (
    "name",
    "made_at",
    "kind",
    *KINDS,
    "time_zone",
    "jitter",
    "start",
    "end",
    "missed",
    "while_pending",
    "queue",
    "priority",
    "group",
    "attributes",
)
_TEXT_LENGTH_MAX = 20_000
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_END_OF_DAY = time(23, 59, 59)


class TypedSchedule(Struct):
    """The result of reading the form."""

    texts: dict[str, str]
    errors: dict[str, str]  # a sentence by the name of the field
    schedule: NewSchedule  # the fields that were valid; not to be used if there are errors in its timing
    caret: str = ""  # the line with carets under a wrong cron expression; "" for none


def empty() -> dict[str, str]:
    """The texts of the form for a new schedule."""
    kept = {"kind": "daily", "time_zone": "UTC", "missed": "last", "while_pending": "send", "content": ""}
    return dict.fromkeys(NAMES, "") | kept


def texts_of(schedule: Schedule) -> dict[str, str]:
    """The fields from which `read` makes the same schedule."""
    zone = zone_of(schedule.time_zone)
    kind = next(name for name in KINDS if getattr(schedule, name) is not None)
    return empty() | {
        "name": schedule.name,
        "made_at": str(schedule.made_at),
        "kind": kind,
        "daily": ", ".join(schedule.daily or ()),
        "every": schedule.every or "",
        "cron": schedule.cron or "",
        "time_zone": schedule.time_zone,
        "jitter": schedule.jitter or "",
        "start": _moment_text(schedule.start, zone),
        "end": _moment_text(schedule.end, zone),
        "missed": schedule.missed,
        "while_pending": schedule.while_pending,
        "queue": schedule.queue,
        "priority": "" if schedule.priority == limits.PRIORITY_DEFAULT else str(schedule.priority),
        "group": schedule.group or "",
        "attributes": attributes.to_text(schedule.attributes) if schedule.attributes else "",
        "content": schedule.content,
    }


def read(form: Mapping[str, str], before: Schedule | None = None) -> TypedSchedule:
    """Read the form as a schedule. before: the schedule to change; members without a field stay as they are in it."""
    texts = {name: form.get(name, "")[:_TEXT_LENGTH_MAX].strip() for name in NAMES}
    texts["content"] = form.get("content", "").replace("\r\n", "\n")
    texts["kind"] = texts["kind"] if texts["kind"] in KINDS else "daily"
    texts["missed"] = texts["missed"] if texts["missed"] in MISSED else "last"
    texts["while_pending"] = texts["while_pending"] if texts["while_pending"] in PENDING else "send"
    texts["time_zone"] = texts["time_zone"] or "UTC"
    errors: dict[str, str] = {}

    def parsed(name: str, parse: Callable[[str], Any], default: Any = None) -> Any:
        try:
            return parse(texts[name]) if texts[name] else default
        except ValueError as error:
            errors[name] = str(error)
        except CallerError as error:
            errors[name] = sentence_of(error)
        return default

    zone = parsed("time_zone", zone_of) or zone_of("UTC")
    shown = texts_of(before) if before is not None else empty()

    def moment(name: str) -> int | None:
        if before is not None and texts[name] == shown[name] and texts["time_zone"] == before.time_zone:
            return before.start if name == "start" else before.end
        at: int | None = parsed(name, lambda text: _read_moment(text, zone, is_end=name == "end"))
        return at

    schedule = NewSchedule(
        queue=texts["queue"],
        content=texts["content"],
        cron=texts["cron"] if texts["kind"] == "cron" else None,
        every=texts["every"] if texts["kind"] == "every" else None,
        daily=tuple(re.split(r"[,;\s]+", texts["daily"].strip(" ,;"))) if texts["kind"] == "daily" else None,
        time_zone=texts["time_zone"],
        jitter=texts["jitter"] or None,
        start=moment("start"),
        end=moment("end"),
        missed=texts["missed"],  # type: ignore[arg-type]
        while_pending=texts["while_pending"],  # type: ignore[arg-type]
        priority=parsed("priority", parse_count, limits.PRIORITY_DEFAULT),
        group=texts["group"] or None,
        attributes=parsed("attributes", attributes.from_text),
    )
    if before is not None:
        kept = ("ttl_ms", "max_attempts", "dead_letter_queue")
        schedule = replace(schedule, **{name: getattr(before, name) for name in kept})
    found = TypedSchedule(texts, errors, schedule)
    if not texts[texts["kind"]]:
        errors.setdefault(texts["kind"], "When is it to run?")
    elif "time_zone" not in errors:
        try:
            check_timing(schedule)
        except CallerError as error:
            add_error(found, error)
    return found


def add_error(found: TypedSchedule, error: ForqError) -> None:
    """Note an error at the field that it is about, "" for none of them."""
    name = (getattr(error, "field", None) or "").partition(".")[0]
    if name == "schedule":
        name = "name"
    found.errors.setdefault(name if name in (*NAMES, "content") else "", sentence_of(error))
    if isinstance(error, InvalidCron) and error.place is not None and error.place.number:
        found.caret = error.place.carets


def sentence_of(error: ForqError) -> str:
    """The message of an error as a sentence, without the name of its member."""
    if isinstance(error, InvalidCron):
        return format.sentence(error.message.removeprefix("cron, "))
    head, colon, rest = error.message.partition(": ")
    return format.sentence(rest if colon and " " not in head else error.message)


def _read_moment(text: str, zone: ZoneInfo, *, is_end: bool) -> int:
    """A local time of the zone, as 2027-03-22 or 2027-03-22 08:00; an end without a time is the end of its day."""
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("Type a date, as 2027-03-22, or with a time, as 2027-03-22 08:00.") from None
    if local.tzinfo is not None:
        return int(local.timestamp() * 1_000)
    if is_end and _DATE.fullmatch(text):
        return instant_of(datetime.combine(local, _END_OF_DAY), zone) + 999
    return instant_of(local.replace(microsecond=0), zone)


def _moment_text(at_ms: int | None, zone: ZoneInfo) -> str:
    if at_ms is None:
        return ""
    local = local_of(at_ms, zone)
    if local.time() in (time(0), _END_OF_DAY):
        return f"{local:%Y-%m-%d}"
    return f"{local:%Y-%m-%d %H:%M:%S}" if local.second else f"{local:%Y-%m-%d %H:%M}"
