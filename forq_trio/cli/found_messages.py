"""Shows the results of a search, and one message, for `forq dead` and `forq history`."""

from collections.abc import Sequence, Set
from datetime import datetime

from forq_trio.cli.attributes import type_of, value_of
from forq_trio.cli.output import echo, on_terminal, terminal_width, visible, wrapped
from forq_trio.model.dead_letters.searches import DeadLetterPage
from forq_trio.model.logs.history import FinishedMessage, FinishedPage
from forq_trio.model.messages.attributes import described
from forq_trio.model.messages.types import MessageInfo
from forq_trio.telemetry.words import counted

PREVIEW_LENGTH_MAX = 40


def summary(page: DeadLetterPage | FinishedPage) -> str:
    """A sentence: how many messages were found, how far the search came, and how to continue it."""
    found = f"{counted(len(page.messages), 'message')} found; searched {page.searched:,} of {page.total:,}"
    return found if page.next_before is None else f"{found}, go on with --before {page.next_before}"


def print_message(
    message: MessageInfo | FinishedMessage, shown: Sequence[tuple[str, str]], times: Set[str]
) -> None:
    """Print these members with their labels, then the failures, the attributes and the content.

    times: the members that are epoch ms.
    """
    for label, member in shown:
        value = getattr(message, member)
        if value not in (None, ""):
            print_line(label, moment(value) if member in times else str(value))
    given = described(message.attributes)
    for label, words in given.facts:
        print_line(label.lower(), words)
    for failure in message.failures:
        reason = failure.reason or "(no reason given)"
        print_line(f"attempt {failure.attempt}", f"{moment(failure.at)}  {reason}")
    for each in sorted(given.attributes, key=lambda each: each.name):
        print_line(f"attribute {each.name}{type_of(each)}", value_of(each))
    echo()
    echo(message.content)


def print_line(label: str, value: str) -> None:
    """Print a member of a message; on a terminal in as many lines as it takes, one below the other."""
    head = f"{label:<16} "
    lines = wrapped(visible(value), terminal_width() - len(head)) if on_terminal() else [value]
    echo("\n".join((head + lines[0], *(" " * len(head) + line for line in lines[1:]))))


def moment(ms: int) -> str:
    """A time (epoch ms) in ISO 8601, local."""
    return datetime.fromtimestamp(ms / 1_000).astimezone().isoformat(sep=" ", timespec="milliseconds")
