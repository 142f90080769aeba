"""Commands that work on database files, without a server: `check`, `verify`, `backup` and `restore`."""

import os
from typing import TYPE_CHECKING

import click

from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.options import db_option, json_option
from forq_trio.cli.output import echo, print_json
from forq_trio.cli.progress import progress_bar
from forq_trio.telemetry.words import counted

if TYPE_CHECKING:
    from forq_trio.storage.sqlite.files.check import CheckReport


@click.command()
@db_option
@json_option
def check(db_path: str | None, as_json: bool) -> int:
    """Check the database: the structure of the file, then the rules for its tables.

    \f
    Reads the whole file. Without `--db-path` it is the one that the configuration names (`FORQ_DB_PATH`, the TOML
    file, or the default).
    """
    from forq_trio.storage.sqlite.files.check import check_file

    path = _database(db_path)
    return _report(path, check_file(path), as_json)


@click.command()
@click.argument("backup", metavar="BACKUP")
@json_option
def verify(backup: str, as_json: bool) -> int:
    """Check a backup: a complete database in one closed file.

    \f
    Fails for a file that has a write-ahead log: that is a database in use, not a backup. Of a file that an older
    version of forq-trio made, SQLite's structure is checked, and the rules for its tables once a server of this version
    has opened it; `forq check` does the same.
    """
    from forq_trio.storage.sqlite.files.check import verify_backup

    return _report(backup, verify_backup(backup), as_json)


@click.command()
@click.argument("target", metavar="TARGET")
@click.option("--overwrite", is_flag=True, help="Replace TARGET if it is there.")
@db_option
@json_option
def backup(target: str, overwrite: bool, db_path: str | None, as_json: bool) -> None:
    """Copy the database to the file TARGET as of now, while a server goes on working with it.

    \f
    The copy holds what was committed when it began, in one file without a log and without free pages. It gets its name
    only when it is complete, checked and on disk. Commits of a running server go on meanwhile.
    """
    from forq_trio.storage.sqlite.files.check import backup_file

    source = _database(db_path)
    with progress_bar("copying") as show:
        copied_bytes = backup_file(source, target, show, overwrite=overwrite)
    if as_json:
        print_json({"source": source, "target": target, "bytes": copied_bytes})
    else:
        echo(f"{source} is backed up to {target}: {copied_bytes:,} bytes")


@click.command()
@click.argument("backup", metavar="BACKUP")
@click.argument("database", metavar="[DB]", required=False)
@json_option
def restore(backup: str, database: str | None, as_json: bool) -> None:
    """Replace the database DB, which no server may have open, with BACKUP. The old database stays next to it.

    \f
    Without DB it is the one that the configuration names. The backup is checked as `forq verify` does, then copied;
    interrupted at any point, the file is either the whole old database or the whole new one. What was there becomes
    `DB.replaced-<UTC time>`, with all that its log held. Refused: a backup that is not sound or has a log, a
    database that a server or another program has open, and one that belongs to another user.
    """
    from forq_trio.config.load import load_db_path
    from forq_trio.storage.sqlite.files.restore import restore_file

    path = str(load_db_path(database))
    with progress_bar("copying") as show:
        restored = restore_file(backup, path, show)
    if as_json:
        print_json(
            {"backup": backup, "database": path, "bytes": restored.size, "replaced": restored.replaced}
        )
        return
    echo(f"{path} is restored from {backup}: {restored.size:,} bytes")
    if restored.replaced is not None:
        echo(f"what was there is now {restored.replaced}")


def _database(option: str | None) -> str:
    """The path of the database. Raises ConfigError, and CliFailure if nobody named one and the default is not there."""
    from forq_trio.config.load import load_db_path

    path = load_db_path(option)
    if not (option or os.environ.get("FORQ_DB_PATH") or path.exists()):
        raise CliFailure(f"{path} does not exist; FORQ_DB_PATH or --db names another place")
    return str(path)


def _report(path: str, report: "CheckReport", as_json: bool) -> int:
    if as_json:
        print_json(
            {
                "path": path,
                "ok": report.ok,
                "messages": report.messages,
                "queues": report.queues,
                "schemaVersion": report.schema_version,
                "older": report.is_older,
                "problems": report.problems,
            }
        )
        return Exit.OK if report.ok else Exit.FAILED
    contents = f"{counted(report.messages, 'message')} in {counted(report.queues, 'queue')}"
    if report.ok:
        echo(f"{path} is sound: {contents}, schema version {report.schema_version}")
        if report.is_older:
            echo("the next start brings it up to date; until then only its structure can be checked")
        return Exit.OK
    for problem in report.problems:
        echo(problem)
    echo(f"forq: {path} has {counted(len(report.problems), 'problem')}: {contents}", err=True)
    return Exit.FAILED
