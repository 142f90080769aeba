"""`forq dead redrive` and `forq dead redrives`: moving dead letters back, and the tasks that do it."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.dead_filter import chosen_by_filter, dead_letter_options, filter_of
from forq_trio.cli.exits import Exit, did_nothing
from forq_trio.cli.interrupts import Interrupts
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import json_option, url_option
from forq_trio.cli.output import ago, echo, print_json
from forq_trio.cli.progress import progress_bar, updates
from forq_trio.cli.results import in_batches, report_results
from forq_trio.cli.tables import CellKind, Column, print_list
from forq_trio.model.dead_letters.redrives import ChangedRedrive, RedriveInfo
from forq_trio.model.errors import ForqError
from forq_trio.model.limits import MOVE_BATCH_MAX
from forq_trio.telemetry.words import counted

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

RATE = click.IntRange(1, 10_000)
_COUNTS = ("searched", "total", "matched", "skipped", "moved")
_SPARE = {"skipped": 1, "searched": 2, "started": 3, "total": 4, "matched": 6, "moved": 7}


@click.command(short_help="Move dead letters back to where they came from.")
@click.argument("queue", type=QUEUE)
@click.argument("message_ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="Move all of them.")
@dead_letter_options
@click.option(
    "--target", metavar="QUEUE", type=QUEUE, help="Where to move them.  [default: where each came from]"
)
@click.option(
    "--rate", "rate_per_second", type=RATE, metavar="NUMBER", help="Move at most this many a second."
)
@click.option("--dry-run", is_flag=True, help="Only count those that would be moved.")
@json_option
@url_option
def redrive(
    queue: str,
    message_ids: tuple[str, ...],
    everything: bool,
    target: str | None,
    rate_per_second: int | None,
    dry_run: bool,
    as_json: bool,
    url: str,
    **chosen: Any,
) -> int:
    """Move dead letters back: those with the given IDs, those that match, or --all.

    Attempts, due time and time to live start anew. Ctrl-C stops; what was moved stays moved.

    \f
    A redrive of those that match runs in the server, which the command follows; progress is shown on a terminal. If
    the command cannot say that it has ended (the server is gone, or nobody waits for the cancel to be answered), it
    says how to find the redrive and how to stop it.
    """
    wanted = filter_of(**chosen)
    by_filter = chosen_by_filter(message_ids, everything, wanted)
    if message_ids and (dry_run or rate_per_second is not None):
        raise click.UsageError("--rate and --dry-run are for --all and for those that match")
    with connect(url) as client:
        if not by_filter:
            move_named = partial(client.redrive, queue, target=target)
            return report_results(in_batches(message_ids, MOVE_BATCH_MAX, move_named), "moved", as_json)
        options: Any = {"target": target, "rate_per_second": rate_per_second, "dry_run": dry_run}
        start = partial(client.start_redrive, queue, wanted, **options)
        with Interrupts() as interrupts:
            return report_task(run_task(client, interrupts, queue, start), as_json)


@click.command(short_help="Show the redrives of a queue, pause, resume, cancel or dismiss one.")
@click.argument("queue", type=QUEUE)
@click.option("--pause", "paused", metavar="ID", help="Stop this one until it is resumed.")
@click.option("--resume", "resumed", metavar="ID", help="Continue this one, which is paused or has failed.")
@click.option("--cancel", "cancelled", metavar="ID", help="Stop this one; what it moved stays moved.")
@click.option("--dismiss", "dismissed", metavar="ID", help="Forget this one, which has ended.")
@json_option
@url_option
def redrives(
    queue: str,
    paused: str | None,
    resumed: str | None,
    cancelled: str | None,
    dismissed: str | None,
    as_json: bool,
    url: str,
) -> int:
    """Show the redrives and deletions of a queue: those that run or are paused, and the latest that ended."""
    asked = [each for each in (paused, resumed, cancelled, dismissed) if each is not None]
    if len(asked) > 1:
        raise click.UsageError("--pause, --resume, --cancel and --dismiss exclude each other")
    with connect(url) as client:
        if dismissed is not None:
            client.dismiss_redrive(queue, dismissed)
            return Exit.OK
        changed = None
        if paused is not None:
            changed = client.pause_redrive(queue, paused)
        elif resumed is not None:
            changed = client.resume_redrive(queue, resumed)
        elif cancelled is not None:
            changed = client.cancel_redrive(queue, cancelled)
        if changed is not None:
            print_list([changed], as_json, _columns("total"), partial(_row, ("total",)), "")
            return Exit.OK
        found = client.redrives(queue)
    print_list(found, as_json, _columns(*_COUNTS), partial(_row, _COUNTS), f"No redrive of {queue} is known.")
    return Exit.OK if found else Exit.NOTHING


def _columns(*counts: str) -> tuple[Column, ...]:
    return (
        Column("id"),
        Column("action", spare=5),
        Column("state"),
        *(Column(name, CellKind.NUMBER, _SPARE.get(name)) for name in (*counts, "started")),
    )


def _row(counts: tuple[str, ...], task: ChangedRedrive) -> tuple[object, ...]:
    return (
        task.id,
        task.action,
        f"{task.state} (dry run)" if task.dry_run else task.state,
        *(getattr(task, name) for name in counts),
        f"{ago(task.started_at)} ago",
    )


def run_task(
    client: "ForqClient", interrupts: Interrupts, queue: str, start: Callable[[], ChangedRedrive]
) -> RedriveInfo:
    """Start a task and wait for its end; Ctrl-C cancels it. The output always says whether the task still runs."""
    hint = f"`forq dead redrives {queue}` shows it"
    try:
        task = start()
    except (KeyboardInterrupt, ForqError) as problem:
        if not did_nothing(problem):
            echo(f"forq: whether the redrive was started is not known: {hint}", err=True)
        raise
    try:
        try:
            with interrupts.allowed():
                return _follow(client, task)
        except KeyboardInterrupt:
            client.cancel_redrive(queue, task.id)
            return client.redrive_info(queue, task.id)
    except (KeyboardInterrupt, ForqError):
        stop = f"`forq dead redrives {queue} --cancel {task.id}` stops it"
        echo(f"forq: redrive {task.id} may go on in the server: {hint}, {stop}", err=True)
        raise


def _follow(client: "ForqClient", started: ChangedRedrive) -> RedriveInfo:
    """Wait until a redrive has ended, and show its progress."""
    with progress_bar(started.queue, started.total or None) as show:
        task = client.redrive_info(started.queue, started.id)
        for _ in updates():
            if task.state not in ("running", "paused"):
                break
            task = client.redrive_info(task.queue, task.id)
            show(_dealt_with(task), None, _how_far(task))
    return task


def _dealt_with(task: RedriveInfo) -> int:
    """How many of the messages that were found are processed."""
    return task.searched if task.dry_run else task.searched - task.matched + task.moved


def _how_far(task: RedriveInfo) -> str:
    done = f"{task.matched:,} would be {_done(task)}" if task.dry_run else f"{task.moved:,} {_done(task)}"
    return f"{done}, searched {task.searched:,} of {task.total:,}"


def report_task(task: RedriveInfo, as_json: bool) -> int:
    """Print what a task did; returns the exit code."""
    if as_json:
        print_json(task)
    else:
        if task.error is not None:
            echo(f"forq: the redrive failed: {task.error}", err=True)
        skipped = f", {task.skipped:,} cannot be {_done(task)}" if task.skipped else ""
        echo(f"{_outcome(task)}{skipped}; searched {task.searched:,} of {task.total:,}")
    if task.state == "cancelled":
        return Exit.INTERRUPTED
    if task.state == "failed":
        return Exit.FAILED
    return Exit.OK if task.matched else Exit.NOTHING


def _outcome(task: RedriveInfo) -> str:
    cancelled = "cancelled: " if task.state == "cancelled" else ""
    if task.dry_run:
        would_be = f"{counted(task.matched, 'message')} would be {_done(task)}"
        return f"{cancelled}dry run, nothing was changed: {would_be}"
    return f"{cancelled}{counted(task.moved, 'message')} {_done(task)}"


def _done(task: RedriveInfo) -> str:
    return "removed" if task.action == "delete" else "moved"
