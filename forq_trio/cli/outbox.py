"""`forq outbox …`: the messages of an outbox that were refused for good and set aside."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forq_trio.cli.confirm import confirm_deletion
from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.options import CommandT, json_option, yes_option
from forq_trio.cli.output import echo, one_line, print_json
from forq_trio.cli.pgq import connected
from forq_trio.cli.tables import CellKind, Column, print_list
from forq_trio.model.server.database_urls import shown
from forq_trio.telemetry.words import counted

if TYPE_CHECKING:
    from forq_trio.outbox import SetAside

_COLUMNS = (
    Column("id", CellKind.NUMBER),
    Column("queue", CellKind.NAME),
    Column("code", spare=1),
    Column("reason"),  # never cut, because its end says what is wrong or allowed
    Column("content", CellKind.TEXT, spare=2),
)
_CONTENT_SHOWN = 80


def _database_option(command: CommandT) -> CommandT:
    return click.option(
        "--database",
        envvar="FORQ_DB_URL",
        show_envvar=True,
        required=True,
        help="The application's SQLite file, or the URL of the queue's PostgreSQL database.",
    )(command)


@click.group(cls=CommandGroup)
def outbox() -> None:
    """Commands on messages of an outbox that the server refused for good.

    \f
    They were [set aside](docs/outbox.md#messages-that-are-refused). No server is needed.
    """


@outbox.command(short_help="List the messages that were set aside.")
@json_option
@_database_option
def refused(as_json: bool, database: str) -> None:
    """List the messages that were set aside, oldest first, and why."""
    with _opened(database) as connection:
        found = _all(connection)
    if as_json:
        for each in found:
            print_json(each)
        return
    print_list(found, False, _COLUMNS, _row, "No message was set aside.")


@outbox.command(short_help="Send again messages that were set aside.")
@click.argument("ids", type=int, nargs=-1)
@click.option("--all", "every", is_flag=True, help="All of them.")
@_database_option
def retry(ids: tuple[int, ...], every: bool, database: str) -> None:
    """Send again messages that were set aside, behind all others: those with these IDS, or --all."""
    from forq_trio.outbox import retry_set_aside

    with _opened(database) as connection:
        chosen = _chosen(connection, ids, every)
        retry_set_aside(connection, chosen)
    echo(f"{counted(len(chosen), 'message')} sent again")


@outbox.command(short_help="Delete messages that were set aside.")
@click.argument("ids", type=int, nargs=-1)
@click.option("--all", "every", is_flag=True, help="All of them.")
@yes_option
@_database_option
def delete(ids: tuple[int, ...], every: bool, yes: bool, database: str) -> None:
    """Delete messages that were set aside, for good: those with these IDS, or --all."""
    from forq_trio.outbox import delete_set_aside

    with _opened(database) as connection:
        chosen = _chosen(connection, ids, every)
        if not yes:
            confirm_deletion(lambda: counted(len(chosen), "refused message"), doing="deleting")
        delete_set_aside(connection, chosen)
    echo(f"{counted(len(chosen), 'message')} deleted")


def _chosen(connection: Any, ids: Sequence[int], every: bool) -> list[int]:
    """The ids that the command line chooses. Raises UsageError if it chooses none."""
    if bool(ids) == every:
        raise click.UsageError("name the ids of messages, or --all")
    there = [each.id for each in _all(connection)]
    if missing := set(ids).difference(there):
        raise CliFailure(f"no message {min(missing)} was set aside", Exit.NOTHING)
    return list(ids) or there


def _all(connection: Any) -> "list[SetAside]":
    from forq_trio.outbox import set_aside

    found: list[SetAside] = []
    while page := set_aside(connection, after=found[-1].id if found else 0):
        found += page
    return found


def _row(found: "SetAside") -> tuple[object, ...]:
    content = one_line(found.message.content, _CONTENT_SHOWN)
    return found.id, found.queue, found.code, found.reason, content


@contextmanager
def _opened(database: str) -> Iterator[Any]:
    """A connection that is committed at the end. The database's errors are shown without the URL and its password."""
    if "://" in database:
        with connected(database) as connection:
            yield connection
        return
    import sqlite3
    from contextlib import closing

    try:
        uri = f"{Path(database).absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True)) as file, file:
            yield file
    except sqlite3.Error as problem:
        raise CliFailure(f"{shown(database)}: {problem}") from None
