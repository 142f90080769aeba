"""`forq result`: the result of a message."""

import time
from typing import TYPE_CHECKING

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import Exit
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import duration_option, json_option, url_option
from forq_trio.cli.output import echo, print_json
from forq_trio.model.limits import WAIT_MS_MAX
from forq_trio.model.results.types import HOW, MessageResult

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient


@click.command()
@click.argument("queue", type=QUEUE)
@click.argument("message_id", metavar="ID")
@duration_option("--wait", "wait_ms", default="0", show_default=True, help="How long to wait for its end.")
@json_option
@url_option
def result(queue: str, message_id: str, wait_ms: int, as_json: bool, url: str) -> int:
    """Print the result of a message, once it has ended.

    A result is what its consumer gave with the ack; a Worker's handler keeps what it returns with `keep_result`.

    \f
    The result goes to stdout as it is. How a message ended that has none goes to stderr: the exit code is 0 if it was
    acknowledged, 1 if it failed or somebody removed it, and 5 if it has not ended, or nothing is known of it. See
    [results](docs/results.md).
    """
    with connect(url) as client:
        found = _wait(client, queue, message_id, wait_ms)
    if as_json:
        print_json(found)
    elif found.result is not None:
        echo(found.result)
    else:
        why = f": {found.last_error}" if found.last_error else ""
        place = f" in {found.queue}" if found.state == "dead" else ""
        echo(f"{message_id} {HOW[found.state]}{place}{why}", err=True)
    if found.state == "waiting":
        return Exit.NOTHING
    return Exit.OK if found.state == "acked" else Exit.FAILED


def _wait(client: "ForqClient", queue: str, message_id: str, wait_ms: int) -> MessageResult:
    """What is known of the message, at the latest after this wait."""
    deadline = time.monotonic() + wait_ms / 1_000
    left_ms = wait_ms
    while True:
        found = client.message_result(queue, message_id, wait_ms=min(left_ms, WAIT_MS_MAX))
        left_ms = max(0, round((deadline - time.monotonic()) * 1_000))
        if found.state != "waiting" or not left_ms:
            return found
