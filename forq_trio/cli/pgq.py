"""`forq pgq …`: tables of pgq's layout in a PostgreSQL database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from forq_trio.cli.confirm import confirm_deletion
from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.options import CommandT, yes_option
from forq_trio.cli.output import echo

if TYPE_CHECKING:
    from forq_trio.pgq.connections import PgqConnection


def _db_url_option(command: CommandT) -> CommandT:
    """--db-url, or FORQ_PG_URL."""
    return click.option(
        "--db-url",
        envvar="FORQ_PG_URL",
        show_envvar=True,
        required=True,
        metavar="URL",
        help="The database, as postgresql://user@host/database.",
    )(command)


@click.group(cls=CommandGroup)
def pgq() -> None:
    """Commands on queues in tables of PostgreSQL, in the layout of Go's pgq. They need no server.

    \f
    A table is in the first schema of the connection's search path; its name may have capitals, `/` and quotes.
    [pgq.md](docs/pgq.md) explains the layout.
    """


@pgq.command(short_help="Make a table, its indexes and its trigger.")
@click.argument("table")
@click.option("--no-notify", is_flag=True, help="Without the trigger that wakes waiting consumers.")
@_db_url_option
def create(table: str, no_notify: bool, db_url: str) -> None:
    """Make a table with pgq's columns and indexes. An existing one keeps its rows, and gets the indexes it lacks.

    \f
    It also makes one index and a trigger of ours; an existing table gets the trigger, too, if it lacks that.
    """
    from forq_trio.pgq.layout import create_table

    with connected(db_url) as connection:
        create_table(connection, table, notify=not no_notify)
    echo(f"{table} is there")


@pgq.command(short_help="Drop a table with all its messages.")
@click.argument("table")
@yes_option
@_db_url_option
def drop(table: str, yes: bool, db_url: str) -> None:
    """Drop a table with all its messages, finished ones too.

    \f
    It asks first; without a terminal it takes `--yes`.
    """
    from forq_trio.pgq.layout import drop_table

    with connected(db_url) as connection:
        if not yes:
            confirm_deletion(lambda: f"the table {table} with all its messages", doing="dropping")
        dropped = drop_table(connection, table)
    if not dropped:
        raise CliFailure(f"there is no table {table!r} in the database", Exit.NOTHING)
    echo(f"{table} is dropped")


@pgq.command(short_help="Say what a table lacks.")
@click.argument("table")
@_db_url_option
def check(table: str, db_url: str) -> None:
    """Say which of pgq's columns and indexes a table lacks. It may have others, too, and may be partitioned.

    \f
    If something is missing, the exit code is 1; without the table it is 5.
    """
    from forq_trio.pgq.layout import check_table, has_old_function

    with connected(db_url) as connection:
        check_table(connection, table)
        is_old = has_old_function(connection, table)
    echo(f"{table} has all that pgq needs")
    if is_old:
        echo(
            "its trigger's function is of an earlier version, and slows publishers down: `forq pgq create` renews it"
        )


@contextmanager
def connected(db_url: str) -> "Iterator[PgqConnection]":
    """A connection that is closed at the end. The database's errors are shown without the URL and its password."""
    from forq_trio.model.errors import StorageUnavailable
    from forq_trio.pgq import connections, errors

    try:
        with connections.connected(db_url) as connection:
            yield connection
    except (errors.InvalidDatabaseUrl, errors.InvalidTableName, errors.DatabaseRefused) as problem:
        raise CliFailure(str(problem), Exit.USAGE) from None
    except StorageUnavailable as problem:
        raise CliFailure(str(problem), Exit.UNREACHABLE) from None
    except errors.NoTable as problem:
        raise CliFailure(str(problem), Exit.NOTHING) from None
