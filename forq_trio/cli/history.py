"""`forq history …`: finished messages."""

from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from forq_trio.cli.confirm import confirm_deletion
from forq_trio.cli.connection import connect
from forq_trio.cli.dead_filter import filter_of, finished_options
from forq_trio.cli.exits import Exit
from forq_trio.cli.found_messages import PREVIEW_LENGTH_MAX, print_message, summary
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import json_option, shown_option, target_file_option, url_option, yes_option
from forq_trio.cli.output import ago, echo, one_line, print_json, writing_lines
from forq_trio.cli.results import in_batches, report_results
from forq_trio.cli.tables import CellKind, Column, print_list
from forq_trio.model.dead_letters.bodies import MoveResult
from forq_trio.model.errors import ForqError
from forq_trio.model.limits import MOVE_BATCH_MAX
from forq_trio.model.logs.history import OUTCOMES, FinishedMessage, Outcome
from forq_trio.model.logs.history_bodies import HistoryFilter
from forq_trio.telemetry.words import counted

_LISTED = (
    Column("history id", CellKind.NUMBER, spare=2),
    Column("id"),
    Column("age", CellKind.NUMBER, spare=4),
    Column("outcome"),
    Column("reason", CellKind.TEXT, spare=3),
    Column("attempts", CellKind.NUMBER, spare=1),
    Column("content", CellKind.TEXT, spare=5),
)
_SHOWN = (
    ("id", "id"),
    ("queue", "queue"),
    ("sequence", "sequence"),
    ("history id", "history_id"),
    ("outcome", "outcome"),
    ("because", "reason"),
    ("ended", "finished_at"),
    ("attempts", "attempts"),
    ("last error", "last_error"),
    ("result", "result"),
    ("kept until", "kept_until"),
    ("came from", "source_queue"),
    ("sent", "received_at"),
    ("first received", "first_received_at"),
    ("priority", "priority"),
    ("group", "group"),
    ("key", "key"),
    ("kind", "kind"),
)
_TIMES = frozenset({"finished_at", "received_at", "first_received_at", "kept_until"})


@click.group(cls=CommandGroup)
def history() -> None:
    """Commands on finished messages, which the server stores with FORQ_HISTORY=on.

    \f
    [history.md](docs/history.md) explains what is stored.
    """


@history.command("list", short_help="Find finished messages.")
@click.argument("queue", type=QUEUE)
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only those that ended like this.")
@finished_options
@click.option("--before", type=click.IntRange(1), metavar="ID", help="Go on below this history id.")
@shown_option(20)
@json_option
@url_option
def list_(
    queue: str,
    outcome: Outcome | None,
    before: int | None,
    limit: int,
    as_json: bool,
    url: str,
    **chosen: Any,
) -> int:
    """Find finished messages of a queue, newest first.

    The times say when they ended, the reason why they were discarded. It reads at most 10,000 messages, and says how
    far it came.

    \f
    What it read goes to stderr. With `--json` an object for each message, as the API shows it.
    """
    wanted = HistoryFilter(**asdict(filter_of(**chosen)), outcome=outcome)
    with connect(url) as client:
        page = client.search_history(queue, wanted, before=before, limit=limit)
    print_list(page.messages, as_json, _LISTED, _row)
    echo(summary(page), err=True)
    return Exit.OK if page.messages else Exit.NOTHING


def _row(message: FinishedMessage) -> tuple[object, ...]:
    return (
        message.history_id,
        message.id,
        ago(message.finished_at),
        message.outcome,
        message.reason or "-",
        message.attempts,
        one_line(message.content, PREVIEW_LENGTH_MAX),
    )


@history.command(short_help="Show one, and how it ended.")
@click.argument("queue", type=QUEUE)
@click.argument("message_id", metavar="ID")
@json_option
@url_option
def show(queue: str, message_id: str, as_json: bool, url: str) -> None:
    """Show one finished message: how it ended, each failed attempt that is known, attributes and content."""
    with connect(url) as client:
        message = client.finished_message(queue, message_id)
    if as_json:
        print_json(message)
        return
    print_message(message, _SHOWN, _TIMES)


@history.command(short_help="Write the history as lines of JSON.")
@click.option("--queue", type=QUEUE, help="Only the messages of this queue.")
@click.option(
    "--after",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="ID",
    help="Only those above this history id.",
)
@target_file_option
@url_option
def export(queue: str | None, after: int, file: Path | None, url: str) -> int:
    """Write all finished messages that are stored now, oldest first, as one JSON object a line.

    The id after which to continue next time goes to stderr.
    """
    from forq_trio.client.pages import get_page, log_pages
    from forq_trio.client.protocol import history_path
    from forq_trio.model.limits import LOG_PAGE_MAX

    written, at = 0, after
    with connect(url) as client:
        until = client.history_range().last
        with writing_lines(file) as write:
            paths = partial(history_path, until=until, limit=LOG_PAGE_MAX, queue=queue)
            for page in log_pages(lambda behind: get_page(client, paths(behind)), after, until):
                write(page.lines)
                written += page.lines.count(b"\n")
                at = page.next or at
    echo(f"{counted(written, 'message')} written; go on with --after {at}", err=True)
    return Exit.OK if written else Exit.NOTHING


@history.command(short_help="Send finished messages again.")
@click.argument("queue", type=QUEUE)
@click.argument("message_ids", nargs=-1, required=True, metavar="ID...")
@json_option
@url_option
def requeue(queue: str, message_ids: tuple[str, ...], as_json: bool, url: str) -> int:
    """Send finished messages again, each as a new message; they stay in the history.

    Content, attributes, priority and group stay as they were. A former dead letter goes to the queue that it came from.

    \f
    Repeated, it sends them once more. The exit code is 5 if all that were refused are not in the history.
    """
    with connect(url) as client:
        results = in_batches(message_ids, MOVE_BATCH_MAX, lambda batch: client.requeue_finished(queue, batch))
    named = [
        MoveResult(message_id, False, code=result.code, message=result.message)
        if isinstance(result, ForqError)
        else MoveResult(message_id, True)
        for message_id, result in zip(message_ids, results, strict=True)
    ]
    return report_results(named, "sent again", as_json)


@history.command(short_help="Remove the history of a queue.")
@click.argument("queue", type=QUEUE)
@yes_option
@json_option
@url_option
def purge(queue: str, yes: bool, as_json: bool, url: str) -> None:
    """Remove from the history all messages of a queue that have ended by now.

    Asks first; without a terminal it needs --yes.
    """
    if not yes:
        confirm_deletion(lambda: f"the history of {queue}")
    with connect(url) as client:
        purged = client.purge_history(queue)
    if as_json:
        print_json({"queue": queue, "purged": purged})
    else:
        echo(f"{counted(purged, 'message')} of {queue} removed from the history")
