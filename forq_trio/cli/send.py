"""`forq send`: one message from the command line, or one for each line of a file or of stdin."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import IO, Unpack

import click
from msgspec.structs import asdict
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from forq_trio.cli.exits import Exit
from forq_trio.cli.lines import Line, LineCutter
from forq_trio.cli.message_options import message_options
from forq_trio.cli.options import connect, json_option, url_option
from forq_trio.cli.output import count_of, errors_on_terminal, print_json
from forq_trio.client.batches import batches
from forq_trio.client.errors import ForqUnreachable, meaning
from forq_trio.client.sync import ForqClient
from forq_trio.client.types import MessageOptions, NewMessage, Rejected

_CHUNK_BYTES = 1024 * 1024
_REJECTIONS_SHOWN_MAX = 10


@click.command(short_help="Send a message, or each line of a file or pipe.")
@click.argument("queue")
@click.argument("content", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Send each line of this file.",
)
@message_options
@json_option
@url_option
def send(
    queue: str,
    content: str | None,
    file: Path | None,
    as_json: bool,
    url: str,
    **options: Unpack[MessageOptions],
) -> int:
    """Send CONTENT, or each line of stdin (CONTENT is - or left out) or of a file.

    Lines are sent in batches as they come, so a pipe may be endless. Empty lines are left out.
    """
    if content is not None and file is not None:
        raise click.UsageError("CONTENT and --file exclude each other")
    if options["process_after"] is not None and options["delay_ms"] is not None:
        raise click.UsageError("--process-after and --delay exclude each other")
    if content == "-":
        content = None
    if content is None and options["deduplication_id"] is not None:
        raise click.UsageError("--dedup-id is for one message: only the first line would be stored")

    with connect(url) as client:
        if content is None:
            return _send_lines(client, queue, file, options, as_json)
        produced = client.produce(queue, content, **options)
    if as_json:
        print_json(produced)
    else:
        done = "already sent" if produced.duplicate else "sent"
        click.echo(f"{done} {produced.id} to {queue}, sequence {produced.sequence}")
    return Exit.OK


@dataclass
class _Tally:
    """The results of the lines so far."""

    sent: int = 0
    rejected: list[tuple[int, Rejected]] = field(default_factory=list)


def _send_lines(
    client: ForqClient, queue: str, file: Path | None, options: MessageOptions, as_json: bool
) -> int:
    counters = _Tally()
    started = time.monotonic()
    with ExitStack() as stack:
        stream: IO[bytes] = sys.stdin.buffer if file is None else stack.enter_context(open(file, "rb"))
        # The summary is printed at any end, also Ctrl-C or an error, after the progress bar is removed.
        stack.callback(lambda: _summarise(queue, counters, time.monotonic() - started, as_json))
        advance = _progress(stack, queue, file)
        for lines, chunk_bytes in _read(stream):
            _send_chunk(client, queue, lines, options, counters)
            advance(chunk_bytes, counters.sent)
    return Exit.FAILED if counters.rejected else Exit.OK


def _read(stream: IO[bytes]) -> Iterator[tuple[list[Line], int]]:
    """The lines of each chunk, with its size; a chunk is what the stream has ready."""
    cutter = LineCutter()
    while chunk := stream.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]  # all binary streams we open have it
        yield list(cutter.feed(chunk)), len(chunk)
    yield list(cutter.finish()), 0


def _send_chunk(
    client: ForqClient, queue: str, lines: list[Line], options: MessageOptions, counters: _Tally
) -> None:
    counters.rejected += [
        (line.number, Rejected(line.code, message=meaning(line.code)))
        for line in lines
        if line.code is not None
    ]
    texts = [(line.number, line.text) for line in lines if line.text is not None]
    numbers = iter([number for number, _ in texts])
    for batch in batches(NewMessage(text, **options) for _, text in texts):
        batch_numbers = [next(numbers) for _ in batch]
        try:
            results = client.produce_many(queue, batch)
        except ForqUnreachable as problem:
            if problem.sent:
                span = f"lines {batch_numbers[0]} to {batch_numbers[-1]}"
                click.echo(f"forq: whether {span} are stored is not known", err=True)
            raise
        for number, result in zip(batch_numbers, results, strict=True):
            if isinstance(result, Rejected):
                counters.rejected.append((number, result))
            else:
                counters.sent += 1


def _progress(stack: ExitStack, queue: str, file: Path | None) -> Callable[[int, int], None]:
    """Show progress on a terminal; returns what to call with (more bytes, messages sent in all)."""
    typed = file is None and sys.stdin.isatty()
    if typed or not errors_on_terminal():
        if typed:
            click.echo("Each line you type is sent as one message; end with Ctrl-D.", err=True)
        return lambda chunk_bytes, sent: None
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=False),
        TextColumn("{task.fields[sent]} sent"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    stack.enter_context(progress)
    task = progress.add_task(queue, total=file.stat().st_size if file else None, sent="0")
    return lambda chunk_bytes, sent: progress.update(task, advance=chunk_bytes, sent=f"{sent:,}")


def _summarise(queue: str, counters: _Tally, seconds: float, as_json: bool) -> None:
    counters.rejected.sort(key=itemgetter(0))
    if as_json:
        rejected = [{"line": number} | asdict(result) for number, result in counters.rejected]
        print_json({"queue": queue, "sent": counters.sent, "rejected": rejected})
        return
    for number, result in counters.rejected[:_REJECTIONS_SHOWN_MAX]:
        click.echo(f"forq: line {number} was not sent: {result.message} ({result.code})", err=True)
    if len(counters.rejected) > _REJECTIONS_SHOWN_MAX:
        click.echo(f"forq: … {count_of(len(counters.rejected), 'line')} in all were not sent", err=True)
    rate = f" ({counters.sent / seconds:,.0f}/s)" if seconds >= 0.5 else ""
    click.echo(f"sent {count_of(counters.sent, 'message')} to {queue} in {seconds:.1f} s{rate}")
