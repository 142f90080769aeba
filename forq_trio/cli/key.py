"""`forq key …`: finds, shows, reschedules and drops messages by their keys. `forq send --key` offers them."""

import shlex
import sys

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.found_messages import PREVIEW_LENGTH_MAX, moment, print_line, print_message
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import CommandT, duration_option, json_option, moment_ms, shown_option, url_option
from forq_trio.cli.output import echo, one_line, print_json
from forq_trio.cli.tables import CellKind, Column, print_list
from forq_trio.model.errors import KeyNotFound
from forq_trio.model.messages.types import MessageInfo
from forq_trio.telemetry.words import counted

_LISTED = (
    Column("key", CellKind.NAME),
    Column("kind", spare=3),
    Column("status", spare=5),
    Column("due", spare=4),
    Column("offers", CellKind.NUMBER, spare=2),
    Column("revision", CellKind.NUMBER, spare=1),
    Column("content", CellKind.TEXT),
)
_SHOWN = (
    ("id", "id"),
    ("queue", "queue"),
    ("sequence", "sequence"),
    ("status", "status"),
    ("due", "process_after"),
    ("attempts", "attempts"),
    ("leased until", "lease_until"),
    ("last error", "last_error"),
    ("expires", "expires_after"),
    ("priority", "priority"),
    ("group", "group"),
)
_TIMES = frozenset({"process_after", "lease_until", "expires_after"})


def _kind_option(command: CommandT) -> CommandT:
    return click.option("--kind", default="", metavar="NAME", help="The kind of the key.")(command)


def _once_more_option(command: CommandT) -> CommandT:
    says = "The offer that waits behind the message in process."
    return click.option("--once-more", is_flag=True, help=says)(command)


@click.group(cls=CommandGroup)
def key() -> None:
    """Work on the pending messages that have a key. `forq send --key` offers one.

    \f
    All of these end with code 5 where no such message is pending.
    """


@key.command("list", short_help="List pending messages by their keys.")
@click.argument("queue", type=QUEUE)
@click.option("--prefix", default="", metavar="TEXT", help="Only keys that begin with this.")
@click.option("--kind", metavar="NAME", help="Only keys of this kind.")
@click.option("--after", metavar="PLACE", help="Go on after this place.")
@shown_option(20)
@json_option
@url_option
def list_(
    queue: str, prefix: str, kind: str | None, after: str | None, limit: int, as_json: bool, url: str
) -> int:
    """List the pending messages that have a key, by kind and key.

    \f
    It shows key, kind, status, when each is due, how many offers there were, revision and content. Where there are
    more, it says with which `--after` to go on. `--json` prints each message as `GET /api/v1/queues/{queue}/keys`
    answers it.
    """
    found: list[MessageInfo] = []
    with connect(url) as client:
        while len(found) < limit:
            page = client.keyed_messages(
                queue, prefix=prefix, kind=kind, after=after, limit=limit - len(found)
            )
            found += page.messages
            after = page.next
            if after is None:
                break
    print_list(found, as_json, _LISTED, _row, f"No such key of {queue} is pending.")
    if after is not None:
        echo(f"There may be more: go on with --after {shlex.quote(after)}", err=True)
    return Exit.OK if found else Exit.NOTHING


def _row(message: MessageInfo) -> tuple[object, ...]:
    keyed = message.keyed
    assert keyed is not None  # only such messages are listed
    return (
        keyed.key,
        keyed.kind or "-",
        message.status,
        moment(message.process_after),
        keyed.offers,
        keyed.revision,
        one_line(message.content, PREVIEW_LENGTH_MAX),
    )


@key.command(short_help="Show the pending message of a key.")
@click.argument("queue", type=QUEUE)
@click.argument("key")
@_kind_option
@json_option
@url_option
def show(queue: str, key: str, kind: str, as_json: bool, url: str) -> None:
    """Show the pending message of a key without changing it, and what waits behind it while it is in process.

    \f
    `--json` prints an object with `message` and `onceMore`.
    """
    with connect(url) as client:
        found = client.keyed_message(queue, key, kind)
    if found is None:
        raise KeyNotFound
    if as_json:
        print_json(found)
        return
    keyed, once_more = found.message.keyed, found.once_more
    assert keyed is not None  # it was found by its key
    print_line("key", keyed.key)
    if keyed.kind:
        print_line("kind", keyed.kind)
    print_line("revision", f"{keyed.revision}, after {counted(keyed.offers, 'offer')}, the last {keyed.mode}")
    if once_more is not None:
        print_line("then", f"once more, due {moment(once_more.process_after)}, revision {once_more.revision}")
    print_message(found.message, _SHOWN, _TIMES)
    if once_more is not None:
        echo("\nThen:\n")
        echo(once_more.content)


