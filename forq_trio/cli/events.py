"""`forq events`: what happened to messages, and what happens now."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, get_args

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import Exit
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import json_option, url_option
from forq_trio.cli.output import echo, on_terminal, one_line, print_json, terminal_width, visible, wrapped
from forq_trio.cli.tables import shortened
from forq_trio.model import durations
from forq_trio.model.limits import LOG_PAGE_DEFAULT, REASON_LENGTH_MAX, WAIT_MS_MAX
from forq_trio.model.logs.events import EventKind, MessageEvent

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

_INDENT = "  "


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with new events, until Ctrl-C.")
@click.option("--queue", type=QUEUE, help="Only events of this queue.")
@click.option(
    "--after",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="Only events after this id.  [default: all that are stored; with --follow only new ones]",
)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(get_args(EventKind)),
    multiple=True,
    metavar="KIND",
    help="Only events of this kind; may be repeated.",
)
@json_option
@url_option
def events(
    follow: bool, queue: str | None, after: int | None, kinds: tuple[str, ...], as_json: bool, url: str
) -> int:
    """Show what happened to messages, oldest first, a line for each event. The server needs FORQ_EVENTS=on.

    \f
    A line has the time, the kind, the queue and the sequence number of the message, and what there is of its attempt,
    duration, target and reason (on a terminal below it, where it is long): see
    [the kinds of events](docs/reference/events.md).
    Ctrl-C ends `--follow` with exit code 0. Without an event it is 5.
    """
    found = False
    try:
        with connect(url) as client:
            for event in _read(client, queue, after, follow=follow):
                if kinds and event.kind not in kinds:
                    continue
                found = True
                if as_json:
                    print_json(event)
                else:
                    echo(_line(event))
    except KeyboardInterrupt:
        if not follow:
            raise
        return Exit.OK
    return Exit.OK if found else Exit.NOTHING


def _read(
    client: "ForqClient", queue: str | None, after: int | None, *, follow: bool
) -> Iterator[MessageEvent]:
    """The events that are stored now; follow: and then new ones as they come, without end."""
    from forq_trio.client.pages import log_pages

    newest = client.event_range().last
    if after is None:
        after = newest if follow else 0
    until, wait_ms = (None, WAIT_MS_MAX) if follow else (newest, 0)
    read = partial(client.events, until=until, limit=LOG_PAGE_DEFAULT, queue=queue, wait_ms=wait_ms)
    for page in log_pages(read, after, until):
        yield from page.events
    if not newest:
        client.events(limit=1)  # raises the reason if the server stores no events


def _line(event: MessageEvent) -> str:
    """An event as a line. On a terminal it fits: the queue's name is cut in the middle, a long reason is below it."""
    words, reason = _words(event, event.queue), one_line(event.reason or "", REASON_LENGTH_MAX)
    line = f"{words} {reason}".rstrip()
    width = terminal_width() - 1
    if not on_terminal() or len(visible(line)) <= width:
        return line
    if len(words) > width:
        words = visible(_words(event, shortened(event.queue, width // 3)))
        words = words if len(words) <= width else f"{words[: width - 1]}…"
    below = wrapped(visible(reason), width - len(_INDENT)) if reason else []
    return "\n".join((words, *(_INDENT + each for each in below)))


def _words(event: MessageEvent, queue: str) -> str:
    at = datetime.fromtimestamp(event.at / 1_000).strftime("%m-%d %H:%M:%S")
    words = [f"{at} {event.kind:<13} {queue} {event.sequence}"]
    if event.attempt:
        words.append(f"attempt {event.attempt}")
    if event.duration_ms is not None:
        words.append(f"after {durations.about(event.duration_ms)}")
    if event.target is not None:
        words.append(f"to {event.target}")
    return " ".join(words)
