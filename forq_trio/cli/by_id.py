"""Commands that do one thing to messages by their ids, `forq COMMAND QUEUE ID...`: each is a row in `BY_ID`.

`commands` imports this module for every command, so it imports the client's types only when one of these is called.
"""

from collections.abc import Callable, Mapping
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient
    from forq_trio.model.dead_letters.bodies import MoveResult

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


class ById(NamedTuple):
    """What is said of a command, and the call for each message."""

    says: str  # in the list of commands
    text: str  # its help, after which comes where ids are found
    more: str  # what only its page in docs/reference says
    done: str  # what has happened to the messages that were not refused
    call: Callable[..., None]  # with the client, the queue, the id, and `options` by name; raises
    options: tuple[Callable[[Any], Any], ...] = ()  # more options, as click decorates with them


def _cancel(client: "ForqClient", queue: str, message_id: str, *, running: bool, reason: str) -> None:
    if reason and not running:
        raise click.UsageError("--reason needs --running")
    client.cancel(queue, message_id, running=running, reason=reason)


BY_ID = {
    "cancel": ById(
        "Remove messages before anybody receives them.",
        """Remove messages that nobody has received yet: ready, delayed or held ones.

        A message in process is refused, but not with --running: then the handler of its worker is cancelled at
        once. What it has done until then stays done.""",
        "The exit code is 1 if a message is in flight, and 5 if all that were refused do not exist. Of one that is "
        "gone it says how it ended, if that is stored.",
        "cancelled",
        _cancel,
        (
            click.option("--running", is_flag=True, help="Also cancel messages that a consumer has."),
            click.option(
                "--reason", default="", help="With --running: what the handler finds in job.removal_reason."
            ),
        ),
    )
}
"""In the order of the list of commands."""


def command_by_id(name: str) -> click.Command:
    """The command of a row."""
    from forq_trio.cli.names import QUEUE
    from forq_trio.cli.options import json_option, url_option

    row = BY_ID[name]

    @click.command(
        name,
        short_help=row.says,
        help=f"{cleandoc(row.text)} `forq send --json` and `forq peek` print the ids of messages.\n\n\f\n{row.more}",
    )
    @click.argument("queue", type=QUEUE)
    @click.argument("message_ids", nargs=-1, required=True, metavar="ID...")
    @_with_options(row)
    @json_option
    @url_option
    def command(queue: str, message_ids: tuple[str, ...], as_json: bool, url: str, **options: object) -> int:
        from forq_trio.cli.connection import connect
        from forq_trio.cli.results import report_results

        with connect(url) as client:
            results = [_result(row, client, queue, message_id, options) for message_id in message_ids]
        return report_results(results, row.done, as_json)

    return command


def _with_options(row: ById) -> Callable[[CommandT], CommandT]:
    """Decorates the function of a command with the options of its row."""

    def decorated(function: CommandT) -> CommandT:
        for each in reversed(row.options):
            function = each(function)
        return function

    return decorated


def _result(
    row: ById, client: "ForqClient", queue: str, message_id: str, options: Mapping[str, object]
) -> "MoveResult":
    from forq_trio.cli.results import end_in_words
    from forq_trio.model.dead_letters.bodies import MoveResult
    from forq_trio.model.errors import MalformedMessageId, MessageInFlight, MessageNotFound

    try:
        row.call(client, queue, message_id, **options)
    except (MessageNotFound, MessageInFlight, MalformedMessageId) as error:
        told = error.message
        if isinstance(error, MessageInFlight) and not options["running"]:
            told = f"{told}; with --running it is cancelled"
        elif isinstance(error, MessageNotFound):
            told = end_in_words(client, queue, message_id) or told
        return MoveResult(message_id, False, code=error.code, message=told)
    return MoveResult(message_id, True)
