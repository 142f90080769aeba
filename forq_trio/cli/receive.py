"""`forq receive`: messages as they come, one after the other, acknowledged only after they are printed."""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from forq_trio.cli.attributes import type_of, value_of
from forq_trio.cli.connection import RETRY_SECONDS, connect
from forq_trio.cli.exits import Exit
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import duration_option, json_option, url_option, where_option
from forq_trio.cli.output import ago, echo, echo_styled, on_terminal, print_json, styled
from forq_trio.cli.progress import errors_on_terminal
from forq_trio.client.retry import Retries
from forq_trio.model.errors import ForqError, ForqUnreachable, ServiceError
from forq_trio.model.limits import PRIORITY_DEFAULT, RECEIVE_BATCH_MAX, WAIT_MS_MAX
from forq_trio.model.messages.attributes import described
from forq_trio.model.messages.types import Delivery
from forq_trio.telemetry.words import counted

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

_OUTLIVE_SECONDS = 30.0

Claim = Callable[..., list[Delivery]]
"""The client's `receive`, with all arguments but max_messages and wait_ms."""


@click.command()
@click.argument("queue", type=QUEUE)
@click.option(
    "--max",
    "max_messages",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Stop after this many messages.  [default: 1; with --follow no limit]",
)
@duration_option(
    "--wait", "wait_ms", default="0", show_default=True, help="How long to wait for the first message."
)
@duration_option("--lease", "lease_ms", help="How long the lease of the messages is.  [default: the queue's]")
@click.option("--shuffle", is_flag=True, help="Receive random messages instead of the next ones.")
@where_option
@click.option("--follow", is_flag=True, help="Go on waiting for messages until Ctrl-C.")
@click.option("--ack", is_flag=True, help="Acknowledge messages once they are printed.")
@json_option
@url_option
def receive(
    queue: str,
    max_messages: int | None,
    wait_ms: int,
    lease_ms: int | None,
    shuffle: bool,
    where: dict[str, Any],
    follow: bool,
    ack: bool,
    as_json: bool,
    url: str,
) -> int:
    """Receive messages and print them, with their receipts unless --ack acknowledges them.

    Without --ack a message is ready again when its lease ends, unless `forq ack` or `forq nack` is called with its
    receipt. `forq peek` shows messages without leasing them.

    \f
    Into a pipe each message is a line: its receipt, a tab and the content, or with `--ack` the content alone. After
    the content comes one line feed, whether or not it ends with one itself: contents that have line breaks of their
    own are better read with `--json`, whose objects have `id`, `content`, `receipt`, `attempts`, `sequence`,
    `receivedAt`, `leaseUntil`, `priority`, `firstReceivedAt`, `attributes`, `group` and `maxAttempts`.

    With `--ack` messages are acknowledged once they were written to the pipe: what was fetched and not written is
    given back at once, its attempt not counted. Messages that the pipe still holds when its reader ends (`| head -3`)
    are acknowledged all the same; a program that must not lose any reads the receipts and settles them itself, with
    `forq ack`.
    """
    left = max_messages if max_messages or follow else 1
    printed = 0
    code = Exit.OK
    with (
        connect(url, retry_seconds=_OUTLIVE_SECONDS if follow else RETRY_SECONDS) as client,
        connect(url) if follow else nullcontext(client) as asking,  # it says soon that the server is away
    ):
        claim = partial(asking.receive, queue, lease_ms=lease_ms, shuffle=shuffle, where=where or None)
        for deliveries in _follow(claim, left) if follow else _poll(claim, left or 1, wait_ms):
            if not _hand_over(client, queue, deliveries, ack=ack, as_json=as_json):
                code = Exit.FAILED
            printed += len(deliveries)
    if not printed and errors_on_terminal():
        echo(f"No message of {queue} came." if wait_ms else f"No message of {queue} is ready.", err=True)
    return code if printed else Exit.NOTHING


def _poll(claim: Claim, left: int, wait_ms: int) -> Iterator[list[Delivery]]:
    """Wait for the first messages, then receive those that are ready, up to `left`."""
    deadline = time.monotonic() + wait_ms / 1000
    while left > 0:
        remaining_ms = max(0, round((deadline - time.monotonic()) * 1000))
        deliveries = claim(max_messages=min(left, RECEIVE_BATCH_MAX), wait_ms=min(remaining_ms, WAIT_MS_MAX))
        if deliveries:
            left -= len(deliveries)
            deadline = time.monotonic()
            yield deliveries
        elif time.monotonic() >= deadline:
            return


