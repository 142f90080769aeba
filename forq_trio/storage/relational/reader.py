"""The `Reader` of engines on SQL: their read-only connections run the same named statements."""

from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise, takewhile
from typing import Any

from forq_trio.model import limits
from forq_trio.model.dead_letters.places import ClaimPlace, parse_sequence
from forq_trio.model.dead_letters.searches import (
    PREVIEW_ELLIPSIS,
    DeadLetterPage,
    ErrorGroup,
    ErrorGroups,
    ErrorTexts,
    ExportBounds,
    ExportRows,
    FoundRows,
    ListedState,
    MatchCount,
    MessageFilter,
    MessagePage,
    MessageRow,
)
from forq_trio.model.fingerprints import fingerprint_key
from forq_trio.model.keys.types import OnceMore
from forq_trio.model.logs.history import FinishedMessage, FinishedPage, Outcome
from forq_trio.model.logs.types import LogLines, LogName
from forq_trio.model.messages.types import STATUS_NAMES, KeyedMessage, MessageInfo, QueueCounts
from forq_trio.model.publishing.types import PublishedVersion
from forq_trio.model.schedules.types import SavedRun, Schedule, SchedulePage
from forq_trio.model.server.database_state import DatabaseReading
from forq_trio.storage.consumers import pages_within
from forq_trio.storage.relational import log_reader
from forq_trio.storage.relational.needs import Needs
from forq_trio.storage.relational.operations.apps import read_app
from forq_trio.storage.relational.operations.schedules import read_runs, read_schedule
from forq_trio.storage.relational.operations.shuffle import draw
from forq_trio.storage.relational.result_reader import ResultReads
from forq_trio.storage.relational.row import read_keyed, shown, shown_as
from forq_trio.storage.relational.search import Span, count_matching, end_of_page, find, look_back
from forq_trio.storage.relational.waiting_offers import Waiting, read_waiting
from forq_trio.storage.rules import PageBytes, lines_within, message_bytes, number_of_last

_FIRST_CHARACTER = "\x01"  # no kind has U+0000
_LAST_CHARACTER = "\U0010ffff"
_LAST_KEY = _LAST_CHARACTER * limits.KEY_LENGTH_MAX
_NEWEST = limits.SEQUENCE_MAX
_PRIORITY_BEYOND = limits.PRIORITY_MAX + 1
_CHARACTER_BYTES_MAX = 4
_LEAD_BYTES = limits.PREVIEW_LEAD * _CHARACTER_BYTES_MAX
_EXCERPT_BYTES = limits.PREVIEW_LENGTH_MAX * _CHARACTER_BYTES_MAX
"""The bytes of UTF-8 that are enough for a whole preview, whatever its characters are."""


