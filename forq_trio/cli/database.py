"""`forq migrate` and `forq move`: work on databases themselves, files or PostgreSQL, without a server."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.options import db_option, json_option
from forq_trio.cli.output import echo, print_json
from forq_trio.cli.progress import errors_on_terminal, progress_bar
from forq_trio.cli.tables import CellKind, Column, print_table
from forq_trio.model.errors import StorageOpenError
from forq_trio.telemetry.words import counted

_LINE_SECONDS = 5.0
"""How often a line reports the progress if there is no terminal for a bar."""
_DIGEST_SHOWN = 12


@contextmanager
def _opening() -> Iterator[None]:
    """End the command with one sentence, like `forq serve`, if the body cannot open a database."""
    try:
        yield
    except StorageOpenError as error:
        raise CliFailure(str(error), Exit.USAGE) from None


@click.command()
@db_option
@click.option("--config", "file", metavar="FILE", type=Path, help="The TOML file.  [env var: FORQ_CONFIG]")
@json_option
def migrate(db_path: str | None, file: Path | None, as_json: bool) -> None:
    """Bring the schema of the database up to date, and do nothing else.

    That is the file, or the database that FORQ_DB_URL names.

    In PostgreSQL a missing schema is created.

    \f
    The command prints from which version to which it went, or that there was nothing to do. `forq serve` does the same
    when it starts; this is for whoever wants to see it done before. A file has to exist, and no server may have it
    open. For a database that is not ours, that a newer or an unreleased version wrote, that denies access or cannot be
    reached, the command prints one sentence, and the exit code is 2.
    """
    from forq_trio.app import database_url
    from forq_trio.config.load import load_database
    from forq_trio.storage.open import migrate as migrate_database

    url = database_url(load_database(db_path, file))
    with _opening():
        migrated = migrate_database(url)
    if as_json:
        print_json({"database": migrated.name, "before": migrated.before, "version": migrated.now})
    elif migrated.before == migrated.now:
        echo(f"{migrated.name} is up to date: version {migrated.now}")
    else:
        echo(f"{migrated.name} is brought up to date: from version {migrated.before} to {migrated.now}")


@click.command()
@click.option(
    "--from",
    "source",
    metavar="DATABASE",
    help="The database to move: sqlite:PATH or postgresql://…  [default: FORQ_DB_URL]",
)
@click.option(
    "--to",
    "target",
    metavar="DATABASE",
    help="An empty database: sqlite:PATH or postgresql://…  [default: FORQ_DB_URL]",
)
@json_option
def move(source: str | None, target: str | None, as_json: bool) -> None:
    """Move a queue into an empty database of the other kind. No server may use either.

    If it was interrupted, the same command continues it. Put a URL with a password into FORQ_DB_URL.

    \f
    All tables are moved, with ids, times, receipts and leases as they are: whoever works on a message acknowledges it
    afterwards at the new place. The source stays as it was. A database that a server uses is refused, so is a target
    with rows. Until the move is whole, no server opens the target. Interrupted at any point, also by `kill -9`, the
    same command goes on. At the end both sides are read and compared, and each table is shown with its rows and their
    SHA-256. [postgres.md](docs/postgres.md#move-a-file-into-the-database) says more.
    """
    from forq_trio.storage.open import move as move_all

    url = os.environ.get("FORQ_DB_URL")
    source, target = source or url, target or url
    if source is None or target is None or source == target:
        raise click.UsageError(
            "name both databases, with --from and --to; FORQ_DB_URL is the one that is left out"
        )
    try:
        with _opening(), _progress() as progress:
            moved = move_all(source, target, progress)
    except KeyboardInterrupt:
        echo("forq: the same command goes on with the move where it was", err=True)
        raise
    if as_json:
        tables = [each._asdict() for each in moved.tables]
        print_json({"from": moved.source, "to": moved.target, "tables": tables, "left": moved.left})
        return
    print_table(
        [Column("table"), Column("rows", CellKind.NUMBER), Column("sha-256")],
        [(each.name, f"{each.rows:,}", each.digest[:_DIGEST_SHOWN]) for each in moved.tables],
    )
    rows = counted(sum(each.rows for each in moved.tables), "row")
    echo(f"{moved.source} is moved to {moved.target}: {rows}, equal on both sides")
    for sentence in moved.left:
        echo(f"forq: {sentence}", err=True)


@contextmanager
def _progress() -> Iterator[Callable[[str, str, int], None]]:
    """Show progress: as a bar on a terminal, else as a line every few seconds."""
    with progress_bar("moving") as show:
        said_at = time.monotonic()

        def report(doing: str, table: str, rows: int) -> None:
            nonlocal said_at
            how_far = f"{doing} {table}: {counted(rows, 'row')}"
            show(0, status=how_far)
            if not errors_on_terminal() and time.monotonic() - said_at >= _LINE_SECONDS:
                said_at = time.monotonic()
                echo(f"forq: {how_far}", err=True)

        yield report
