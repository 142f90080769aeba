"""`forq queues` and `forq peek`: read queues and messages without changing them."""

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import Exit
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import json_option, shown_option, url_option
from forq_trio.cli.output import ago, echo, one_line
from forq_trio.cli.tables import CellKind, Column, print_list
from forq_trio.model.engine_facts import REFUSAL_WORDS
from forq_trio.model.messages.types import MessageInfo
from forq_trio.model.queues.bodies import QueueInfo

_PREVIEW_LENGTH_MAX = 60
_COUNTS = ("ready", "delayed", "processing", "held", "failed", "waiting")
_SPARE = {"held": 2, "failed": 3, "delayed": 4, "waiting": 5, "processing": 6}
_LISTED = (
    Column("queue", CellKind.NAME),
    *(Column(name, CellKind.NUMBER, _SPARE.get(name)) for name in _COUNTS),
    Column("paused", spare=1),  # its health says so, too
    Column("health", CellKind.VERDICT, least=30),
)
_PEEKED = (
    Column("sequence", CellKind.NUMBER, spare=3),
    Column("id"),
    Column("priority", CellKind.NUMBER, spare=1),
    Column("age", CellKind.NUMBER, spare=4),
    Column("attempts", CellKind.NUMBER, spare=2),
    Column("content", CellKind.TEXT, least=20),
)


@click.command()
@json_option
@url_option
def queues(as_json: bool, url: str) -> None:
    """List all queues: their messages by status, the consumers that wait, and their health.

    \f
    `held` are the messages that wait because their group is at its limit of messages in process. With `--json` an
    object for each queue: `queue`, `isDlq`, `ready`, `delayed`, `processing`, `held`, `failed`, `bytes`, `waiting`,
    `paused`, `level`, `verdict`. [health.md](docs/health.md) explains the verdicts.
    """
    with connect(url) as client:
        found = client.queues()
    print_list(found, as_json, _LISTED, _queue_row, "There is no queue yet; sending a message makes one.")
    refusal = found[0].sends_refused if found and not as_json else None
    if refusal is not None:
        echo(f"{REFUSAL_WORDS[refusal]}. What is stored can be received and acknowledged.", err=True)


def _queue_row(queue: QueueInfo) -> tuple[object, ...]:
    counts = [getattr(queue, name) for name in _COUNTS]
    return (queue.queue, *counts, "yes" if queue.paused else "no", _health(queue))


def _health(queue: QueueInfo) -> str:
    """The queue's verdict. A queue is not called healthy while the whole server refuses something."""
    if queue.sends_refused is not None and queue.level in (None, "fine"):
        return REFUSAL_WORDS[queue.sends_refused]
    return queue.verdict or ""


@click.command()
@click.argument("queue", type=QUEUE)
@shown_option(1)
@click.option("--shuffle", is_flag=True, help="Show some at random instead of the next ones.")
@json_option
@url_option
def peek(queue: str, limit: int, shuffle: bool, as_json: bool, url: str) -> int:
    """Show the messages that will be received next, without receiving them.

    \f
    It counts no attempt, and the messages can still be received. The table shows the beginning of each content;
    `--json` prints all that a message has.
    """
    with connect(url) as client:
        messages = client.peek(queue, limit=limit, shuffle=shuffle)
    print_list(messages, as_json, _PEEKED, _message_row, f"No message of {queue} is ready.")
    return Exit.OK if messages else Exit.NOTHING


def _message_row(message: MessageInfo) -> tuple[object, ...]:
    return (
        message.sequence,
        message.id,
        message.priority,
        ago(message.received_at),
        message.attempts,
        one_line(message.content, _PREVIEW_LENGTH_MAX),
    )
