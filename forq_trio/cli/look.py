"""`forq queues` and `forq peek`: read queues and messages without changing them."""

import time

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import Exit
from forq_trio.cli.options import json_option, url_option
from forq_trio.cli.output import one_line, print_json
from forq_trio.cli.tables import Column, Kind, numbers, print_table
from forq_trio.client.types import QueueInfo
from forq_trio.model import durations
from forq_trio.model.engine_facts import REFUSAL_WORDS

_PREVIEW_LENGTH_MAX = 60
_COUNTS = ("ready", "delayed", "processing", "held", "failed", "waiting")
_PEEKED = (
    Column("sequence", Kind.NUMBER),
    Column("id"),
    Column("priority", Kind.NUMBER, spare=1),
    Column("age", Kind.NUMBER),
    Column("attempts", Kind.NUMBER, spare=2),
    Column("content", Kind.TEXT),
)


@click.command()
@json_option
@url_option
def queues(as_json: bool, url: str) -> int:
    """List all queues: their messages by status, the consumers that wait for one, and how well they are."""
    with connect(url) as client:
        found = client.queues()
    if as_json:
        for each in found:
            print_json(each)
    elif found:
        print_table(
            (Column("queue"), *numbers(*_COUNTS), Column("paused", spare=1), Column("health", Kind.TEXT)),
            [
                (
                    each.queue,
                    *(getattr(each, name) for name in _COUNTS),
                    "yes" if each.paused else "no",
                    _health(each),
                )
                for each in found
            ],
        )
        if (refusal := found[0].sends_refused) is not None:
            click.echo(
                f"{REFUSAL_WORDS[refusal]}. What is stored can be received and acknowledged.", err=True
            )
    else:
        click.echo("There is no queue yet; sending a message makes one.", err=True)
    return Exit.OK


def _health(queue: QueueInfo) -> str:
    """Its verdict; a queue that is fine but for what the whole server refuses is not called healthy."""
    if queue.sends_refused is not None and queue.level in (None, "fine"):
        return REFUSAL_WORDS[queue.sends_refused]
    return queue.verdict or ""


@click.command()
@click.argument("queue")
@click.option(
    "-n",
    "limit",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="How many messages to show.",
)
@click.option("--shuffle", is_flag=True, help="Show some at random instead of the next ones.")
@json_option
@url_option
def peek(queue: str, limit: int, shuffle: bool, as_json: bool, url: str) -> int:
    """Show the messages that will be received next, without receiving them."""
    with connect(url) as client:
        messages = client.peek(queue, limit=limit, shuffle=shuffle)
    now_ms = time.time_ns() // 1_000_000
    if as_json:
        for message in messages:
            print_json(message)
    elif messages:
        print_table(
            _PEEKED,
            [
                (
                    message.sequence,
                    message.id,
                    message.priority,
                    durations.about(now_ms - message.received_at),
                    message.attempts,
                    one_line(message.content, _PREVIEW_LENGTH_MAX),
                )
                for message in messages
            ],
        )
    else:
        click.echo(f"No message of {queue} is ready.", err=True)
    return Exit.OK if messages else Exit.NOTHING
