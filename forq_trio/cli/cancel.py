"""`forq cancel`: remove messages before anybody receives them."""

from typing import TYPE_CHECKING

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.options import json_option, url_option
from forq_trio.cli.results import report_results
from forq_trio.client.types import MoveResult
from forq_trio.model.errors import MalformedMessageId, MessageInFlight, MessageNotFound

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient


@click.command()
@click.argument("queue")
@click.argument("message_ids", nargs=-1, required=True, metavar="ID...")
@json_option
@url_option
def cancel(queue: str, message_ids: tuple[str, ...], as_json: bool, url: str) -> int:
    """Remove messages that nobody has received yet: ready, delayed or held ones.

    What a consumer has is refused. `forq send --json` and `forq peek` say the ids of messages.
    """
    with connect(url) as client:
        results = [_cancel(client, queue, message_id) for message_id in message_ids]
    return report_results(results, "cancelled", as_json)


def _cancel(client: "ForqClient", queue: str, message_id: str) -> MoveResult:
    try:
        client.cancel(queue, message_id)
    except (MessageNotFound, MessageInFlight, MalformedMessageId) as error:
        return MoveResult(message_id, False, code=error.code, message=error.message)
    return MoveResult(message_id, True)
