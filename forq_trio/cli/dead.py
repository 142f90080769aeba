"""`forq dead …`: finds, shows and edits dead letters. `delete`, `redrive` and `redrives` have modules of their own."""

import sys
from typing import Any

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.dead_delete import delete
from forq_trio.cli.dead_filter import dead_letter_options, filter_of
from forq_trio.cli.dead_redrives import redrive, redrives
from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.found_messages import PREVIEW_LENGTH_MAX, print_message, summary
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import json_option, pairs, shown_option, url_option
from forq_trio.cli.output import ago, echo, one_line, print_json
from forq_trio.cli.tables import CellKind, Column, print_list
from forq_trio.model.limits import REASON_LENGTH_MAX
from forq_trio.model.messages.attributes import described
from forq_trio.model.messages.types import MessageInfo

_LISTED = (
    Column("sequence", CellKind.NUMBER, spare=1),
    Column("id"),
    Column("age", CellKind.NUMBER, spare=6),
    Column("from", CellKind.TEXT, spare=3),
    Column("attempts", CellKind.NUMBER, spare=2),
    Column("reason", spare=5),
    Column("last error", CellKind.VERDICT, least=22),  # beside the id at 60 columns
    Column("content", CellKind.TEXT, spare=4),
)
_SHOWN = (
    ("id", "id"),
    ("queue", "queue"),
    ("sequence", "sequence"),
    ("status", "status"),
    ("came from", "source_queue"),
    ("because", "failure_reason"),
    ("after attempts", "source_attempts"),
    ("dead since", "dead_lettered_at"),
    ("last error", "last_error"),
    ("sent", "received_at"),
    ("first received", "first_received_at"),
    ("expires", "expires_after"),
    ("priority", "priority"),
    ("group", "group"),
)
_TIMES = frozenset({"dead_lettered_at", "received_at", "first_received_at", "expires_after"})


@click.group(cls=CommandGroup)
def dead() -> None:
    """Work on the messages of a queue that takes dead letters, such as orders-dlq."""


@dead.command("list", short_help="Find dead letters.")
@click.argument("queue", type=QUEUE)
@dead_letter_options
@click.option("--before", type=click.IntRange(1), metavar="SEQUENCE", help="Go on below this sequence.")
@shown_option(20)
@json_option
@url_option
def list_(queue: str, before: int | None, limit: int, as_json: bool, url: str, **chosen: Any) -> int:
    """Find dead letters, newest first. It reads at most 10,000 messages, and says how far it came.

    \f
    How many were found and looked at goes to stderr. With `--json` an object for each message, as the API shows it.
    """
    with connect(url) as client:
        page = client.search_dead_letters(queue, filter_of(**chosen), before_sequence=before, limit=limit)
    print_list(page.messages, as_json, _LISTED, _row)
    echo(summary(page), err=True)
    return Exit.OK if page.messages else Exit.NOTHING


def _row(message: MessageInfo) -> tuple[object, ...]:
    since = message.dead_lettered_at or message.received_at
    return (
        message.sequence,
        message.id,
        ago(since),
        message.source_queue or "-",
        "-" if message.source_attempts is None else message.source_attempts,
        message.failure_reason or "-",
        one_line(_last_error(message), REASON_LENGTH_MAX),
        one_line(message.content, PREVIEW_LENGTH_MAX),
    )


def _last_error(message: MessageInfo) -> str:
    """Why its latest attempt failed. An attempt whose lease ended has no error of its own, but a failure."""
    latest = message.failures[-1].reason if message.failures else None
    return latest or message.last_error or "-"


@dead.command(short_help="Show one, and how it failed.")
@click.argument("queue", type=QUEUE)
@click.argument("message_id", metavar="ID")
@json_option
@url_option
def show(queue: str, message_id: str, as_json: bool, url: str) -> None:
    """Show one dead letter: where it came from, each failed attempt that is known, attributes and content."""
    with connect(url) as client:
        message = client.dead_letter(queue, message_id)
    if as_json:
        print_json(message)
        return
    print_message(message, _SHOWN, _TIMES)


@dead.command(short_help="Send an edited copy.")
@click.argument("queue", type=QUEUE)
@click.argument("message_id", metavar="ID")
@click.option("--content", help="The copy's content; - reads it from stdin.  [default: the same]")
@pairs("--attribute", "attributes", help="Set an attribute of the copy; may be repeated.")
@click.option(
    "--drop-attribute",
    "dropped",
    multiple=True,
    metavar="NAME",
    help="Leave an attribute out of the copy; may be repeated.",
)
@click.option(
    "--target", metavar="QUEUE", type=QUEUE, help="Where to send it.  [default: where it came from]"
)
@click.option("--remove", is_flag=True, help="Remove the original in the same transaction.")
@json_option
@url_option
def edit(
    queue: str,
    message_id: str,
    content: str | None,
    attributes: dict[str, str],
    dropped: tuple[str, ...],
    target: str | None,
    remove: bool,
    as_json: bool,
    url: str,
) -> None:
    """Send a copy of a dead letter with other content or attributes, back to where it came from.

    The original stays unless --remove is given.

    \f
    With `--remove` the original goes in the same transaction.
    """
    if content == "-":
        content = _text_of_stdin()
    with connect(url) as client:
        edited = None
        if attributes or dropped:
            original = described(client.dead_letter(queue, message_id).attributes).attributes
            kept = {each.name: each.text for each in original if each.name not in dropped}
            edited = kept | attributes
        copy = client.resubmit(
            queue, message_id, content=content, attributes=edited, target=target, remove=remove
        )
    if as_json:
        print_json(copy)
    else:
        echo(f"sent as {copy.id}")


def _text_of_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise CliFailure("the content on stdin is not UTF-8") from None


dead.add_command(delete)
dead.add_command(redrive)
dead.add_command(redrives)
