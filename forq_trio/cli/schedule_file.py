"""Files of schedules, in TOML or JSON: `schedules` has each by its name, with the members that the API has.

    [schedules.daily-report]
    queue = "reports"
    content = "daily"
    daily = ["08:00"]
    timeZone = "Europe/Paris"

`start` and `end` may also be ISO 8601 with an offset. All mistakes are reported at once.
"""

import json
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.model.checks import check_message, check_producible
from forq_trio.model.errors import CallerError
from forq_trio.model.schedules.types import NewSchedule, check_schedule_name, duration_of

_TIMES = ("start", "end")


class BadFile(CliFailure):
    """The file is not one of schedules; a line for each problem."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        super().__init__("\nforq: ".join(f"{path}: {problem}" for problem in problems), Exit.USAGE)


def read_schedules(path: Path) -> dict[str, NewSchedule]:
    """The schedules of a file by name. Raises BadFile, or OSError."""
    document = _document(path)
    found = document.get("schedules")
    unknown = sorted(document.keys() - {"schedules"})
    if unknown or not isinstance(found, dict):
        words = f"there is no member {unknown[0]!r} here" if unknown else "the member 'schedules' is missing"
        raise BadFile(path, [f"{words}: a file of schedules has 'schedules', with each by its name"])
    schedules: dict[str, NewSchedule] = {}
    problems = []
    for name, members in found.items():
        try:
            schedules[name] = _schedule(name, members)
        except CallerError as problem:
            problems.append(f"{name}: {problem.api_message}")
        except ValueError as problem:  # of msgspec, too
            problems.append(f"{name}: {str(problem).replace('`$.', '`')}")
    if problems:
        raise BadFile(path, problems)
    return schedules


def _document(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
        if path.suffix.lower() != ".json":
            return tomllib.loads(text)
        document = json.loads(text, object_pairs_hook=_distinct)
    except UnicodeDecodeError as problem:
        line = raw[: problem.start].count(b"\n") + 1
        raise BadFile(path, [f"line {line}: it is not UTF-8"]) from None
    except json.JSONDecodeError as problem:
        raise BadFile(path, [f"line {problem.lineno}: {problem.msg}"]) from None
    except (ValueError, RecursionError) as problem:  # TOMLDecodeError says its line; _distinct the name
        words = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise BadFile(path, [words]) from None
    if not isinstance(document, dict):
        raise BadFile(path, ["it is no object"])
    return document


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is there twice")
    return members


def _schedule(name: str, members: Any) -> NewSchedule:
    """Read one schedule, and check it as far as possible without a server. Raises ValueError or CallerError."""
    check_schedule_name(name)
    if isinstance(members, Mapping):
        members = {key: _time(key, each) if key in _TIMES else each for key, each in members.items()}
    schedule = msgspec.convert(members, NewSchedule)
    if sum(each is not None for each in (schedule.cron, schedule.every, schedule.daily)) != 1:
        raise ValueError("it takes exactly one of cron, every and daily")
    for member in ("every", "jitter"):
        if getattr(schedule, member) is not None:
            duration_of(member, getattr(schedule, member))
    check_producible(schedule.queue)
    check_message(schedule.message, 0)
    return schedule


def _time(member: str, value: Any) -> Any:
    """A time in ISO 8601 as epoch ms; other values unchanged."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{member} is neither ISO 8601 nor epoch ms") from None
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError(f"{member} needs an offset, as in 2026-11-01T08:00:00+01:00")
    return round(value.timestamp() * 1000)
