"""`forq ack`, `nack`, `extend` and `release`: settle received messages by their receipts."""

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import CommandT, duration_option, json_option, url_option
from forq_trio.cli.results import in_batches, report_results
from forq_trio.model.limits import MAX_ATTEMPTS_MAX, RECEIPTS_BATCH_MAX


def _receipts_of_a_queue(command: CommandT) -> CommandT:
    """The two arguments that all of these commands take."""
    receipts = click.argument("receipts", nargs=-1, required=True, metavar="RECEIPT...")
    return click.argument("queue", type=QUEUE)(receipts(command))


@click.command()
@_receipts_of_a_queue
@json_option
@url_option
def ack(queue: str, receipts: tuple[str, ...], as_json: bool, url: str) -> int:
    """Acknowledge received messages: they are removed.

    \f
    A receipt that is no longer current (the lease ended and another consumer has the message, or it is settled) is
    reported.
    """
    with connect(url) as client:
        results = in_batches(receipts, RECEIPTS_BATCH_MAX, lambda batch: client.ack(queue, batch))
    return report_results(results, "acknowledged", as_json)


@click.command()
@_receipts_of_a_queue
@duration_option("--delay", "delay_ms", help="Ready again after this.  [default: a back-off by attempt]")
@click.option("--reason", help="Stored as the messages' last error.")
@click.option("--final", is_flag=True, help="They fail now, however many attempts are left.")
@click.option(
    "--max-attempts",
    type=click.IntRange(1, MAX_ATTEMPTS_MAX),
    metavar="NUMBER",
    help="The messages' own bound on attempts from now on.  [default: it stays]",
)
@json_option
@url_option
def nack(
    queue: str,
    receipts: tuple[str, ...],
    delay_ms: int | None,
    reason: str | None,
    final: bool,
    max_attempts: int | None,
    as_json: bool,
    url: str,
) -> int:
    """Give received messages back after a failed attempt: they are retried, or fail at their last attempt.

    \f
    The back-off by attempt is 1, 5, 15, 30 and 60 seconds unless the queue's settings say otherwise.
    """
    with connect(url) as client:
        results = in_batches(
            receipts,
            RECEIPTS_BATCH_MAX,
            lambda batch: client.nack(
                queue, batch, delay_ms=delay_ms, reason=reason, final=final, max_attempts=max_attempts
            ),
        )
    failed = sum(result.failed for result in results)
    return report_results(results, f"nacked, {failed:,} for the last time" if failed else "nacked", as_json)


@click.command()
@_receipts_of_a_queue
@duration_option("--lease", "lease_ms", help="How long the leases are from now on.  [default: the queue's]")
@json_option
@url_option
def extend(queue: str, receipts: tuple[str, ...], lease_ms: int | None, as_json: bool, url: str) -> int:
    """Make the leases of received messages end later, or sooner. 0: they are ready at once, and the attempt counts.

    \f
    The exit code and `--json` are as for `forq ack`.
    """
    with connect(url) as client:
        results = in_batches(
            receipts, RECEIPTS_BATCH_MAX, lambda batch: client.extend(queue, batch, lease_ms=lease_ms)
        )
    return report_results(results, "extended", as_json)


@click.command()
@_receipts_of_a_queue
@duration_option("--delay", "delay_ms", default="0", show_default=True, help="Ready again after this.")
@json_option
@url_option
def release(queue: str, receipts: tuple[str, ...], delay_ms: int, as_json: bool, url: str) -> int:
    """Give received messages back unprocessed, to their old positions: the attempt is not counted.

    \f
    For work that was not begun: to be done later, or by somebody else. The exit code and `--json` are as for `forq
    ack`.
    """
    with connect(url) as client:
        results = in_batches(
            receipts, RECEIPTS_BATCH_MAX, lambda batch: client.release(queue, batch, delay_ms=delay_ms)
        )
    return report_results(results, "released", as_json)
