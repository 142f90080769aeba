"""`forq migrate`: works on a database itself, a file or PostgreSQL, without a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from forq_trio.cli.exits import Exit, Failure
from forq_trio.cli.options import db_option, json_option
from forq_trio.cli.output import print_json
from forq_trio.model.errors import StorageOpenError


@contextmanager
def _opening() -> Iterator[None]:
    """What cannot be opened ends the command with one sentence, as it ends `forq serve`."""
    try:
        yield
    except StorageOpenError as error:
        raise Failure(str(error), Exit.USAGE) from None


@click.command()
@db_option
@click.option("--config", "file", metavar="FILE", type=Path, help="The TOML file.  [env var: FORQ_CONFIG]")
@json_option
def migrate(db_path: str | None, file: Path | None, as_json: bool) -> None:
    """Bring the schema of the database up to date, and do nothing else.

    It is the file, or the database that FORQ_DB_URL names.

    In PostgreSQL the schema is made where there is none.
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
        click.echo(f"{migrated.name} is up to date: version {migrated.now}")
    else:
        click.echo(f"{migrated.name} is brought up to date: from version {migrated.before} to {migrated.now}")