def _follow(claim: Claim, left: int | None) -> Iterator[list[Delivery]]:
    """Receive messages as they come, up to `left` (None: for ever), also across a restart of the server."""
    retries: Retries | None = None
    while left is None or left > 0:
        wanted = RECEIVE_BATCH_MAX if left is None else min(left, RECEIVE_BATCH_MAX)
        try:
            deliveries = claim(max_messages=wanted, wait_ms=0 if retries else WAIT_MS_MAX)
        except (ForqUnreachable, ServiceError) as problem:
            # It is safe to ask again: the server releases messages that it could not deliver.
            if retries is None:
                retries = Retries(_OUTLIVE_SECONDS)
                echo(f"forq: {problem}; trying again for {_OUTLIVE_SECONDS:g} s", err=True)
            _sleep(retries.next_pause(), problem)
            continue
        if retries is not None:
            echo("forq: the server answers again", err=True)
        retries = None
        if deliveries:
            left = None if left is None else left - len(deliveries)
            yield deliveries


def _hand_over(
    client: "ForqClient", queue: str, deliveries: list[Delivery], *, ack: bool, as_json: bool
) -> bool:
    """Print messages, then acknowledge them if that is wanted; True if all went well.

    If printing is interrupted (Ctrl-C, a closed pipe), the unprinted messages are released at once.
    """
    printed: list[str] = []
    try:
        for delivery in deliveries:
            _print(delivery, receipt=None if ack else delivery.receipt, as_json=as_json)
            printed.append(delivery.receipt)
    finally:
        if len(printed) < len(deliveries):
            _release(client, queue, deliveries[len(printed) :])
        refused = _acknowledge(client, queue, printed) if ack and printed else 0
    if refused:
        echo(
            f"forq: {counted(refused, 'message')} printed above could not be acknowledged, for the lease"
            " had ended: expect the same again",
            err=True,
        )
    return not refused


def _acknowledge(client: "ForqClient", queue: str, receipts: list[str]) -> int:
    """Acknowledge printed messages, also across a restart of the server; returns how many were refused."""
    retries: Retries | None = None
    while True:
        try:
            results = client.ack(queue, receipts)
        except ForqUnreachable as problem:
            retries = retries or Retries(_OUTLIVE_SECONDS)
            _pause(retries, problem)
            continue
        # After a repetition, a receipt that is no longer current may have been settled by the first try.
        return 0 if retries else sum(not result.ok for result in results)


def _pause(retries: Retries, problem: ForqUnreachable) -> None:
    """Wait before a retry after a broken answer; raises `problem` if that has gone on for too long."""
    _sleep(retries.next_pause() if problem.sent else None, problem)


def _sleep(pause: float | None, problem: ForqError) -> None:
    """Wait before a retry; raises `problem` if there is to be none."""
    if pause is None:
        raise problem
    time.sleep(pause)


def _release(client: "ForqClient", queue: str, deliveries: list[Delivery]) -> None:
    try:
        client.release(queue, [delivery.receipt for delivery in deliveries])
    except ForqError as problem:
        echo(f"forq: unprinted messages come again only when their lease ends: {problem}", err=True)


def _print(message: Delivery, *, receipt: str | None, as_json: bool) -> None:
    """Print a message, with its receipt unless it is None."""
    if as_json:
        print_json(message)
    elif on_terminal():
        head = styled(f"#{message.sequence}", bold=True) + styled(
            f"  {message.id}  attempt {message.attempts}  sent {ago(message.received_at)} ago", dim=True
        )
        echo_styled(head)
        for detail in _details(message, receipt):
            echo_styled(styled(detail, dim=True))
        echo(message.content + "\n")
    elif receipt is None:
        echo(message.content)
    else:
        echo(f"{receipt}\t{message.content}")


def _details(message: Delivery, receipt: str | None) -> Iterator[str]:
    """The receipt, and the properties that are not the default, a line each."""
    if receipt is not None:
        yield f"receipt {receipt}"
    if message.key is not None:
        yield f"key {message.key}"
        if message.kind:
            yield f"kind {message.kind}"
    if message.priority != PRIORITY_DEFAULT:
        yield f"priority {message.priority}"
    if message.group is not None:
        yield f"group {message.group}"
    given = described(message.attributes)
    for label, words in given.facts:
        yield f"{label.lower()} {words}"
    for each in given.attributes:
        yield f"{each.name}={value_of(each)}{type_of(each)}"
