"""Lists and searches for the admin UI and jobs: by times, without contents, or by sequence number. `Broker.lists`."""

from collections.abc import Mapping, Sequence

from forq_trio.model import limits
from forq_trio.model.checks import check_attributes, check_range, check_text
from forq_trio.model.clock import Clock
from forq_trio.model.dead_letters.bodies import DeadLetterFilter
from forq_trio.model.dead_letters.places import check_cursor
from forq_trio.model.dead_letters.searches import (
    DeadLetterPage,
    ErrorGroups,
    ErrorTexts,
    FoundRows,
    ListedState,
    MatchCount,
    MessageFilter,
    MessagePage,
)
from forq_trio.model.logs.history import FinishedPage, Outcome
from forq_trio.model.member_names import json_name
from forq_trio.model.messages.types import Receipt, check_queue_name
from forq_trio.readers.pool import ReaderPool


class Lists:
    """All reads raise ReadDeadlineExceeded, StorageUnavailable or Stopping; a cancelled read is interrupted."""

    def __init__(self, readers: ReaderPool, clock: Clock) -> None:
        self._readers = readers
        self._clock = clock

    def times_of(self, wanted: DeadLetterFilter | None) -> MessageFilter:
        """The filter of a call, with ages converted to times. Raises OutOfRange."""
        if wanted is None:
            return MessageFilter()
        now_ms = self._clock.now_ms()
        for name, age_ms in (("min_age_ms", wanted.min_age_ms), ("max_age_ms", wanted.max_age_ms)):
            if age_ms is not None:
                check_range(name, age_ms, 0, limits.SEARCH_AGE_MS_MAX, f"filter.{json_name(name)}")
        return MessageFilter(
            reason=wanted.reason,
            since=None if wanted.max_age_ms is None else now_ms - wanted.max_age_ms,
            until=None if wanted.min_age_ms is None else now_ms - wanted.min_age_ms,
            attributes=wanted.attributes,
            text=wanted.text,
            error=wanted.error,
            error_like=wanted.error_like,
        )

    async def search(
        self,
        queue: str,
        wanted: MessageFilter | None = None,
        *,
        before_sequence: int | None = None,
        limit: int = limits.SEARCH_PAGE_DEFAULT,
        scan_max: int = limits.SEARCH_SCAN_MAX,
    ) -> DeadLetterPage:
        """The messages of any queue that match, newest first, 1-100 per page; reads at most `scan_max` messages.

        Raises InvalidQueueName, and the errors of `check_filter` and of reads.
        """
        check_queue_name(queue)
        _check_before("before_sequence", before_sequence)
        check_range("limit", limit, 1, limits.SEARCH_PAGE_MAX)
        check_range("scan_max", scan_max, 1, limits.SEARCH_SCAN_MAX)
        wanted = check_filter(wanted or MessageFilter())
        return await self._readers.run(
            lambda reader: reader.search(queue, wanted, before_sequence, limit, scan_max), long=True
        )

    async def list_messages(
        self,
        queue: str,
        state: ListedState,
        *,
        cursor: str | None = None,
        limit: int = limits.LIST_PAGE_DEFAULT,
    ) -> MessagePage:
        """A page (1-100) of the messages in a state: ready ones in claim order, others newest first.

        cursor: the `next` of the previous page. Messages that are sent in the meantime do not shift the pages.
        Raises InvalidQueueName, or OutOfRange for an invalid limit or cursor.
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
        """The messages that match, newest first, 1-100 per page; reads at most `scan_max`. Raises like `search`."""
        check_queue_name(queue)
        _check_before("before_sequence", before_sequence)
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
        _check_before("before_sequence", before_sequence)
        check_range("scan_max", scan_max, 1, limits.SEARCH_SCAN_MAX)
        wanted = check_filter(wanted)
        return await self._readers.run(
            lambda reader: reader.count_messages(queue, wanted, before_sequence, scan_max), long=True
        )

    async def error_groups(
        self, queue: str, *, before_sequence: int | None = None, scan_max: int = limits.SEARCH_SCAN_MAX
    ) -> ErrorGroups:
        """The newest messages (at most `scan_max`), grouped by reason and by what their errors have in common.

        Raises InvalidQueueName or OutOfRange.
        """
        check_queue_name(queue)
        _check_before("before_sequence", before_sequence)
        check_range("scan_max", scan_max, 1, limits.SEARCH_SCAN_MAX)
        return await self._readers.run(
            lambda reader: reader.error_groups(queue, before_sequence, scan_max), long=True
        )

    async def error_texts(self, queue: str, wanted: MessageFilter) -> ErrorTexts:
        """The most frequent errors like `wanted.error_like` in the newest SEARCH_SCAN_MAX messages of a queue.

        The only other member of the filter that counts is `reason`. Raises like `search`.
        """
        check_queue_name(queue)
        wanted = check_filter(wanted)
        scan_max, most = limits.SEARCH_SCAN_MAX, limits.ERROR_TEXTS_MAX
        return await self._readers.run(
            lambda reader: reader.error_texts(queue, wanted, scan_max, most), long=True
        )

    async def find_finished(
        self,
        queue: str,
        wanted: MessageFilter,
        *,
        outcome: Outcome | None = None,
        before: int | None = None,
        limit: int = limits.SEARCH_PAGE_DEFAULT,
    ) -> FinishedPage:
        """The finished messages that match, like `Broker.search_history`, by times."""
        check_queue_name(queue)
        _check_before("before", before)
        check_range("limit", limit, 1, limits.SEARCH_PAGE_MAX)
        wanted = check_filter(wanted)
        scan_max = limits.SEARCH_SCAN_MAX
        return await self._readers.run(
            lambda reader: reader.find_finished(queue, wanted, outcome, before, limit, scan_max), long=True
        )

    async def count_set_aside(self) -> tuple[int, int]:
        """How many messages of forq.send are set aside, at most SENT_SET_ASIDE_MAX, and the highest id (0 for none)."""
        return await self._readers.run(lambda reader: reader.count_set_aside())

    async def sent_figures(self) -> tuple[int, int, int | None]:
        """Of forq.send: how many messages are set aside, how many wait (SENT_COUNTED_MAX at most), the lowest id."""
        return await self._readers.run(lambda reader: reader.sent_figures(limits.SENT_COUNTED_MAX))

    async def count_keys(self, queue: str) -> Mapping[str, int]:
        """How many pending messages with a key a queue has, by kind; counts at most KEYS_COUNTED_MAX."""
        check_queue_name(queue)
        most = limits.KEYS_COUNTED_MAX
        return await self._readers.run(lambda reader: reader.count_keys(queue, most))

    async def present(self, queue: str, sequences: Sequence[int]) -> frozenset[int]:
        """Which of these messages (sequence numbers, at most 200) are in `queue`. Raises OutOfRange."""
        check_range("number of sequences", len(sequences), 0, limits.PRESENT_MAX, "seq")
        queues = await self._readers.run(lambda reader: reader.queues_of(sequences))
        return frozenset(sequence for sequence, where in queues.items() if where == queue)

    async def queue_of(self, sequence: int) -> str | None:
        """The queue of the message with this sequence number; None if there is none."""
        return (await self._readers.run(lambda reader: reader.queues_of([sequence]))).get(sequence)

    async def queues_of(self, receipts: Sequence[str]) -> list[str | None]:
        """The queue of each receipt's message; None if the message does not exist. Raises MalformedReceipt."""
        sequences = [receipt.seq for receipt in map(Receipt.parse, receipts)]
        queues = await self._readers.run(lambda reader: reader.queues_of(sequences))
        return [queues.get(sequence) for sequence in sequences]


def check_filter(wanted: MessageFilter) -> MessageFilter:
    """Return `wanted`, or raise OutOfRange, InvalidAttributes or InvalidContent if no message could match it."""
    if wanted.reason is not None:
        check_text("reason", wanted.reason, 0, limits.REASON_LENGTH_MAX, "filter.reason")
    if wanted.text is not None:
        check_text("text", wanted.text, 0, limits.SEARCH_TEXT_LENGTH_MAX, "filter.text")
    if wanted.error is not None:
        check_text("error", wanted.error, 0, limits.REASON_LENGTH_MAX, "filter.error")
    if wanted.error_like is not None:
        check_text("error_like", wanted.error_like, 1, limits.REASON_LENGTH_MAX, "filter.errorLike")
    if wanted.above_sequence is not None:
        check_range("above_sequence", wanted.above_sequence, 0, limits.SEQUENCE_MAX)
    check_attributes(wanted.attributes, "filter.attributes")
    return wanted


def _check_before(name: str, number: int | None) -> None:
    """Raise OutOfRange or InvalidRequest unless `number` is a valid sequence number or id, or None."""
    if number is not None:
        check_range(name, number, 1, limits.SEQUENCE_MAX)
