"""The history of finished messages: pages for programs, searches for people."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model import history as model
from forq_trio.model.history import FinishedMessage as FinishedMessage
from forq_trio.model.values import Count
from forq_trio.wire.dead_letters import DeadLetterFilter
from forq_trio.wire.export import ExportedMessage

Outcome = Annotated[model.Outcome, Meta(description="How the message ended.")]


class HistoryRange(Struct, frozen=True, rename="camel"):
    """The history ids that are kept, from `first` to `last`, except those of queues whose history was purged.

    enabled: whether messages that end now are kept. first: last + 1 where none is kept.
    """

    enabled: bool
    first: int
    last: int


class HistoryPage(Struct, frozen=True, rename="camel"):
    """Finished messages, oldest first. next: the `after` of the next page. first, last: as in HistoryRange."""

    messages: list[ExportedMessage]
    next: int
    first: int
    last: int


class HistoryFilter(
    DeadLetterFilter, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Which finished messages match; an empty filter matches all. Ages are those of the end.

    outcome: how it ended. reason: why it was discarded, exactly. attributes: those it must have, with these values.
    text: part of the content, exactly. error: the last error, exactly; "" for those without one.
    errorLike: the last error, numbers, ids and addresses aside.
    """

    outcome: Outcome | None = None


class FinishedPage(Struct, frozen=True, rename="camel"):
    """The messages of the page that match, newest first, after reading `searched` of the queue's `total` ones.

    nextBefore: the `before` of the next page; null when all were searched.
    """

    messages: list[FinishedMessage]
    searched: Count
    total: Count
    next_before: int | None
