"""The words of `forq schedule …`: a schedule's timing and runs, and where a cron expression is wrong."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from forq_trio.cli.output import ago, echo, on_terminal
from forq_trio.cli.tables import CellKind, Column, print_table
from forq_trio.model import durations
from forq_trio.model.clock import machine_ms
from forq_trio.model.errors import InvalidCron
from forq_trio.model.messages.new_message import OPTIONS
from forq_trio.model.schedules.types import (
    ChangedSchedule,
    NextRun,
    SavedRun,
    Schedule,
    Timing,
    is_counted_in_part,
)
from forq_trio.telemetry.words import counted

_TIMES = (Column("in", CellKind.NUMBER), Column("time"))
_RUNS = (
    Column("time"),
    Column("result"),
    Column("late", CellKind.NUMBER, spare=2),
    Column("message", spare=1),
    Column("reason", CellKind.VERDICT),
)


def timing_words(timing: Timing) -> str:
    """When it runs, on one line: "0 8 * * 1-5 in Europe/Paris"."""
    if timing.every is not None:
        words = f"every {timing.every}"
    elif timing.daily is not None:
        words = f"daily at {', '.join(timing.daily)}"
    else:
        words = timing.cron or ""
    if timing.every is None and timing.time_zone != "UTC":
        words = f"{words} in {timing.time_zone}"
    return words if timing.jitter is None else f"{words}, jitter {timing.jitter}"


def planned(schedule: Schedule | ChangedSchedule) -> str:
    """When it runs next."""
    if schedule.paused:
        return "paused"
    return "over" if schedule.next_run is None else _wait(schedule.next_run)


def latest(schedule: Schedule) -> str:
    """What became of its last run."""
    run = schedule.last_run
    return "never" if run is None else f"{_result(run)} {ago(run.at)} ago"


def lines_of(schedule: Schedule) -> Iterator[tuple[str, str]]:
    """The members of a schedule that are set, as labels and values."""
    by = f" by {schedule.paused_by}" if schedule.paused_by else ""
    yield "schedule", schedule.name
    yield "queue", schedule.queue
    yield "when", timing_words(schedule)
    yield "next", planned(schedule)
    yield "last", latest(schedule)
    if schedule.paused_at is not None:
        yield "paused", _moment(schedule.paused_at) + by
    for label, at_ms in (("start", schedule.start), ("end", schedule.end)):
        if at_ms is not None:
            yield label, _moment(at_ms)
    yield "missed", schedule.missed
    yield "while pending", schedule.while_pending
    for name, option in OPTIONS.items():
        value = getattr(schedule, name, None)
        if value is not None and value != {}:
            shown = (
                " ".join(f"{key}={each}" for key, each in value.items()) if isinstance(value, dict) else value
            )
            yield option.option, str(shown)
    made_by = f" by {schedule.made_by}" if schedule.made_by else ""
    yield "made", _moment(schedule.made_at) + made_by
    yield "changed", _moment(schedule.updated_at)
    yield "content", schedule.content


def print_times(runs: Sequence[NextRun]) -> None:
    """Print future runs, each in its schedule's zone. Notes are a column; on a terminal they are lines, never cut."""
    rows = [(durations.about(run.at - machine_ms()), run.local) for run in runs]
    if not on_terminal():
        notes = [(*row, run.note or "") for row, run in zip(rows, runs, strict=True)]
        print_table((*_TIMES, Column("note")), notes)
        return
    print_table(_TIMES, rows)
    for run in runs:
        if run.note is not None:
            echo(f"{run.local}: {run.note}")


def print_runs(runs: Sequence[SavedRun]) -> None:
    """Print the outcomes of past runs."""
    print_table(_RUNS, [_run_row(run) for run in runs])


def _run_row(run: SavedRun) -> tuple[object, ...]:
    return (
        _moment(run.at if run.nominal is None else run.nominal),
        _result(run),
        "-" if run.nominal is None else durations.in_words(run.late_ms),
        run.message_id or "-",
        run.reason or "",
    )


def _result(run: SavedRun) -> str:
    words = run.result.replace("_", " ")
    if is_counted_in_part(run):
        return f"{words} (more than {counted(run.runs, 'run')})"
    return words if run.runs == 1 else f"{words} ({counted(run.runs, 'run')})"


def _wait(at_ms: int) -> str:
    return f"in {durations.about(at_ms - machine_ms())}"


def _moment(ms: int) -> str:
    """A time (epoch ms) in the zone of this machine."""
    return datetime.fromtimestamp(ms / 1_000).astimezone().isoformat(sep=" ", timespec="seconds")


@contextmanager
def caret_under(cron: str | None) -> Iterator[None]:
    """If the body is refused because of a cron expression, show its wrong part; raises the error again."""
    try:
        yield
    except InvalidCron as problem:
        for line in caret_lines(cron or "", problem):
            echo(line, err=True)
        raise


def caret_lines(cron: str, problem: InvalidCron) -> tuple[str, ...]:
    """The expression, and carets under its wrong characters; nothing if their place is not known."""
    if problem.place is None or not cron.isprintable():
        return ()
    return f"  {cron}", f"  {problem.place.carets}"
