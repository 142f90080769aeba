"""`forq schedule …`: schedules, which send a message at their times."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from forq_trio.cli.confirm import confirm
from forq_trio.cli.connection import connect
from forq_trio.cli.declared_options import options_but
from forq_trio.cli.exits import CliFailure, Exit, explain, in_words
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.names import QUEUE, ServerName
from forq_trio.cli.options import json_option, url_option, yes_option
from forq_trio.cli.output import echo, print_json
from forq_trio.cli.schedule_apply import all_schedules, apply
from forq_trio.cli.schedule_options import schedule_options
from forq_trio.cli.schedule_words import (
    caret_under,
    latest,
    lines_of,
    planned,
    print_runs,
    print_times,
    timing_words,
)
from forq_trio.cli.tables import CellKind, Column, print_list
from forq_trio.model import limits
from forq_trio.model.errors import CallerError
from forq_trio.model.schedules.errors import ScheduleExists
from forq_trio.model.schedules.types import NO_OPTIONS, NewSchedule, Schedule, Timing

DoneT = TypeVar("DoneT")

_SCHEDULE = ServerName(lambda client, _: (each.name for each in all_schedules(client)))
_LISTED = (
    Column("schedule", CellKind.NAME),
    Column("queue", spare=1),
    Column("when", CellKind.TEXT),
    Column("next"),
    Column("last", CellKind.TEXT, spare=2),
)


@click.group(cls=CommandGroup)
def schedule() -> None:
    """Commands on schedules. At each time of a schedule the server sends its message, exactly once.

    \f
    [schedules.md](docs/schedules.md) explains them. For a name that no schedule has the exit code is 5. An error in a
    cron expression is shown under its characters.
    """


_timing_options = schedule_options(*Timing.__struct_fields__)


@schedule.command(short_help="Make a schedule.")
@click.argument("name")
@click.argument("queue", type=QUEUE)
@click.argument("content")
@_timing_options
@schedule_options("missed", "while_pending")
@click.option(
    "--paused/--not-paused",
    default=None,
    help="Create the schedule paused; with --replace, pause it or end its pause.",
)
@click.option("--replace", is_flag=True, help="Change the schedule if the name is taken.")
@options_but(*NO_OPTIONS)
@json_option
@url_option
def add(name: str, queue: str, content: str, replace: bool, as_json: bool, url: str, **chosen: Any) -> None:
    """Make a schedule that sends CONTENT to QUEUE; - reads it from stdin.

    It takes one of --cron, --every and --daily.

    \f
    A name that is taken is refused unless `--replace` is given; then the schedule has the options of this call, and
    the defaults for all others. With `--json` it is printed as the [API](docs/api.md) answers it.
    """
    timing = _timing_of(chosen)
    if content == "-":
        content = _text_of_stdin()
    given = {member: value for member, value in chosen.items() if value is not None and value != {}}
    wanted = NewSchedule(queue=queue, content=content, **timing, **given)
    with connect(url) as client, caret_under(wanted.cron):
        try:
            saved = client.save_schedule(name, wanted, only_new=not replace)
        except ScheduleExists as problem:
            raise CliFailure(f"{in_words(problem)}; --replace changes it") from None
    if as_json:
        print_json(saved)
    else:
        echo(f"{name} is saved, {timing_words(saved)}: {planned(saved)}")


@schedule.command("list", short_help="List schedules.")
@json_option
@url_option
def list_(as_json: bool, url: str) -> None:
    """List all schedules by name: when they run, when next, and the result of the last run.

    \f
    With `--json` an object for each, as the API has it.
    """
    with connect(url) as client:
        found = list(all_schedules(client))
    nothing = "There is no schedule; `forq schedule add` makes one."
    print_list(found, as_json, _LISTED, _row, nothing)


def _row(each: Schedule) -> tuple[object, ...]:
    return (each.name, each.queue, timing_words(each), planned(each), latest(each))


@schedule.command(short_help="Show a schedule and its runs.")
@click.argument("name", type=_SCHEDULE)
@click.option(
    "-n",
    "runs",
    type=click.IntRange(0, limits.RUNS_KEPT_MAX),
    metavar="NUMBER",
    default=limits.RUNS_SHOWN_DEFAULT,
    show_default=True,
    help="How many of its last runs to show.",
)
@json_option
@url_option
def show(name: str, runs: int, as_json: bool, url: str) -> None:
    """Show a schedule: its next five runs, the results of the last ones, and its content.

    \f
    Next runs are printed in the zone of the schedule, the others in that of this machine. With `--json` one object:
    `schedule`, `nextRuns` and `runs`.
    """
    with connect(url) as client:
        details = client.schedule(name, runs=runs)
    if as_json:
        print_json(details)
        return
    for label, value in lines_of(details.schedule):
        echo(f"{label:<16} {value}")
    if details.next_runs:
        echo("\nNext runs:")
        print_times(details.next_runs)
    if details.runs:
        echo("\nLast runs:")
        print_runs(details.runs)


@schedule.command("next", short_help="Show when a schedule would run.")
@_timing_options
@click.option(
    "-n",
    "count",
    type=click.IntRange(1, limits.NEXT_RUNS_MAX),
    metavar="NUMBER",
    default=limits.NEXT_RUNS_DEFAULT,
    show_default=True,
    help="How many runs to show.",
)
@json_option
@url_option
def next_(count: int, as_json: bool, url: str, **chosen: Any) -> int:
    """Show the next runs that a schedule would have, without making one.

    It takes one of --cron, --every and --daily, and says what a clock change does to a run.

    \f
    With `--json` an object for each: `at` (epoch ms), `local` and `note`. Without any run the exit code is 5.
    """
    timing = Timing(**_timing_of(chosen))
    with connect(url) as client, caret_under(timing.cron):
        found = client.next_runs(timing, count)
    if as_json:
        for each in found:
            print_json(each)
    elif found:
        print_times(found)
    else:
        echo("It has no run any more.", err=True)
    return Exit.OK if found else Exit.NOTHING


@schedule.command(short_help="Pause schedules.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=_SCHEDULE)
@url_option
def pause(names: tuple[str, ...], url: str) -> int:
    """Pause schedules until `forq schedule resume`. Their runs until then are not sent later either."""
    with connect(url) as client:
        return _each(names, client.pause_schedule, lambda name, _: f"{name} is paused")


@schedule.command(short_help="End the pause of schedules.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=_SCHEDULE)
@url_option
def resume(names: tuple[str, ...], url: str) -> int:
    """End the pause of schedules: each goes on with its next run from now."""
    with connect(url) as client:
        return _each(names, client.resume_schedule, lambda name, found: f"{name} goes on: {planned(found)}")


@schedule.command(short_help="Send the message of a schedule now.")
@click.argument("name", type=_SCHEDULE)
@json_option
@url_option
def run(name: str, as_json: bool, url: str) -> None:
    """Send the message of a schedule now, even if it is paused. Its planned runs stay as they are."""
    with connect(url) as client:
        produced = client.run_schedule(name)
    if as_json:
        print_json(produced)
    else:
        echo(f"{name} sent {produced.id}, sequence {produced.sequence}")


@schedule.command(short_help="Delete schedules.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=_SCHEDULE)
@yes_option
@url_option
def remove(names: tuple[str, ...], yes: bool, url: str) -> int:
    """Delete schedules and the results of their runs. Messages that they have sent stay.

    Asks first; without a terminal it needs --yes.
    """
    with connect(url) as client:
        if not yes:
            confirm(lambda: f"Delete {', '.join(names)}? Messages already sent stay.", doing="deleting")
        return _each(names, client.delete_schedule, lambda name, _: f"{name} is deleted")


schedule.add_command(apply)


def _each(names: tuple[str, ...], do: Callable[[str], DoneT], words: Callable[[str, DoneT], str]) -> int:
    """Call `do` for each schedule; names those that are refused, and goes on. Returns the exit code."""
    code: int = Exit.OK
    for name in names:
        try:
            echo(words(name, do(name)))
        except CallerError as problem:
            echo(f"forq: {name}: {problem.api_message} ({problem.code})", err=True)
            code = explain(problem)[1]
    return code


def _timing_of(chosen: dict[str, Any]) -> dict[str, Any]:
    """Remove the members of a timing from `chosen` and return them. Raises UsageError unless exactly one is given."""
    timing = {member: chosen.pop(member) for member in Timing.__struct_fields__}
    given = {member: value for member, value in timing.items() if value is not None and value != ()}
    if len(given.keys() & {"cron", "every", "daily"}) != 1:
        raise click.UsageError("it takes exactly one of --cron, --every and --daily")
    return given


def _text_of_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise CliFailure("the content on stdin is not UTF-8") from None
