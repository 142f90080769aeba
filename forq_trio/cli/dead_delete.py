"""`forq dead delete`: removing dead letters for good, those with given ids or all that match."""

from functools import partial
from typing import Any

import click

from forq_trio.cli.confirm import confirm_deletion
from forq_trio.cli.connection import connect
from forq_trio.cli.dead_filter import chosen_by_filter, dead_letter_options, filter_of
from forq_trio.cli.dead_redrives import RATE, report_task, run_task
from forq_trio.cli.interrupts import Interrupts
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import json_option, url_option, yes_option
from forq_trio.cli.results import in_batches, report_results
from forq_trio.model.limits import MOVE_BATCH_MAX
from forq_trio.telemetry.words import counted


@click.command(short_help="Remove dead letters for good.")
@click.argument("queue", type=QUEUE)
@click.argument("message_ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="Remove all of them.")
@dead_letter_options
@click.option(
    "--rate", "rate_per_second", type=RATE, metavar="NUMBER", help="Remove at most this many a second."
)
@click.option("--dry-run", is_flag=True, help="Only count those that would be removed.")
@yes_option
@json_option
@url_option
def delete(
    queue: str,
    message_ids: tuple[str, ...],
    everything: bool,
    rate_per_second: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    url: str,
    **chosen: Any,
) -> int:
    """Remove dead letters for good: those with the given IDs, those that match, or --all.

    Asks first; without a terminal it needs --yes. Ctrl-C stops.
    """
    wanted = filter_of(**chosen)
    by_filter = chosen_by_filter(message_ids, everything, wanted)
    if message_ids and (dry_run or rate_per_second is not None):
        raise click.UsageError("--rate and --dry-run are for --all and for those that match")
    if not (yes or dry_run):
        which = "all messages that match" if by_filter else counted(len(message_ids), "message")
        confirm_deletion(lambda: which, doing="deleting")
    with connect(url) as client:
        if not by_filter:
            delete_named = partial(client.delete_dead_letters, queue)
            return report_results(in_batches(message_ids, MOVE_BATCH_MAX, delete_named), "removed", as_json)
        options: Any = {"rate_per_second": rate_per_second, "dry_run": dry_run}
        start = partial(client.start_deletion, queue, wanted, **options)
        with Interrupts() as interrupts:
            return report_task(run_task(client, interrupts, queue, start), as_json)
