"""The two logs as programs read them: their ranges and pages."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.logs.events import MessageEvent
from forq_trio.model.messages.export import ExportedMessage
from forq_trio.model.queries import Query
from forq_trio.model.values import bounded


class EventsQuery(Query, frozen=True, kw_only=True):
    """A page of events, and how long to wait for one."""

    after: Annotated[int, bounded(0, limits.SEQUENCE_MAX, "Only events with an id above this.")] = 0
    until: Annotated[int, bounded(0, limits.SEQUENCE_MAX, "Only events with an id up to this.")] | None = None
    limit: Annotated[int, bounded(1, limits.LOG_PAGE_MAX, "How many events at most.")] = limits.LOG_PAGE_MAX
    queue: Annotated[str, Meta(description="Only events of this queue.")] | None = None
    wait_ms: Annotated[int, bounded(0, limits.WAIT_MS_MAX, "How long to wait for an event.")] = 0


class HistoryPageQuery(Query, frozen=True, kw_only=True):
    """A page of finished messages."""

    after: Annotated[int, bounded(0, limits.SEQUENCE_MAX, "Only those with a history id above this.")] = 0
    until: (
        Annotated[int, bounded(0, limits.SEQUENCE_MAX, "Only those with a history id up to this.")] | None
    ) = None
    limit: Annotated[int, bounded(1, limits.LOG_PAGE_MAX, "How many messages at most.")] = limits.LOG_PAGE_MAX
    queue: Annotated[str, Meta(description="Only those of this queue.")] | None = None


class LogRange(Struct, frozen=True, gc=False):
    """What is kept of a log."""

    enabled: bool  # what happens now is added
    first: int  # the oldest id
    last: int  # the newest id


class EventRange(LogRange, frozen=True, gc=False):
    """The events that are stored; without any, `first` is `last` + 1."""


class HistoryRange(LogRange, frozen=True, gc=False):
    """The history ids that are stored, except those of queues whose history was purged.

    Without any, `first` is `last` + 1.
    """


class EventPage(Struct, frozen=True, gc=False):
    """Events, oldest first."""

    events: list[MessageEvent]
    next: int  # pass it as `after` to go on
    first: int  # this and the next: the ids of the events that are kept
    last: int


class HistoryPage(Struct, frozen=True, gc=False):
    """Finished messages, oldest first."""

    messages: list[ExportedMessage]
    next: int  # the `after` of the next page
    first: int  # this and the next: as in HistoryRange
    last: int