@key.command(short_help="Change when the message of a key is due.")
@click.argument("queue", type=QUEUE)
@click.argument("key")
@_kind_option
@click.option(
    "--process-after", type=moment_ms, metavar="TIME", help="When it is due. In ISO 8601, or epoch ms."
)
@duration_option("--delay", "delay_ms", help="How long it is delayed from now on.")
@_once_more_option
@json_option
@url_option
def reschedule(
    queue: str,
    key: str,
    kind: str,
    process_after: int | None,
    delay_ms: int | None,
    once_more: bool,
    as_json: bool,
    url: str,
) -> None:
    """Change when the message of a key is due, and nothing else. A message in process is refused.

    \f
    It takes one of `--process-after` and `--delay`. For a message in process the exit code is 1; `--once-more` moves
    what waits behind it.
    """
    if (process_after is None) == (delay_ms is None):
        raise click.UsageError("either --process-after or --delay is needed")
    with connect(url) as client:
        offered = client.reschedule_key(
            queue, key, kind=kind, process_after=process_after, delay_ms=delay_ms, once_more=once_more
        )
    if as_json:
        print_json(offered)
    else:
        echo(f"{offered.id} is due {moment(offered.process_after)}, revision {offered.revision}")


@key.command(short_help="Remove the message of a key, or all of a kind.")
@click.argument("queue", type=QUEUE)
@click.argument("key", required=False)
@_kind_option
@_once_more_option
@click.option("--all", "everything", is_flag=True, help="All messages that have a key of this kind.")
@click.option("--confirm", metavar="QUEUE", help="With --all: the name of the queue once more. Do not ask.")
@json_option
@url_option
def drop(
    queue: str,
    key: str | None,
    kind: str,
    once_more: bool,
    everything: bool,
    confirm: str | None,
    as_json: bool,
    url: str,
) -> int:
    """Remove the message of a key, also one in process, and what waits behind it.

    --all asks for the name of the queue; without a terminal it needs --confirm.

    \f
    With `--once-more` it removes only what waits. The receipt of a consumer is void then. With `--all` it removes all
    messages that have a key of this kind. `--json` prints `queue` and `dropped`.
    """
    if everything == (key is not None):
        raise click.UsageError("either KEY or --all is needed")
    if everything and once_more:
        raise click.UsageError("--all and --once-more exclude each other")
    if confirm is not None and not everything:
        raise click.UsageError("--confirm is for --all")
    with connect(url) as client:
        if key is None:
            dropped = client.drop_keys(
                queue, kind, confirm=_phrase(queue, kind) if confirm is None else confirm
            )
        else:
            dropped = int(client.drop_key(queue, key, kind, once_more=once_more))
    if as_json:
        print_json({"queue": queue, "dropped": dropped})
    elif key is not None and not dropped:
        raise CliFailure(
            "nothing waits behind this key" if once_more else "no message with this key is pending",
            Exit.NOTHING,
        )
    else:
        echo(f"{counted(dropped, 'message')} of {queue} removed")
    return Exit.OK if dropped or everything else Exit.NOTHING


def _phrase(queue: str, kind: str) -> str:
    """Ask for the phrase that confirms. Raises UsageError without a terminal, CliFailure for a wrong phrase."""
    if not sys.stdin.isatty():
        raise click.UsageError("without a terminal to ask on, --all needs --confirm")
    which = f"keys of the kind {kind}" if kind else "keys without a kind"
    echo(f"Permanently delete all messages of {queue} that have {which}? This cannot be undone.", err=True)
    phrase: str = click.prompt("Type the name of the queue", default="", show_default=False, err=True)
    if phrase != queue:
        raise CliFailure("nothing was removed")
    return phrase
