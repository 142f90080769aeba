"""The two logs as programs read them: their ranges and pages."""

from msgspec import Struct

from forq_trio.model.events import MessageEvent
from forq_trio.wire.export import ExportedMessage


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
