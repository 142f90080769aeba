"""The two logs, lifecycle events and the history: pages, waits for events, searches, purges. A part of `Broker`."""

from collections.abc import Callable

import trio

from forq_trio.broker.dead_letters import DeadLetters
from forq_trio.broker.parts import purge_in_steps
from forq_trio.model import limits
from forq_trio.model.commands import PurgeHistory
from forq_trio.model.errors import MessageNotFound
from forq_trio.model.events import MessageEvent, read_events
from forq_trio.model.history import FinishedMessage, FinishedPage
from forq_trio.model.messages import check_message_id, check_queue_name
from forq_trio.wire.export import read_exported
from forq_trio.wire.history import HistoryFilter
from forq_trio.wire.logs import EventPage, EventRange, HistoryPage, HistoryRange


class Logs(DeadLetters):
    """A cancelled read is interrupted. Reads raise ReadDeadlineExceeded, StorageUnavailable or Stopping."""

    async def events(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = limits.LOG_PAGE_DEFAULT,
        queue: str | None = None,
        wait_ms: int = 0,
    ) -> EventPage:
        """Lifecycle events behind the id `after`, oldest first: at most `limit` (1-10,000), and at most 4 MiB.

        until: up to this id; None for all. queue: None means all; with a queue a page may be empty although more events
        follow after its `next`. wait_ms: how long to wait for one (0-30,000). Raises OutOfRange, InvalidQueueName,
        EventsOff if none are stored, and EventsGone if those after `after` were removed.
        """
        page = await self.lines.events(after, until=until, limit=limit, queue=queue, wait_ms=wait_ms)
        return EventPage(read_events(page.lines), *page[1:])

    async def event_range(self) -> EventRange:
        """Whether lifecycle events are kept, and which there are: from the cache, without a query."""
        await trio.lowlevel.checkpoint()
        return EventRange(*self.known.log("events")[:3])

    async def message_events(self, queue: str, message_id: str) -> list[MessageEvent]:
        """The latest 1,000 events of a message, oldest first, also of one that has gone.

        Raises InvalidQueueName, MalformedMessageId, and MessageNotFound for one that is not stored and has no event.
        """
        return read_events(await self.lines.message_events(queue, message_id))

    async def history(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = limits.LOG_PAGE_DEFAULT,
        queue: str | None = None,
    ) -> HistoryPage:
        """Finished messages with history ids above `after` (and up to `until`), oldest first, 1-10,000 a page.

        A page has at most 4 MiB. queue: None for all. The page after it begins at its `next`. Raises OutOfRange,
        InvalidQueueName; HistoryGone where retention has removed messages behind `after` already, which is not 0;
        HistoryOff where the history is off and empty.
        """
        page = await self.lines.log("history", after, until, limit, queue)
        return HistoryPage(read_exported(page.lines), *page[1:])

    async def history_range(self) -> HistoryRange:
        """Which history ids are kept, as of the last commit."""
        await trio.lowlevel.checkpoint()
        return HistoryRange(*self.known.log("history")[:3])

    async def search_history(
        self,
        queue: str,
        wanted: HistoryFilter | None = None,
        *,
        before: int | None = None,
        limit: int = limits.SEARCH_PAGE_DEFAULT,
    ) -> FinishedPage:
        """A page (1-100) of finished messages of a queue that match, newest first; reads 10,000 messages at most.

        before: only those with a history id below it. Raises InvalidQueueName, OutOfRange, InvalidAttributes,
        InvalidContent.
        """
        outcome = None if wanted is None else wanted.outcome
        return await self.lists.find_finished(
            queue, self.lists.times_of(wanted), outcome=outcome, before=before, limit=limit
        )

    async def finished_message(self, queue: str, message_id: str) -> FinishedMessage:
        """One finished message of a queue. Raises InvalidQueueName, MalformedMessageId, MessageNotFound."""
        check_queue_name(queue)
        wanted = check_message_id(message_id)
        found = await self._readers.run(lambda reader: reader.finished(queue, wanted))
        if found is None:
            raise MessageNotFound
        return found

    async def purge_history(self, queue: str, *, on_step: Callable[[int], None] = lambda _: None) -> int:
        """Remove all messages of a queue from the history that ended before this call; returns how many.

        on_step: called after each step with how many were removed so far. Done in steps, between which other calls are
        served; cancelled, it stops after a step. Raises InvalidQueueName.
        """
        return await purge_in_steps(self._writer, PurgeHistory, check_queue_name(queue), on_step)
