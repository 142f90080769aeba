"""The two logs (lifecycle events, history): pages, waits for events, searches, purges. A part of `Broker`."""

from collections.abc import Callable

import trio

from forq_trio.broker.dead_letters import DeadLetters
from forq_trio.broker.parts import purge_in_steps
from forq_trio.model import limits
from forq_trio.model.commands import PurgeHistory
from forq_trio.model.errors import MessageNotFound
from forq_trio.model.logs.bodies import EventPage, EventRange, HistoryPage, HistoryRange
from forq_trio.model.logs.events import MessageEvent, read_events
from forq_trio.model.logs.history import FinishedMessage, FinishedPage
from forq_trio.model.logs.history_bodies import HistoryFilter
from forq_trio.model.logs.history_methods import HistoryMethods
from forq_trio.model.logs.methods import LogMethods
from forq_trio.model.messages.export import read_exported
from forq_trio.model.messages.types import check_message_id, check_queue_name


class Logs(LogMethods, HistoryMethods, DeadLetters):
    """All reads raise ReadDeadlineExceeded, StorageUnavailable or Stopping; a cancelled read is interrupted."""

    async def events(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = limits.LOG_PAGE_DEFAULT,
        queue: str | None = None,
        wait_ms: int = 0,
    ) -> EventPage:
        page = await self.lines.events(after, until=until, limit=limit, queue=queue, wait_ms=wait_ms)
        return EventPage(read_events(page.lines), *page[1:])

    async def event_range(self) -> EventRange:
        await trio.lowlevel.checkpoint()
        return EventRange(*self.known.log("events")[:3])

    async def message_events(self, queue: str, message_id: str) -> list[MessageEvent]:
        return read_events(await self.lines.message_events(queue, message_id))

    async def history(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = limits.LOG_PAGE_DEFAULT,
        queue: str | None = None,
    ) -> HistoryPage:
        page = await self.lines.log("history", after, until, limit, queue)
        return HistoryPage(read_exported(page.lines), *page[1:])

    async def history_range(self) -> HistoryRange:
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
        outcome = None if wanted is None else wanted.outcome
        return await self.lists.find_finished(
            queue, self.lists.times_of(wanted), outcome=outcome, before=before, limit=limit
        )

    async def finished_message(self, queue: str, message_id: str) -> FinishedMessage:
        check_queue_name(queue)
        wanted = check_message_id(message_id)
        found = await self._readers.run(lambda reader: reader.finished(queue, wanted))
        if found is None:
            raise MessageNotFound
        return found

    async def purge_history(self, queue: str, *, on_step: Callable[[int], None] = lambda _: None) -> int:
        return await purge_in_steps(self._writer, PurgeHistory, check_queue_name(queue), on_step)
