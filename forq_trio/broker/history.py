"""The history of finished messages: read page by page, searched, purged. A part of `Broker`."""

from collections.abc import Callable

import msgspec
import trio

from forq_trio.broker.dead_letters import DeadLetters, check_filter
from forq_trio.broker.parts import purge_in_steps
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_range
from forq_trio.model.commands import Removed
from forq_trio.model.errors import HistoryGone, HistoryOff, MessageNotFound
from forq_trio.model.history import FinishedMessage, FoundFinished, HistoryCounts, HistoryLines, Outcome
from forq_trio.model.messages import MessageFilter, check_message_id, check_queue_name
from forq_trio.wire.export import ExportedMessage
from forq_trio.wire.history import FinishedPage, HistoryFilter, HistoryPage, HistoryRange

_decode = msgspec.json.Decoder(ExportedMessage).decode_lines


class History(DeadLetters):
    """A cancelled read is interrupted. Reads raise ReadDeadlineExceeded, StorageUnavailable or Stopping."""

    async def history(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = limits.HISTORY_PAGE_DEFAULT,
        queue: str | None = None,
    ) -> HistoryPage:
        """Finished messages with history ids above `after` (and up to `until`), oldest first, 1-10,000 a page.

        A page has at most 4 MiB. queue: None for all. The page after it begins at its `next`. Raises OutOfRange,
        InvalidQueueName; HistoryGone where retention has removed messages behind `after` already, which is not 0;
        HistoryOff where the history is off and empty.
        """
        page = await self.history_lines(after, until, limit, queue)
        return HistoryPage(_decode(page.lines), page.next, *page.ends)

    async def history_lines(
        self, after: int, until: int | None, limit: int, queue: str | None
    ) -> HistoryLines:
        """`history` as NDJSON."""
        check_range("after", after, 0, limits.SEQUENCE_MAX)
        if until is not None:
            check_range("until", until, 0, limits.SEQUENCE_MAX)
        check_range("limit", limit, 1, limits.HISTORY_PAGE_MAX)
        if queue is not None:
            check_queue_name(queue)
        first, last = self._writer.snapshot().history_ends
        if first > last and not self.keeps_history:
            raise HistoryOff
        page = await self._readers.run(lambda reader: reader.history(after, until, limit, queue), long=True)
        if 0 < after < page.ends.first - 1:
            raise HistoryGone
        return page

    @property
    def keeps_history(self) -> bool:
        """Whether messages that end now are kept."""
        return self._writer.snapshot().keeps_history

    async def history_range(self) -> HistoryRange:
        """Which history ids are kept, as of the last commit."""
        await trio.lowlevel.checkpoint()
        return HistoryRange(self.keeps_history, *self._writer.snapshot().history_ends)

    def history_of(self, queue: str | None) -> HistoryCounts:
        """How much of a queue's history is kept; None: of all. From the cache, without a query."""
        return self._writer.snapshot().history_of(queue)

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
        found = await self.find_finished(
            queue, self._times_of(wanted), outcome=outcome, before=before, limit=limit
        )
        return FinishedPage(found.messages, found.searched, found.total, found.next_before)

    async def find_finished(
        self,
        queue: str,
        wanted: MessageFilter,
        *,
        outcome: Outcome | None = None,
        before: int | None = None,
        limit: int = limits.SEARCH_PAGE_DEFAULT,
    ) -> FoundFinished:
        """`search_history`, by times."""
        check_queue_name(queue)
        check_range("limit", limit, 1, limits.SEARCH_PAGE_MAX)
        wanted = check_filter(wanted)
        scan_max = limits.SEARCH_SCAN_MAX
        return await self._readers.run(
            lambda reader: reader.find_finished(queue, wanted, outcome, before, limit, scan_max), long=True
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
        return await purge_in_steps(self._writer, commands.PurgeHistory, check_queue_name(queue), on_step)

    async def trim_history(self, finished_before: int, bytes_max: int) -> Removed:
        """Remove some of the oldest: see `commands.TrimHistory`."""
        return await self._writer.execute(commands.TrimHistory(finished_before, bytes_max))
