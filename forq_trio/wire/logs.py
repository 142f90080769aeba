"""The two logs as programs read them: their ranges, pages, and what a search in the history may ask for."""

from typing import Annotated

from msgspec import Meta, Struct, field

from forq_trio.model import history
from forq_trio.model.events import MessageEvent
from forq_trio.wire.dead_letters import DeadLetterFilter, MessageIds
from forq_trio.wire.export import ExportedMessage

Outcome = Annotated[history.Outcome, Meta(description="How the message ended.")]


class LogRange(Struct, frozen=True, gc=False):
    """What is kept of a log: ids from `first` to `last`. enabled: what happens now is added."""

    enabled: bool
    first: int
    last: int


class EventRange(LogRange, frozen=True, gc=False):
    """Whether new events are kept, and the ids of the oldest and the newest one; first is last + 1 where none is."""


class HistoryRange(LogRange, frozen=True, gc=False):
    """The history ids that are kept, from `first` to `last`, except those of queues whose history was purged.

    enabled: whether messages that end now are kept. first: last + 1 where none is kept.
    """


class RequeueFinished(Struct, frozen=True, forbid_unknown_fields=True):
    """Finished messages to send again."""

    message_ids: MessageIds = field(name="ids")


class EventPage(Struct, frozen=True, gc=False):
    """Events, oldest first. next: pass it as `after` to go on. first, last: the ids of the events that are kept."""

    events: list[MessageEvent]
    next: int
    first: int
    last: int


class HistoryPage(Struct, frozen=True, gc=False):
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
