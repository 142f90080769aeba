"""`forq schedule apply`: makes the schedules of a server like those of a file. Done again it changes nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import asdict

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.options import json_option, url_option
from forq_trio.cli.output import echo, one_line, print_json
from forq_trio.cli.schedule_file import BadFile, read_schedules
from forq_trio.cli.schedule_words import caret_lines, timing_words
from forq_trio.model.errors import (
    CallerError,
    Forbidden,
    ForqError,
    ForqUnreachable,
    InvalidCron,
    ScheduleNotFound,
)
from forq_trio.model.limits import SCHEDULES_PAGE_MAX
from forq_trio.model.member_names import json_name
from forq_trio.model.schedules.types import NewSchedule, Schedule
from forq_trio.model.values import seen
from forq_trio.telemetry.words import counted

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

_VALUE_LENGTH_MAX = 30


class Change(NamedTuple):
    """The difference between a schedule of the file and that of the server."""

    name: str
    wanted: NewSchedule | None  # None to delete it
    members: dict[str, tuple[Any, Any]]  # JSON names of those that change, old and new

    @property
    def kind(self) -> str:
        if self.wanted is None:
            return "delete"
        return "change" if self.members else "make"


@click.command(short_help="Make the schedules like a file.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--yes", is_flag=True, help="Make the changes; without it they are only shown.")
@click.option("--prune", is_flag=True, help="Delete schedules that the file does not name.")
@json_option
@url_option
def apply(file: Path, yes: bool, prune: bool, as_json: bool, url: str) -> int:
    """Show how the schedules differ from FILE (TOML or JSON), and with --yes make them like it.

    A schedule that the file does not name stays, unless --prune is given; a paused one stays paused, unless the file
    says `paused`. If anything in the file is wrong, nothing is done.

    \f
    The first mistake of each schedule is printed with its line or the name of the schedule, and the exit code is 2. A
    schedule that the server refuses is named, the others are changed, and the exit code is 1.

    [schedules.md](docs/schedules.md#a-file-of-schedules) shows a file. `+` marks a schedule that is made, `~` one that
    is changed, with the members that differ, `-` one that is deleted. With `--json` an object for each: `schedule`,
    `change` (`make`, `change` or `delete`), `members` (old and new value by name), `done`, and `code` and `message` of
    its error.
    """
    wanted = read_schedules(file)
    with connect(url) as client:
        changes = [change for change in _changes(client, wanted, prune) if change is not None]
        _check(client, file, changes)
        if not as_json:
            for change in changes:
                echo("\n".join(_lines(change)))
            echo(_summary(changes, len(wanted)), err=True)
        failed = 0
        for change in changes:
            problem = _do(client, change) if yes else None
            failed += problem is not None
            if as_json:
                print_json(_as_json(change, done=yes and problem is None, problem=problem))
    if yes:
        if failed:
            return Exit.FAILED
        if changes and not as_json:
            echo(f"{counted(len(changes), 'schedule')} done")
    elif changes and not as_json:
        echo("Nothing is changed yet: --yes does it.", err=True)
    return Exit.OK


def all_schedules(client: "ForqClient") -> Iterator[Schedule]:
    """All schedules that the key may see, by name."""
    after: str | None = None
    while True:
        page = client.schedules(after=after, limit=SCHEDULES_PAGE_MAX)
        yield from page.schedules
        after = page.next
        if after is None:
            return


def _changes(client: "ForqClient", wanted: dict[str, NewSchedule], prune: bool) -> Iterator[Change | None]:
    """The change for each schedule of the file (None: no change), and with `prune` for schedules not in the file."""
    for name, new in wanted.items():
        try:
            stored = client.schedule(name, runs=0).schedule
        except ScheduleNotFound:
            yield Change(name, new, {})
        except Forbidden as problem:
            raise CliFailure(f"{name}: {problem} ({problem.code})", Exit.NOT_AUTHORISED) from None
        else:
            members = _differences(stored, new)
            yield Change(name, new, members) if members else None
    if prune:
        for each in list(all_schedules(client)):
            if each.name not in wanted:
                yield Change(each.name, None, {})


def _differences(stored: Schedule, wanted: NewSchedule) -> dict[str, tuple[Any, Any]]:
    old, new = _comparable(seen(NewSchedule, stored)), _comparable(wanted)
    if wanted.paused is None:
        del old["paused"], new["paused"]
    return {
        json_name(name): (getattr(stored, name), getattr(wanted, name))
        for name, value in new.items()
        if old[name] != value
    }


def _comparable(schedule: NewSchedule) -> dict[str, Any]:
    """The members of a schedule, in one form: equal if they mean the same, however they are written."""
    return asdict(schedule) | {
        "every": schedule.every_ms,
        "jitter": schedule.jitter_ms,
        "daily": schedule.daily and sorted(schedule.daily),
        "attributes": schedule.attributes or None,
    }


def _check(client: "ForqClient", file: Path, changes: list[Change]) -> None:
    """Raise BadFile unless the server understands all timings that are new."""
    problems = []
    for change in changes:
        if change.wanted is None:
            continue
        try:
            client.next_runs(change.wanted.timing, 1)
        except CallerError as problem:
            if isinstance(problem, Forbidden):
                raise
            place = caret_lines(change.wanted.cron or "", problem) if isinstance(problem, InvalidCron) else ()
            problems.append("\n".join((f"{change.name}: {problem.api_message}", *place)))
    if problems:
        raise BadFile(file, problems)


def _do(client: "ForqClient", change: Change) -> ForqError | None:
    """Make a change; prints and returns its error. Raises only if the server does not answer."""
    try:
        if change.wanted is None:
            client.delete_schedule(change.name)
        else:
            client.save_schedule(change.name, change.wanted)
    except ForqUnreachable:
        echo(f"forq: whether {change.name} is done is not known; apply again", err=True)
        raise
    except ForqError as problem:
        echo(f"forq: {change.name}: {problem.api_message} ({problem.code})", err=True)
        return problem
    return None


def _lines(change: Change) -> Iterator[str]:
    if change.wanted is None:
        yield f"- {change.name}: not in the file"
    elif change.members:
        yield f"~ {change.name}"
        for member, (old, new) in change.members.items():
            yield f"    {member}: {_short(old)} → {_short(new)}"
    else:
        yield f"+ {change.name}: {timing_words(change.wanted)}, to {change.wanted.queue}"


def _short(value: object) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, tuple):
        value = ", ".join(map(str, value))
    elif isinstance(value, dict):
        value = " ".join(f"{key}={each}" for key, each in value.items())
    elif isinstance(value, bool):
        value = "yes" if value else "no"
    return one_line(str(value), _VALUE_LENGTH_MAX)


def _summary(changes: list[Change], in_file: int) -> str:
    kinds = [change.kind for change in changes]
    same = in_file - kinds.count("make") - kinds.count("change")
    words = f"{kinds.count('make')} to make, {kinds.count('change')} to change"
    return f"{words}, {kinds.count('delete')} to delete; {same} as they are"


def _as_json(change: Change, *, done: bool, problem: ForqError | None) -> dict[str, Any]:
    return {
        "schedule": change.name,
        "change": change.kind,
        "members": {member: list(values) for member, values in change.members.items()},
        "done": done,
        "code": None if problem is None else problem.code,
        "message": None if problem is None else problem.api_message,
    }