class SqlReader(ResultReads):
    """Reader over one connection: each call is one statement, or one transaction, hence one consistent snapshot."""

    def database(self) -> DatabaseReading | None:
        return None

    @property
    def _needs(self) -> Needs:
        return Needs(self._query)

    def queues(self) -> dict[str, QueueCounts]:
        return {queue: QueueCounts(*counts) for queue, *counts in self._query("queues")}

    def queue(self, queue: str) -> tuple[QueueCounts, int | None]:
        with self._snapshot():
            counts = self._counts(queue)
            oldest = self._query("oldest_ready", queue)[0][0] if counts.ready else None
        return counts, oldest

    def message(self, queue: str, message_id: str) -> MessageInfo | None:
        with self._snapshot():
            rows = self._query("message", queue, message_id)
            if not rows:
                self._needs.message(queue, message_id)
        return _message(rows[0]) if rows else None

    def keyed_message(self, queue: str, key: str, kind: str) -> KeyedMessage | None:
        with self._snapshot():
            rows = self._query("keyed_message", queue, kind, key)
            if not rows:
                return None
            message = _message(rows[0])
            waiting = self._query("waiting", message.sequence)
        return KeyedMessage(message, _once_more(read_waiting(waiting[0][0])) if waiting else None)

    def keyed_messages(
        self, queue: str, prefix: str, kind: str | None, after: tuple[str, str] | None, limit: int
    ) -> tuple[list[MessageInfo], tuple[str, str] | None]:
        reached = place = after or (kind or "", "")
        last = prefix + _LAST_CHARACTER * (limits.KEY_LENGTH_MAX - len(prefix))
        page, found = PageBytes(), list[MessageInfo]()
        with self._snapshot():
            for _ in range(limits.KINDS_LOOKED_AT_MAX):
                kinds = self._query("next_kind", queue, place[0])
                if not kinds or (kind is not None and kinds[0][0] != kind):
                    return found, None
                place = (kinds[0][0], place[1] if kinds[0][0] == place[0] else "")
                wanted = limit - len(found)
                with closing(self._rows("keyed_messages", queue, *place, prefix, last, wanted + 1)) as rows:
                    for message in map(_message, rows):
                        if not page.take(message) or len(found) == limit:
                            return found, reached
                        found.append(message)
                        reached = place = place[0], _key_of(message)
                place = place[0] + _FIRST_CHARACTER, ""  # the first key of the next kind
        return found, (kinds[0][0], _LAST_KEY)

    def count_keys(self, queue: str, most: int) -> dict[str, int]:
        return dict(self._query("count_keys", queue, most))

    def peek(self, queue: str, limit: int) -> list[MessageInfo]:
        return self._page("peek", queue, limit)

    def peek_shuffled(self, queue: str, limit: int) -> list[MessageInfo]:
        with self._snapshot():
            drawn = draw(self._query, queue, self._counts(queue).ready, limit)
            messages = (_message(self._query("message_by_sequence", seq)[0]) for seq in drawn)
            return list(takewhile(PageBytes().take, messages))

    def browse(self, queue: str, before_sequence: int | None, limit: int) -> list[MessageInfo]:
        before = _NEWEST if before_sequence is None else before_sequence
        with self._snapshot():
            self._needs.newest(queue, before, 0, limit)
            return self._page("browse", queue, before, limit)

    def list_messages(self, queue: str, state: ListedState, cursor: str | None, limit: int) -> MessagePage:
        with self._snapshot():
            if state == "ready":
                ready = self._ready_after(
                    queue, None if cursor is None else ClaimPlace.parse(cursor), limit + 1
                )
                places: Sequence[ClaimPlace | int] = ready
                sequences = [place.seq for place in ready]
            else:
                before = _NEWEST if cursor is None else parse_sequence(cursor)
                found = self._query(_LISTS[state], queue, before, limit + 1)
                if state in ("all", "processing"):
                    above = found[-1][0] if len(found) > limit else 0
                    self._needs.newest_leased(queue, before, above, limit + 1)
                places = sequences = [seq for (seq,) in found]
            rows = self._message_rows(sequences[:limit], None)
        return MessagePage(rows, str(places[limit - 1]) if len(places) > limit else None)

    def _ready_after(self, queue: str, place: ClaimPlace | None, limit: int) -> list[ClaimPlace]:
        """The next ready messages in claim order. place: of the previous message, None to begin."""
        if place is None:
            rows = self._query("list_ready_below", queue, _PRIORITY_BEYOND, limit)
        else:
            priority, position, seq = place
            rows = self._query("list_ready_at", queue, priority, position, seq, limit)
            if len(rows) < limit:
                rows += self._query("list_ready_behind", queue, priority, position, limit - len(rows))
            if len(rows) < limit:
                rows += self._query("list_ready_below", queue, priority, limit - len(rows))
        return [ClaimPlace(priority, position, seq) for seq, priority, position in rows]

    def search(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, limit: int, scan_max: int
    ) -> DeadLetterPage:
        span = Span.of(wanted, before_sequence, scan_max)
        messages: list[MessageInfo] = []
        page = PageBytes()
        with self._snapshot():
            self._needs.newest(queue, span.before, span.above, span.scan_max)
            matches = find(self._query, queue, wanted, span, limit)
            for seq in matches:
                message = _message(self._query("message_by_sequence", seq)[0])
                if not page.take(message):
                    end = seq
                    break
                messages.append(message)
            else:
                end = end_of_page(matches, limit, span)
            reach = look_back(self._query, queue, span, end)
        return DeadLetterPage(messages, reach.searched, reach.total, reach.next_before)

    def find_messages(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, limit: int, scan_max: int
    ) -> FoundRows:
        span = Span.of(wanted, before_sequence, scan_max)
        with self._snapshot():
            self._needs.newest(queue, span.before, span.above, span.scan_max)
            matches = find(self._query, queue, wanted, span, limit)
            rows = self._message_rows(matches, wanted.text)
            reach = look_back(self._query, queue, span, end_of_page(matches, limit, span))
        return FoundRows(rows, reach.searched, reach.total, reach.next_before, reach.oldest_at)

    def count_messages(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, scan_max: int
    ) -> MatchCount:
        span = Span.of(wanted, before_sequence, scan_max)
        with self._snapshot():
            self._needs.newest(queue, span.before, span.above, span.scan_max)
            count, processing = count_matching(self._query, queue, wanted, span)
            reach = look_back(self._query, queue, span, span.above)
        return MatchCount(count, processing, reach.searched, reach.total, reach.next_before, reach.oldest_at)

    def error_groups(self, queue: str, before_sequence: int | None, scan_max: int) -> ErrorGroups:
        span = Span.of(MessageFilter(), before_sequence, scan_max)
        with self._snapshot():
            self._needs.newest(queue, span.before, span.above, span.scan_max)
            found = self._query("error_groups", queue, span.before, scan_max, limits.ERROR_GROUPS_MAX)
            reach = look_back(self._query, queue, span, span.above)
        groups = [ErrorGroup(*group) for beyond, *group in found if not beyond]
        others = [ErrorGroup(*group) for beyond, *group in found if beyond]
        return ErrorGroups(groups, reach.searched, reach.total, reach.next_before, others)

    def error_texts(self, queue: str, wanted: MessageFilter, scan_max: int, limit: int) -> ErrorTexts:
        key = fingerprint_key(wanted.error_like)
        found = self._query("error_texts", queue, limits.SEQUENCE_MAX, scan_max, key, wanted.reason, limit)
        return ErrorTexts([(text, count) for text, count, _ in found], found[0][2] if found else 0)

    def _message_rows(self, sequences: Sequence[int], text: str | None) -> list[MessageRow]:
        """These messages as lists show them. text: the text that was searched for in the content, None for none."""
        late, lead, most = limits.PREVIEW_MATCH_LATE, _LEAD_BYTES, _EXCERPT_BYTES
        return [_message_row(row) for row in self._query("rows", str(sequences), text, late, lead, most)]

    def log_lines(
        self, log: LogName, after: int, until: int | None, limit: int, queue: str | None
    ) -> LogLines:
        with self._snapshot():
            return log_reader.read_page(self._query, log, after, until, limit, queue)

    def message_events(self, queue: str, message_id: str) -> bytes:
        ((lines,),) = self._query("message_events", message_id, queue, limits.MESSAGE_EVENTS_MAX)
        return lines or b""

    def queues_of(self, sequences: Sequence[int]) -> dict[int, str]:
        return dict(self._query("queues_of", str(list(sequences))))

    def export(self, queue: str, after: int, until: int, limit: int) -> ExportRows:
        with self._snapshot():
            bounds = (after, until, limit, limits.BROWSE_PAGE_BYTES_MAX, limits.HISTORY_LINE_BYTES)
            ends = self._query("export_end", queue, *bounds)
            last: int | None = ends[0][0]
            more = last is not None and self._query("exported_behind", queue, last, until)[0][0]
            self._needs.oldest(queue, after, last if last is not None and more else until, limit)
            if last is None:
                return ExportRows(b"", None)
            lines = self._query("export_lines", queue, after, last)[0][0]
            page = lines_within(lines, limits.BROWSE_PAGE_BYTES_MAX)
            if len(page) < len(lines):
                return ExportRows(page, number_of_last(page, "sequence"))
            more = more or self._needs.has_behind(queue, last, until)
        return ExportRows(page, last if more else None)

    def export_bounds(self, queue: str, count: int) -> ExportBounds:
        with self._snapshot():
            messages = self._counts(queue).total
            size = -(-messages // count)
            newest = self._query("newest", queue)[0][0] or 0
            ends = self._needs.ends_of_parts(queue, size, count, newest)
            if ends is None:
                ends = list(self._ends(queue, size, count, newest))
        return ExportBounds(list(pairwise([0, *ends])), messages)

    def _ends(self, queue: str, size: int, count: int, newest: int) -> Iterator[int]:
        """The last message of each part of a queue whose messages are all in the table."""
        after = 0
        for part in range(count):
            if after >= newest:
                break
            found = self._query("export_bound", queue, after, size - 1) if part < count - 1 else []
            after = found[0][0] if found else newest
            yield after

    def apps_named(self, app: str) -> list[PublishedVersion]:
        return [read_app(row)[1] for row in self._query("apps_named", app)]

    def list_apps(self, after: int, limit: int) -> list[tuple[int, PublishedVersion]]:
        return [read_app(row) for row in self._query("list_apps", after, limit)]

    def schedule(self, name: str, runs: int) -> tuple[Schedule, tuple[SavedRun, ...]] | None:
        with self._snapshot():
            found = self._query("find_schedule", name)
            if not found:
                return None
            schedule_id, *row = found[0]
            latest = read_runs(self._query("runs_of_schedule", schedule_id, max(runs, 1)))
        return read_schedule(row).as_callers_see(latest[0] if latest else None), latest[:runs]

    def schedule_of_queue(self, queue: str) -> str | None:
        found = self._query("schedule_of_queue", queue)
        return found[0][0] if found else None

    def schedules(self, after: str, limit: int) -> SchedulePage:
        page = PageBytes()
        found: list[Schedule] = []
        with closing(self._rows("list_schedules", after, limit + 1)) as rows:
            for run, *row in rows:
                stored = read_schedule(row)
                size = message_bytes(stored.new.content, stored.new.attributes)
                if len(found) == limit or not page.take_bytes(size):
                    return SchedulePage(found, found[-1].name)
                latest = read_runs([(run,)])
                found.append(stored.as_callers_see(latest[0] if latest else None))
        return SchedulePage(found)

    def find_finished(
        self,
        queue: str,
        wanted: MessageFilter,
        outcome: Outcome | None,
        before: int | None,
        limit: int,
        scan_max: int,
    ) -> FinishedPage:
        with self._snapshot():
            return log_reader.find(self._query, queue, wanted, outcome, before, limit, scan_max)

    def finished(self, queue: str, message_id: str) -> FinishedMessage | None:
        return log_reader.read_one(self._query, queue, message_id)

    def lease_pages(self, queue: str, consumer: str, number: int, first: int, count: int) -> list[bytes]:
        with closing(self._rows("read_pages", queue, consumer, number, first, count)) as rows:
            return pages_within(first, rows)

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Run several statements in one read transaction: they see the same state."""
        self._query("begin_reading")
        try:
            yield
        finally:
            self._end_reading()

    @abstractmethod
    def _end_reading(self) -> None:
        """End the transaction, also after a statement that failed."""

    @abstractmethod
    def _rows(self, name: str, *bindings: Any) -> Generator[Any, None, None]:
        """The rows of a named statement, read one by one. Raises ReadDeadlineExceeded, StorageUnavailable."""

    def _counts(self, queue: str) -> QueueCounts:
        return next((QueueCounts(*row) for row in self._query("queue", queue)), QueueCounts())

    def _page(self, name: str, *bindings: Any) -> list[MessageInfo]:
        """The messages of a statement that fit into a page; the others are not read."""
        with closing(self._rows(name, *bindings)) as rows:
            return list(takewhile(PageBytes().take, map(_message, rows)))

    def _query(self, name: str, *bindings: Any) -> list[Any]:
        return list(self._rows(name, *bindings))


_message = shown_as(MessageInfo)


def _key_of(message: MessageInfo) -> str:
    return message.key or ""


def _once_more(waiting: Waiting) -> OnceMore:
    offering = waiting.offering
    numbers = (waiting.due, waiting.revision, waiting.offers, waiting.last_offer_at)
    return OnceMore(offering.content, offering.attributes or {}, *numbers)


def _message_row(row: Sequence[Any]) -> MessageRow:
    message_id, queue, seq, status, *members, match_at, excerpt = row
    members[_ROW_GROUP] = members[_ROW_GROUP] or None
    members[-1] = None if members[-1] is None else shown(read_keyed, members[-1])
    return MessageRow(message_id, queue, seq, STATUS_NAMES[status], _preview_of(excerpt, match_at), *members)


def _preview_of(excerpt: bytes, match_at: int) -> str:
    """The preview of a message, from an excerpt of its content whose first and last character may be incomplete.

    match_at: the byte at which the match begins, at most _LEAD_BYTES; 0 if the excerpt is the beginning of the content.
    """
    if match_at == 0:
        return excerpt.decode(errors="ignore")[: limits.PREVIEW_LENGTH_MAX]
    lead = excerpt[:match_at].decode(errors="ignore")[-limits.PREVIEW_LEAD :]
    rest = excerpt[match_at:].decode(errors="ignore")[: limits.PREVIEW_LENGTH_MAX - 1 - limits.PREVIEW_LEAD]
    return PREVIEW_ELLIPSIS + lead + rest


_ROW_GROUP = MessageRow.__struct_fields__.index("group") - 5
"""The index of the group in a row, which lacks id, queue, sequence, status and preview."""
_LISTS: dict[ListedState, str] = {
    "all": "list_all",
    "delayed": "list_delayed",
    "processing": "list_processing",
    "held": "list_held",
    "failed": "list_failed",
}
