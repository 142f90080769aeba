"""Lists of messages without their contents, and errors by how often they occur. A part of `Broker`."""

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.dead_letters import check_filter
from forq_trio.model import limits
from forq_trio.model.checks import check_range
from forq_trio.model.messages import (
    check_queue_name,
)
from forq_trio.model.places import check_cursor
from forq_trio.model.searches import (
    ErrorGroups,
    ErrorTexts,
    FoundRows,
    ListedState,
    MatchCount,
    MessageFilter,
    MessagePage,
)


class Lists(BrokerBase):
    """A cancelled read is interrupted. Reads raise ReadDeadlineExceeded, StorageUnavailable or Stopping."""

    async def list_messages(
        self,
        queue: str,
        state: ListedState,
        *,
        cursor: str | None = None,
        limit: int = limits.LIST_PAGE_DEFAULT,
    ) -> MessagePage:
        """A page (1-100) of the messages in a state: ready ones in claim order, others newest first.

        cursor: the `next` of the page before. Pages are stable: what is sent meanwhile moves nothing. Raises
        InvalidQueueName, or OutOfRange for a limit or a cursor that cannot be.
        """
        check_queue_name(queue)
        check_range("limit", limit, 1, limits.LIST_PAGE_MAX)
        check_cursor(state, cursor)
        return await self._readers.run(lambda reader: reader.list_messages(queue, state, cursor, limit))

    async def find_messages(
        self,
        queue: str,
        wanted: MessageFilter,
        *,
        before_sequence: int | None = None,
        limit: int = limits.LIST_PAGE_DEFAULT,
        scan_max: int = limits.SEARCH_SCAN_MAX,
    ) -> FoundRows:
        """The messages that match, newest first, 1-100 a page; looks at `scan_max` at most. Raises like `search`."""
        check_queue_name(queue)
        check_range("limit", limit, 1, limits.LIST_PAGE_MAX)
        check_range("scan_max", scan_max, 1, limits.SEARCH_SCAN_MAX)
        wanted = check_filter(wanted)
        return await self._readers.run(
            lambda reader: reader.find_messages(queue, wanted, before_sequence, limit, scan_max), long=True
        )

    async def count_messages(
        self,
        queue: str,
        wanted: MessageFilter,
        *,
        before_sequence: int | None = None,
        scan_max: int = limits.SEARCH_SCAN_MAX,
    ) -> MatchCount:
        """How many of the next `scan_max` messages, newest first, match. Raises like `search`."""
        check_queue_name(queue)
        check_range("scan_max", scan_max, 1, limits.SEARCH_SCAN_MAX)
        wanted = check_filter(wanted)
        return await self._readers.run(
            lambda reader: reader.count_messages(queue, wanted, before_sequence, scan_max), long=True
        )

    async def error_groups(
        self, queue: str, *, before_sequence: int | None = None, scan_max: int = limits.SEARCH_SCAN_MAX
    ) -> ErrorGroups:
        """The newest messages (`scan_max` at most) by why they were dead-lettered and what their errors have in common.

        Raises InvalidQueueName or OutOfRange.
        """
        check_queue_name(queue)
        check_range("scan_max", scan_max, 1, limits.SEARCH_SCAN_MAX)
        return await self._readers.run(
            lambda reader: reader.error_groups(queue, before_sequence, scan_max), long=True
        )

    async def error_texts(self, queue: str, wanted: MessageFilter) -> ErrorTexts:
        """The most frequent errors like `wanted.error_like` in the newest SEARCH_SCAN_MAX messages of a queue.

        Of the filter only `reason` counts besides. Raises like `search`.
        """
        check_queue_name(queue)
        wanted = check_filter(wanted)
        scan_max, most = limits.SEARCH_SCAN_MAX, limits.ERROR_TEXTS_MAX
        return await self._readers.run(
            lambda reader: reader.error_texts(queue, wanted, scan_max, most), long=True
        )
