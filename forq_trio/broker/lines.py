"""Pages as lines of JSON, as the readers make them. HTTP sends the lines, `Broker` decodes them. `Broker.lines`."""

from collections.abc import Mapping

import trio

from forq_trio.broker.known import Known
from forq_trio.broker.leases import check_made_at, find_consumer
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_range
from forq_trio.model.clock import Clock
from forq_trio.model.dead_letters.searches import ExportRows
from forq_trio.model.errors import (
    EventsGone,
    EventsOff,
    ForqError,
    HistoryGone,
    HistoryOff,
    LeaseGone,
    LeaseOutOfOrder,
    MessageNotFound,
    QueueBound,
)
from forq_trio.model.logs.types import LogLines, LogName
from forq_trio.model.messages.types import check_message_id, check_queue_name
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.reader import Reader
from forq_trio.watches import ALL_QUEUES
from forq_trio.writer_actor import WriterActor

_OFF: Mapping[LogName, type[ForqError]] = {"events": EventsOff, "history": HistoryOff}
_GONE: Mapping[LogName, type[ForqError]] = {"events": EventsGone, "history": HistoryGone}


class Lines:
    """Each method returns the result of a method of `Broker` as lines, and raises the same errors."""

    def __init__(self, writer: WriterActor, readers: ReaderPool, clock: Clock, known: Known) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock
        self._known = known

    async def log(
        self, name: LogName, after: int, until: int | None, limit: int, queue: str | None
    ) -> LogLines:
        """The lines of `events` without a wait, or of `history`."""
        check_range("after", after, 0, limits.SEQUENCE_MAX)
        check_range("until", 0 if until is None else until, 0, limits.SEQUENCE_MAX)
        check_range("limit", limit, 1, limits.LOG_PAGE_MAX)
        if queue is not None:
            check_queue_name(queue)
        log = self._known.log(name)
        if log.first > log.last and not log.enabled:
            raise _OFF[name]
        page = await self._read_log(name, after, until, limit, queue)
        if 0 < after < page.first - 1:
            raise _GONE[name]
        return page

    async def _read_log(
        self, name: LogName, after: int, until: int | None, limit: int, queue: str | None
    ) -> LogLines:
        return await self._readers.run(
            lambda reader: reader.log_lines(name, after, until, limit, queue), long=True
        )

    async def events(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = limits.LOG_PAGE_DEFAULT,
        queue: str | None = None,
        wait_ms: int = 0,
    ) -> LogLines:
        """The lines of `events`."""
        check_range("wait_ms", wait_ms, 0, limits.WAIT_MS_MAX)
        page = await self.log("events", after, until, limit, queue)
        if page.lines or not wait_ms:
            return page
        watches = self._writer.announced.events
        with (
            trio.move_on_after(wait_ms / 1_000),
            watches.on(ALL_QUEUES if queue is None else queue) as watcher,
        ):
            if self._known.log("events").last > page.last:
                page = await self._read_log("events", page.next, until, limit, queue)
            while not (page.lines or watches.closed) and (until is None or page.next < until):
                if page.next >= page.last:
                    await watcher.wait()
                watcher.mark()
                page = await self._read_log("events", page.next, until, limit, queue)
        return page

    async def message_events(self, queue: str, message_id: str) -> bytes:
        """The lines of `message_events`."""
        check_queue_name(queue)
        check_message_id(message_id)
        lines = await self._readers.run(lambda reader: reader.message_events(queue, message_id))
        if not lines and await self._readers.run(lambda reader: reader.message(queue, message_id)) is None:
            raise MessageNotFound
        return lines

    async def export(self, queue: str, *, after: int, until: int | None, limit: int) -> ExportRows:
        """The lines of `export`."""
        check_range("limit", limit, 1, limits.EXPORT_PAGE_MAX)
        check_range("after", after, 0, limits.SEQUENCE_MAX)
        last = limits.SEQUENCE_MAX if until is None else until
        check_range("until", last, 0, limits.SEQUENCE_MAX)
        if self._known.settings_of(self._known.check_queue(queue)).table is not None:
            raise QueueBound
        return await self._readers.run(lambda reader: reader.export(queue, after, last, limit), long=True)

    async def lease(
        self, queue: str, name: str, number: int, page: int, pages: int, made_at: int | None
    ) -> tuple[bytes, int | None]:
        """The lines of `lease_page`, and the page to continue with; None after the last one."""
        consumer = find_consumer(self._writer.snapshot(), queue, name)
        check_range("number", number, 1, limits.SEQUENCE_MAX)
        check_range("page", page, 0, limits.SEQUENCE_MAX)
        check_range("pages", pages, 1, limits.CONSUMER_READ_PAGES_MAX)
        if self._clock.now_ms() - consumer.used_at >= limits.CONSUMER_USE_SAVE_MS:
            self._writer.post(commands.NoteConsumerUse(queue, name))
        check_made_at("made_at", made_at)
        consumer.check_lease(number, made_at)
        lease = consumer.readable(number)
        if lease is None:
            raise LeaseGone if number <= consumer.leased else LeaseOutOfOrder("the lease is not made yet")
        count = min(pages, lease.pages - page)
        if count <= 0:
            await trio.lowlevel.checkpoint()
            return b"", None

        def read(reader: Reader) -> tuple[int, bytes]:
            bodies = reader.lease_pages(queue, name, number, page, count)
            return len(bodies), b"".join(bodies)

        found, body = await self._readers.run(read)
        if not found:  # the pages were dropped in the meantime
            raise LeaseGone
        after = page + found
        return body, after if after < lease.pages else None
