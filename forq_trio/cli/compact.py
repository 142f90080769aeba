"""`forq compact`: gives free pages back to the disk, in the running server or, with --db, in a file without one."""

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import Exit
from forq_trio.cli.interrupts import Interrupts
from forq_trio.cli.options import json_option, url_option
from forq_trio.cli.output import echo, print_json
from forq_trio.cli.progress import progress_bar, updates
from forq_trio.model.limits import MIB
from forq_trio.model.server.compaction import CompactionInfo

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

_ENDED = {"stopped": "the compaction was stopped: ", "failed": "the compaction failed: "}


@click.command()
@click.option("--stop", is_flag=True, help="Stop the server's compaction; what it has freed stays freed.")
@click.option("--db-path", "--db", "db_path", metavar="FILE", help="Rewrite this file, without a server.")
@json_option
@url_option
@click.pass_context
def compact(context: click.Context, stop: bool, db_path: str | None, as_json: bool, url: str) -> int:
    """Have the running server give all free pages of its file back; with --db, rewrite a file that no server has open.

    It follows a compaction that runs already, and continues a paused one. Ctrl-C only stops following it.

    \f
    One that the server began by itself gives back all from then on. The server works in small steps, between all
    else that it does ([backup.md](docs/backup.md#give-disk-space-back)); a bar shows how far it is. Ctrl-C leaves it
    going on in the server and says so; `--stop` ends it.

    With `--db` the new file is checked and on disk before it takes the name of the old one; interrupted at any point,
    the file is either the whole old one or the whole new one. It takes as much disk space again as what is in use. A
    file that Forq or an earlier version of forq-trio made can give free space back to the disk only after this; new
    files always can. Refused: a file that a server or another program has open, that is damaged, that has a second
    name, or that belongs to another user.
    """
    if db_path is None:
        with connect(url) as client, Interrupts() as interrupts:
            task = client.stop_compaction() if stop else _compact(client, interrupts)
        _report(task, as_json)
        return Exit.OK if stop or task.state == "done" else Exit.FAILED
    asked = context.get_parameter_source("url") is ParameterSource.COMMANDLINE
    if stop or asked:
        raise click.UsageError(f"--db and {'--stop' if stop else '--url'} exclude each other")
    return _compact_file(db_path, as_json)


def _compact(client: "ForqClient", interrupts: Interrupts) -> CompactionInfo:
    """Start a compaction, or join the running one, and show its progress until it has ended."""
    task = client.start_compaction()
    try:
        with interrupts.allowed(), progress_bar("compact") as show:
            for _ in updates():
                if task.state not in ("running", "paused"):
                    break
                task = client.compaction_info()
                show(task.given_back_bytes, task.goal_bytes or None, _how_far(task))
    except KeyboardInterrupt:
        hint = "`forq compact` shows it, `forq compact --stop` ends it"
        echo(f"forq: the compaction goes on in the server: {hint}", err=True)
        raise
    return task


def _how_far(task: CompactionInfo) -> str:
    paused = "paused, " if task.state == "paused" else ""
    return f"{paused}{task.given_back_bytes / MIB:,.0f} of {task.goal_bytes / MIB:,.0f} MiB"


def _report(task: CompactionInfo, as_json: bool) -> None:
    """Print what a compaction did."""
    if as_json:
        print_json(task)
    elif task.state == "idle":
        echo("No compaction has run since the server started.", err=True)
    else:
        if task.error is not None:
            echo(f"forq: {task.error}", err=True)
        echo(f"{_ENDED.get(task.state, '')}{task.given_back_bytes:,} bytes are given back")


def _compact_file(db_path: str, as_json: bool) -> int:
    from forq_trio.config.load import load_db_path
    from forq_trio.storage.sqlite.files.compact import compact_file

    path = str(load_db_path(db_path))
    with progress_bar("writing") as show:
        compacted = compact_file(path, show)
    if as_json:
        print_json({"database": path, "bytes": compacted.after, "before": compacted.before})
    else:
        echo(f"{path} is compacted: {compacted.after:,} bytes, {compacted.before:,} before")
    return Exit.OK
