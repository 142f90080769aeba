"""Lifecycle events: pages of them, waits for new ones, and their retention. A part of `Broker`."""

import trio

from forq_trio.model import limits
from forq_trio.model.checks import check_range
from forq_trio.model.commands import Removed, TrimEvents
from forq_trio.model.errors import EventsGone, EventsOff, MessageNotFound
from forq_trio.model.events import EventLines, EventLog
from forq_trio.model.messages import check_message_id, check_queue_name
from forq_trio.readers.pool import ReaderPool
from forq_trio.waiters import ALL_QUEUES
from forq_trio.wire.events import EventPage, EventRange, MessageEvent, read_lines
from forq_trio.writer_actor import WriterActor


class Events:
    """A cancelled read is interrupted. Reads raise ReadDeadlineExceeded, StorageUnavailable or Stopping."""

    _writer: WriterActor
    _readers: ReaderPool

    async def events(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = limits.EVENTS_PAGE_DEFAULT,
        queue: str | None = None,
        wait_ms: int = 0,
    ) -> EventPage:
        """Lifecycle events behind the id `after`, oldest first: at most `limit` (1-10,000), and at most 4 MiB.

        until: up to this id; None for all. queue: None means all; of one alone a page may be empty although more
        follow behind its `next`. wait_ms: how long to wait for one (0-30,000). Raises OutOfRange, InvalidQueueName,
        EventsOff where none are kept, and EventsGone where those behind `after` were removed.
        """
        page = await self.event_lines(after, until=until, limit=limit, queue=queue, wait_ms=wait_ms)
        return EventPage(read_lines(page.lines), page.next, page.first, page.last)

    async def event_lines(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = limits.EVENTS_PAGE_DEFAULT,
        queue: str | None = None,
        wait_ms: int = 0,
    ) -> EventLines:
        """What `events` returns, as the reader made it."""
        check_range("after", after, 0, limits.SEQUENCE_MAX)
        check_range("until", 0 if until is None else until, 0, limits.SEQUENCE_MAX)
        check_range("limit", limit, 1, limits.EVENTS_PAGE_MAX)
        check_range("wait_ms", wait_ms, 0, limits.WAIT_MS_MAX)
        if queue is not None:
            check_queue_name(queue)
        log = self.event_log()
        if not log.enabled and not log.last:
            raise EventsOff
        page = await self._read(after, until, limit, queue)
        if 0 < after < page.first - 1:
            raise EventsGone
        if page.lines or not wait_ms:
            return page
        watches = self._writer.event_watches
        with trio.move_on_after(wait_ms / 1_000), watches.on(ALL_QUEUES if queue is None else queue) as watch:
            stored = watch.event
            if self.event_log().last > page.last:
                page = await self._read(page.next, until, limit, queue)
            while not (page.lines or watches.closed) and (until is None or page.next < until):
                if page.next >= page.last:
                    await stored.wait()
                stored = watch.event
                page = await self._read(page.next, until, limit, queue)
        return page

    async def _read(self, after: int, until: int | None, limit: int, queue: str | None) -> EventLines:
        return await self._readers.run(lambda reader: reader.events(after, until, limit, queue), long=True)

    async def event_range(self) -> EventRange:
        """Whether lifecycle events are kept, and which there are: from the cache, without a query."""
        await trio.lowlevel.checkpoint()
        log = self.event_log()
        return EventRange(log.enabled, log.first, log.last)

    def event_log(self) -> EventLog:
        """Which events there are, as of the last commit; from the cache, without waiting."""
        return self._writer.snapshot().event_log

    async def message_events(self, queue: str, message_id: str) -> list[MessageEvent]:
        """The latest 1,000 events of a message, oldest first, also of one that has gone.

        Raises InvalidQueueName, MalformedMessageId, and MessageNotFound for one that is not stored and has no event.
        """
        return read_lines(await self.message_event_lines(queue, message_id))

    async def message_event_lines(self, queue: str, message_id: str) -> bytes:
        """What `message_events` returns, as the reader made it."""
        check_queue_name(queue)
        check_message_id(message_id)
        lines = await self._readers.run(lambda reader: reader.message_events(queue, message_id))
        if not lines and await self._readers.run(lambda reader: reader.message(queue, message_id)) is None:
            raise MessageNotFound
        return lines

    async def trim_events(self, before_ms: int, bytes_max: int) -> Removed:
        """Remove some of the oldest events: see `commands.TrimEvents`. Sends no command where one or none is kept."""
        log = self.event_log()
        if log.first >= log.last:
            await trio.lowlevel.checkpoint()
            return Removed(0, more=False)
        return await self._writer.execute(TrimEvents(before_ms, bytes_max))
