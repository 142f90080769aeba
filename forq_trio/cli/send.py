"""`forq send`: one message from the command line, or one for each line of a file or of stdin.

However sending lines ends, the command says how many were sent, which were not, which may be stored or not, and the
line from which a second call can go on.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.declared_options import given, message_options
from forq_trio.cli.exits import CliFailure, Exit, did_nothing, reporting_unknown_outcome
from forq_trio.cli.interrupts import Interrupts
from forq_trio.cli.lines import InputLine, LineCutter
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import json_option, url_option
from forq_trio.cli.output import echo, print_json
from forq_trio.cli.progress import progress_bar
from forq_trio.cli.send_offers import key_options, offer_one, take_keyed
from forq_trio.client.batches import batches
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.new_message import MessageOptions, NewMessage
from forq_trio.telemetry.words import counted

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

_CHUNK_BYTES = 1024 * 1024
_REJECTIONS_SHOWN_MAX = 10


@click.command()
@click.argument("queue", type=QUEUE)
@click.argument("content", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Send each line of this file.",
)
@click.option(
    "--from-line",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Skip the lines before this one, to go on where an earlier call ended.  [default: 1]",
)
@key_options
@message_options
@json_option
@url_option
def send(
    queue: str,
    content: str | None,
    file: Path | None,
    from_line: int | None,
    as_json: bool,
    url: str,
    **chosen: Any,
) -> int:
    """Send CONTENT, or each line of stdin (CONTENT is - or left out) or of a file.

    With --key it is offered under a key, and the output says whether that created a message, updated the pending one,
    or was ignored. Lines are sent in batches as they come, so a pipe may be endless. Empty lines are left out.

    \f
    Lines are cut at LF or CR LF and sent as they come, in batches of up to 1,000 messages and 4 MiB, each batch one
    commit on the server. A byte order mark before the first line is left out; where a command reads all of stdin as
    one content, the content has every byte. A line that the server refuses, is longer than 256 KiB or not UTF-8 is
    reported with its number; the others are sent and the exit code is 1.

    However it ends, the last line says how many were sent, and if it ended early (by Ctrl-C, or because the server was
    gone) which `--from-line` goes on. If the last batch got no answer, the command names its lines, which may or may
    not be stored: `--from-line` with the first of them sends them again, with the one after them skips them.

    With `--key` one message is offered under a key, unique per queue and `--kind` while its message is pending. The
    output says what happened: `created`, `updated` or `ignored` (identical to what is pending, or `--if-absent`), with
    id, sequence and revision; with `--json` also `processAfter`, and `onceMore` if it waits behind the message in
    process. With `--create` a pending key is an error, exit code 1. A key and `--dedup-id` exclude each other.

    For options that are not given the queue's settings apply; [queues.md](docs/queues.md) tells what each option
    means. If nothing is sent because the deduplication id is known, the output has the id and sequence of the first
    message. With `--json` one message gives an object with `id`, `sequence` and `duplicate`, lines give one with
    `queue`, `sent`, `rejected` (the lines, with `code`, `field` and `message`), `unknown` (`from` and `to`, the lines
    that may or may not be stored; else `null`) and `nextLine` (the first line that was not dealt with; `null` at the
    end).
    """
    if content is not None and file is not None:
        raise click.UsageError("CONTENT and --file exclude each other")
    if chosen["process_after"] is not None and chosen["delay_ms"] is not None:
        raise click.UsageError("--process-after and --delay exclude each other")
    if content == "-":
        content = None
    if content is not None and from_line is not None:
        raise click.UsageError("--from-line is for lines of stdin or of a file")
    keyed = take_keyed(chosen)
    options = cast("MessageOptions", chosen)
    if content is None and keyed is not None:
        raise click.UsageError("--key is for one message: give it as CONTENT")
    if content is None and options["deduplication_id"] is not None:
        raise click.UsageError("--dedup-id is for one message: only the first line would be stored")

    with connect(url) as client, Interrupts() as interrupts:
        if content is None:
            sending = _Sending(client, interrupts, queue, given(options), from_line or 1)
            return _send_lines(sending, file, as_json)
        if keyed is not None:
            return offer_one(client, queue, content, keyed, given(options), as_json)
        return _send_one(client, queue, content, given(options), as_json)


def _send_one(client: "ForqClient", queue: str, content: str, options: MessageOptions, as_json: bool) -> int:
    with reporting_unknown_outcome("message"):
        produced = client.produce(queue, content, **options)
    if as_json:
        print_json(produced)
    else:
        done = "already sent" if produced.duplicate else "sent"
        echo(f"{done} {produced.id} to {queue}, sequence {produced.sequence}")
    return Exit.OK


@dataclass
class _Sending:
    """Sends lines, and records the outcome of each."""

    client: "ForqClient"
    interrupts: Interrupts
    queue: str
    options: MessageOptions
    next_line: int  # the first line that was not processed
    sent: int = 0
    # the first and last line of a batch whose answer did not come yet
    under_way: tuple[int, int] | None = None
    # the numbers of lines that are not sent, with the reasons
    rejected: list[tuple[int, ForqError]] = field(default_factory=list)
    complete: bool = False

    def read(self, stream: IO[bytes]) -> Iterator[tuple[list[InputLine], int]]:
        """The lines of each chunk from `next_line` on, with its size; a chunk is what the stream has ready."""
        cutter = LineCutter()
        first = self.next_line
        while True:
            with self.interrupts.allowed():
                chunk = _read(stream)
            lines = cutter.feed(chunk) if chunk else cutter.finish()
            yield [line for line in lines if line.number >= first], len(chunk)
            if not chunk:
                return

    def send(self, lines: list[InputLine]) -> None:
        """Send lines in batches. Between two batches Ctrl-C ends it."""
        texts = [(line.number, line.text) for line in lines if line.text is not None]
        numbers = iter([number for number, _ in texts])
        bad = [(line.number, line.error) for line in lines if line.error is not None]
        for batch in batches(NewMessage(text, **self.options) for _, text in texts):
            with self.interrupts.allowed():
                pass
            batch_numbers = [next(numbers) for _ in batch]
            self._send_batch(batch_numbers, batch, [each for each in bad if each[0] < batch_numbers[-1]])
            bad = [each for each in bad if each[0] > batch_numbers[-1]]
        self.rejected += bad
        self.next_line = max([self.next_line, *(line.number + 1 for line in lines)])

    def _send_batch(
        self, numbers: list[int], batch: list[NewMessage], rejected: list[tuple[int, ForqError]]
    ) -> None:
        """Send one batch. rejected: invalid lines before and between those of the batch."""
        self.under_way = (numbers[0], numbers[-1])
        try:
            results = self.client.produce_many(self.queue, batch)
        except ForqError as problem:
            if did_nothing(problem):
                self.under_way = None
            raise
        answers = list(zip(numbers, results, strict=True))
        refused = [(number, result) for number, result in answers if isinstance(result, ForqError)]
        # A second Ctrl-C may end this anywhere: until the last statement the outcome counts as not known.
        self.rejected += rejected + refused
        self.sent += len(answers) - len(refused)
        self.next_line = numbers[-1] + 1
        self.under_way = None


def _read(stream: IO[bytes]) -> bytes:
    try:
        return stream.read1(_CHUNK_BYTES)  # type: ignore[attr-defined, no-any-return]  # all streams we open have it
    except OSError as problem:
        raise CliFailure(f"the lines cannot be read: {problem.strerror}") from None


def _send_lines(sending: _Sending, file: Path | None, as_json: bool) -> int:
    typed = file is None and sys.stdin.isatty()
    if typed:
        echo("Each line you type is sent as one message; end with Ctrl-D.", err=True)
    with nullcontext(sys.stdin.buffer) if file is None else open(file, "rb") as stream:
        started, first_line, done_bytes = time.monotonic(), sending.next_line, 0
        try:
            size = file.stat().st_size if file else None
            with progress_bar(sending.queue, size, hidden=typed) as show:
                for lines, chunk_bytes in sending.read(stream):
                    sending.send(lines)
                    done_bytes += chunk_bytes
                    show(done_bytes, None, f"{sending.sent:,} sent")
            sending.complete = True
        finally:
            seconds = time.monotonic() - started
            if as_json:
                _print_summary(sending)
            else:
                _tell_rejected(sending.rejected)
                _tell_where_to_go_on(sending, first_line)
                rate = f" ({sending.sent / seconds:,.0f}/s)" if seconds >= 0.5 else ""
                echo(f"sent {counted(sending.sent, 'message')} to {sending.queue} in {seconds:.1f} s{rate}")
    return Exit.FAILED if sending.rejected else Exit.OK


def _print_summary(sending: _Sending) -> None:
    rejected = [
        {"line": number, "code": error.code, "field": error.member, "message": error.api_message}
        for number, error in sorted(sending.rejected, key=itemgetter(0))
    ]
    unknown = sending.under_way and {"from": sending.under_way[0], "to": sending.under_way[1]}
    next_line = None if sending.complete else sending.next_line
    print_json(
        {
            "queue": sending.queue,
            "sent": sending.sent,
            "rejected": rejected,
            "unknown": unknown,
            "nextLine": next_line,
        }
    )


def _tell_rejected(rejected: list[tuple[int, ForqError]]) -> None:
    for number, error in sorted(rejected, key=itemgetter(0))[:_REJECTIONS_SHOWN_MAX]:
        echo(f"forq: line {number} was not sent: {error.api_message} ({error.code})", err=True)
    if len(rejected) > _REJECTIONS_SHOWN_MAX:
        echo(f"forq: … {counted(len(rejected), 'line')} in all were not sent", err=True)


def _tell_where_to_go_on(sending: _Sending, first_line: int) -> None:
    if sending.under_way is not None:
        first, last = sending.under_way
        echo(
            f"forq: whether lines {first} to {last} are stored is not known: --from-line {first} sends them"
            f" again, --from-line {last + 1} leaves them out",
            err=True,
        )
    elif not sending.complete and sending.next_line > first_line:
        echo(f"forq: --from-line {sending.next_line} goes on where this ended", err=True)
