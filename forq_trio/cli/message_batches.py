"""`forq batch …`: batches of messages, whose end the server tells with a message."""

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

import click

from forq_trio.cli.confirm import confirm
from forq_trio.cli.connection import connect
from forq_trio.cli.exits import Exit, explain
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.names import ServerName
from forq_trio.cli.options import json_option, url_option, yes_option
from forq_trio.cli.output import ago, echo, print_json
from forq_trio.cli.tables import CellKind, Column, print_list
from forq_trio.model import limits
from forq_trio.model.errors import CallerError

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient
    from forq_trio.model.message_batches.types import MessageBatch

_LISTED_DEFAULT = 50
_BAR_WIDTH = 20
_COLUMNS = (
    Column("batch", CellKind.NAME),
    Column("state"),
    Column("progress"),
    Column("left", CellKind.NUMBER),
    Column("done", CellKind.NUMBER),
    Column("dead", CellKind.NUMBER),
    Column("removed", CellKind.NUMBER, spare=1),
    Column("then", CellKind.TEXT, spare=2),
    Column("opened", spare=3),
)


def all_batches(client: "ForqClient") -> "Iterator[MessageBatch]":
    """All batches, the newest first."""
    before: int | None = None
    while True:
        page = client.batches(before=before, limit=limits.MESSAGE_BATCHES_PAGE_MAX)
        yield from page.batches
        if page.next is None:
            return
        before = page.next


_BATCH = ServerName(lambda client, _: (each.id for each in all_batches(client)))


@click.group(cls=CommandGroup)
def batch() -> None:
    """Commands on batches: messages that belong together, whose end the server tells with a message.

    \f
    [batches.md](docs/batches.md) explains them. Programs open them; a batch that has ended is remembered for a day. For
    an id that no batch has the exit code is 5.
    """


@batch.command("list", short_help="List batches.")
@click.option(
    "-n",
    "number",
    type=click.IntRange(1),
    metavar="NUMBER",
    default=_LISTED_DEFAULT,
    show_default=True,
    help="How many at most.",
)
@json_option
@url_option
def list_(number: int, as_json: bool, url: str) -> None:
    """List batches, the newest first: how many of their members are left, done, dead or removed.

    \f
    With `--json` an object for each, as the API has it.
    """
    with connect(url) as client:
        found = list(islice(all_batches(client), number))
    print_list(found, as_json, _COLUMNS, _row, "There is no batch; programs open them.")


def _row(each: "MessageBatch") -> tuple[object, ...]:
    return (
        each.id,
        _state(each),
        _percent(each),
        each.left,
        each.done,
        each.dead,
        each.removed,
        each.then_queue or "",
        f"{ago(each.made_at)} ago",
    )


@batch.command(short_help="Show how far a batch is.")
@click.argument("batch_id", metavar="BATCH", type=_BATCH)
@json_option
@url_option
def show(batch_id: str, as_json: bool, url: str) -> None:
    """Show how far a batch is: its members by state, and the messages that it sends.

    \f
    With `--json` one object, as the API has it.
    """
    with connect(url) as client:
        found = client.batch(batch_id)
    if as_json:
        print_json(found)
        return
    for label, value in lines_of(found):
        echo(f"{label:<8} {value}")


@batch.command(short_help="Close batches: each ends when no member is left.")
@click.argument("batch_ids", metavar="BATCH...", nargs=-1, required=True, type=_BATCH)
@url_option
def close(batch_ids: tuple[str, ...], url: str) -> int:
    """Close batches that the program which opened them left open. Each ends when no member is left."""
    with connect(url) as client:
        return _each(batch_ids, client.close_batch)


@batch.command(short_help="End batches without their message.")
@click.argument("batch_ids", metavar="BATCH...", nargs=-1, required=True, type=_BATCH)
@yes_option
@url_option
def abandon(batch_ids: tuple[str, ...], yes: bool, url: str) -> int:
    """End batches without their message. Their members stay in their queues.

    Asks first; without a terminal it needs --yes.
    """
    with connect(url) as client:
        if not yes:
            confirm(
                lambda: f"End {', '.join(batch_ids)} without a message?",
                doing="ending",
                otherwise="nothing was ended",
            )
        return _each(batch_ids, client.abandon_batch)


def _each(batch_ids: tuple[str, ...], do: "Callable[[str], MessageBatch]") -> int:
    """Call `do` for each batch; names those that are refused, and goes on. Returns the exit code."""
    code: int = Exit.OK
    for batch_id in batch_ids:
        try:
            found = do(batch_id)
            echo(f"{batch_id} is {_state(found)}, {found.left:,} left")
        except CallerError as problem:
            echo(f"forq: {batch_id}: {problem} ({problem.code})", err=True)
            code = explain(problem)[1]
    return code


def _state(found: "MessageBatch") -> str:
    """The state in a word, or how it ended."""
    if found.outcome is None:
        return found.state
    return "ended" if found.outcome in ("sent", "nothing_to_send") else found.outcome


def _percent(found: "MessageBatch") -> str:
    ended = found.members - found.left
    return f"{ended * 100 // found.members} %" if found.members else "-"


def lines_of(found: "MessageBatch") -> Iterator[tuple[str, str]]:
    """What is known of a batch, as labels and values."""
    ended = found.members - found.left
    filled = ended * _BAR_WIDTH // found.members if found.members else 0
    yield "batch", found.id
    yield "state", _state(found)
    yield "", f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {_percent(found)}"
    for name in ("left", "done", "dead", "removed"):
        yield name, f"{getattr(found, name):,}"
    yield "then", _sent(found.then_queue, found.then_id)
    if found.on_dead_queue is not None:
        yield "on dead", _sent(found.on_dead_queue, found.on_dead_id)
    if found.refused is not None:
        yield (
            "refused",
            found.refused if found.outcome == "refused" else f"{found.refused}: it is sent again later",
        )
    if found.outer is not None:
        yield "inside", found.outer
    by = f" by {found.made_by}" if found.made_by else ""
    yield "opened", _moment(found.made_at) + by
    if found.closed_at is not None:
        yield "closed", _moment(found.closed_at)
    if found.ended_at is None:
        yield "expires", _moment(found.expires_at)
    else:
        yield "ended", _moment(found.ended_at)


def _sent(queue: str | None, message_id: str | None) -> str:
    if queue is None:
        return "nothing"
    return f"to {queue}" if message_id is None else f"to {queue}: {message_id}"


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000).astimezone().isoformat(" ", "seconds")
