"""`forq export`: the messages of a queue as lines of JSON, without any effect on them."""

from pathlib import Path

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import Exit
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import target_file_option, url_option
from forq_trio.cli.output import echo, on_terminal, writing_lines
from forq_trio.cli.progress import progress_bar
from forq_trio.telemetry.words import counted


@click.command()
@click.argument("queue", type=QUEUE)
@target_file_option
@url_option
def export(queue: str, file: Path | None, url: str) -> int:
    """Write all messages that are in QUEUE now, in any state, as one JSON object a line. The queue does not change.

    \f
    The lines are those of the [API](docs/api.md). Messages that arrive meanwhile are left out; those that leave
    meanwhile may be missing. For a queue without messages the exit code is 5.
    """
    from forq_trio.client.pages import get_page
    from forq_trio.client.protocol import export_path

    written = 0
    with connect(url) as client:
        partitions = client.export_partitions(queue, 1)
        until = partitions.bounds[-1].until if partitions.bounds else 0
        with (
            writing_lines(file) as write,
            progress_bar(queue, partitions.messages, hidden=file is None and on_terminal()) as show,
        ):
            after: int | None = 0
            while after is not None:
                page = get_page(client, export_path(queue, after, until))
                write(page.lines)
                written += page.lines.count(b"\n")
                show(written, None, f"{written:,} written")
                after = page.next
    if file is not None:
        echo(f"{counted(written, 'message')} of {queue} written to {file}", err=True)
    return Exit.OK if written else Exit.NOTHING
