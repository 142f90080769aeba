"""`forq ack` and `forq nack`: what became of received messages, by their receipts."""

import click

from forq_trio.cli.exits import Exit
from forq_trio.cli.options import connect, duration_ms, json_option, url_option
from forq_trio.cli.output import count_of, print_json
from forq_trio.client.errors import meaning
from forq_trio.client.types import RECEIPTS_BATCH_MAX, ReceiptResult


@click.command(short_help="Acknowledge received messages.")
@click.argument("queue")
@click.argument("receipts", nargs=-1, required=True, metavar="RECEIPT...")
@json_option
@url_option
def ack(queue: str, receipts: tuple[str, ...], as_json: bool, url: str) -> int:
    """Acknowledge received messages: they are removed."""
    with connect(url) as client:
        results = [
            result
            for start in range(0, len(receipts), RECEIPTS_BATCH_MAX)
            for result in client.ack(queue, receipts[start : start + RECEIPTS_BATCH_MAX])
        ]
    return _report(results, "acknowledged", as_json)


@click.command(short_help="Give messages back after a failed attempt.")
@click.argument("queue")
@click.argument("receipts", nargs=-1, required=True, metavar="RECEIPT...")
@click.option(
    "--delay",
    "delay_ms",
    type=duration_ms,
    metavar="DURATION",
    help="Come again after this.  [default: a back-off by attempt]",
)
@click.option("--reason", help="Kept with the messages as their last error.")
@json_option
@url_option
def nack(
    queue: str, receipts: tuple[str, ...], delay_ms: int | None, reason: str | None, as_json: bool, url: str
) -> int:
    """Give received messages back after a failed attempt: they come again, or fail at their last attempt."""
    with connect(url) as client:
        results = [
            result
            for start in range(0, len(receipts), RECEIPTS_BATCH_MAX)
            for result in client.nack(
                queue, receipts[start : start + RECEIPTS_BATCH_MAX], delay_ms=delay_ms, reason=reason
            )
        ]
    return _report(results, "given back", as_json)


def _report(results: list[ReceiptResult], done: str, as_json: bool) -> int:
    """Print what became of each receipt; a receipt that was refused decides the exit code."""
    refused = [result for result in results if not result.ok]
    if as_json:
        for result in results:
            print_json(result)
    else:
        for result in refused:
            click.echo(f"forq: {result.receipt}: {meaning(result.code or 'internal')}", err=True)
        click.echo(f"{count_of(len(results) - len(refused), 'message')} {done}")
    if not refused:
        return Exit.OK
    return Exit.NOTHING if all(result.code == "not_found.message" for result in refused) else Exit.FAILED
