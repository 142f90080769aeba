"""Methods for lifecycle events, and for the history as pipelines read it."""

from abc import ABC, abstractmethod

from forq_trio.model.limits import LOG_PAGE_DEFAULT
from forq_trio.model.logs.bodies import EventPage, EventRange, HistoryPage, HistoryRange
from forq_trio.model.logs.events import MessageEvent


class LogMethods(ABC):
    """Both are read page by page behind an id."""

    @abstractmethod
    async def events(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = LOG_PAGE_DEFAULT,
        queue: str | None = None,
        wait_ms: int = 0,
    ) -> EventPage:
        """Lifecycle events behind the id `after`, oldest first: at most `limit` (1-10,000), and at most 4 MiB.

        until: up to this id; None for all. queue: None means all; with a queue a page may be empty although more events
        follow after its `next`. wait_ms: how long to wait for one (0-30,000). Raises OutOfRange, InvalidQueueName,
        EventsOff if none are stored, and EventsGone if those after `after` were removed.
        """

    @abstractmethod
    async def event_range(self) -> EventRange:
        """Whether lifecycle events are kept, and which there are, as of the last commit."""

    @abstractmethod
    async def message_events(self, queue: str, message_id: str) -> list[MessageEvent]:
        """The latest 1,000 events of a message, oldest first, also of one that has gone.

        Raises InvalidQueueName, MalformedMessageId, and MessageNotFound for one that is not stored and has no event.
        """

    @abstractmethod
    async def history(
        self, after: int = 0, *, until: int | None = None, limit: int = 1_000, queue: str | None = None
    ) -> HistoryPage:
        """Finished messages with history ids above `after` (and up to `until`), oldest first, 1-10,000 a page.

        A page has at most 4 MiB. queue: None for all; a token that does not cover all has to name one. The page after
        it begins at its `next`. Raises OutOfRange, InvalidQueueName; HistoryGone where retention has removed messages
        behind `after` already, which is not 0; HistoryOff where the history is off and empty.
        """

    @abstractmethod
    async def history_range(self) -> HistoryRange:
        """Which history ids are kept, and whether messages that end now are, as of the last commit."""
