"""The options of `forq send` about the message itself, as the members of the client's NewMessage."""

from typing import cast

import click

from forq_trio.cli.options import CommandT, duration_ms, moment_ms, pair
from forq_trio.client.types import MessageOptions
from forq_trio.model.limits import PRIORITY_DEFAULT, PRIORITY_MAX


def _distinct(
    context: click.Context, parameter: click.Parameter, pairs: tuple[tuple[str, str], ...]
) -> dict[str, str] | None:
    """Pairs as a mapping; None without any."""
    attributes = dict(pairs)
    if len(attributes) < len(pairs):
        raise click.BadParameter("two have the same name", context, parameter)
    return attributes or None


_OPTIONS = (
    click.option(
        "--process-after",
        type=moment_ms,
        metavar="TIME",
        help="Not to be received before this (ISO 8601, or epoch ms).",
    ),
    click.option(
        "--delay",
        "delay_ms",
        type=duration_ms,
        metavar="DURATION",
        help="Not to be received before this long from now.  [default: the queue's]",
    ),
    click.option(
        "--ttl",
        "ttl_ms",
        type=duration_ms,
        metavar="DURATION",
        help="How long the message lives once it is due.  [default: the queue's]",
    ),
    click.option(
        "--priority",
        type=click.IntRange(0, PRIORITY_MAX),
        help=f"Messages of a higher priority come first.  [default: {PRIORITY_DEFAULT}]",
    ),
    click.option(
        "--group", metavar="NAME", help="Messages of one group keep their order, and groups take turns."
    ),
    click.option(
        "--attribute",
        "attributes",
        type=pair,
        multiple=True,
        callback=_distinct,
        metavar="NAME=VALUE",
        help="An attribute of the message; may be repeated.",
    ),
    click.option(
        "--dedup-id",
        "deduplication_id",
        metavar="ID",
        help="Send nothing if a message with this id was sent within the window.",
    ),
    click.option(
        "--dedup-window",
        "deduplication_window_ms",
        type=duration_ms,
        metavar="DURATION",
        help="How long --dedup-id is remembered.  [default: the queue's]",
    ),
    click.option(
        "--max-attempts",
        type=click.IntRange(min=1),
        help="Deliveries before the message fails.  [default: the queue's]",
    ),
    click.option(
        "--dead-letter-queue",
        metavar="NAME",
        help="Where the message goes when it fails or expires; '' deletes it.  [default: the queue's]",
    ),
)


def message_options(command: CommandT) -> CommandT:
    """Add all options about the message."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given(options: MessageOptions) -> MessageOptions:
    """The options that were given on the command line."""
    return cast("MessageOptions", {name: value for name, value in options.items() if value is not None})
