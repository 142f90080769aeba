"""The reference engine's reader. See `storage.engine.Reader`."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

import msgspec

from forq_trio.model import limits
from forq_trio.model.consumers.types import consumer_key
from forq_trio.model.dead_letters.places import ClaimPlace, parse_sequence
from forq_trio.model.dead_letters.searches import (
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
)
from forq_trio.model.fingerprints import alike, fingerprint
from forq_trio.model.logs.history import FinishedMessage, FinishedPage, Outcome
from forq_trio.model.logs.types import LogLines, LogName
from forq_trio.model.messages.set_aside import SetAside
from forq_trio.model.messages.types import KeyedMessage, MessageInfo, QueueCounts, Status
from forq_trio.model.publishing.types import PublishedVersion
from forq_trio.model.results.types import MessageResult
from forq_trio.model.schedules.types import SavedRun, Schedule, SchedulePage
from forq_trio.model.server.database_state import DatabaseReading
from forq_trio.storage.rules import PageBytes, lines_within, message_bytes, number_of_last
from oracle import events, history_reader
from oracle.schedules import told
from oracle.state import Row, State


class MemoryReader:
    """Reads the committed state of a `MemoryEngine`."""

    def __init__(self, committed: Callable[[], State]) -> None:
        self._committed = committed

    def queues(self) -> dict[str, QueueCounts]:
        state = self._committed()
        return {queue: state.counts(queue) for queue in sorted(state.queues)}

    def queue(self, queue: str) -> tuple[QueueCounts, int | None]:
        state = self._committed()
        return state.counts(queue), min((row.received_at for row in state.claimable(queue)), default=None)

    def message(self, queue: str, message_id: str) -> MessageInfo | None:
        for row in self._committed().of_queue(queue):
            if row.id == message_id:
                return row.info()
        return None

    def message_result(self, queue: str, message_id: str) -> MessageResult | None:
        for row in self._committed().rows.values():
            if row.id == message_id:
                return stored_result(row, queue)
        return history_reader.read_result(self._committed().history.messages.values(), queue, message_id)

    def keyed_message(self, queue: str, key: str, kind: str) -> KeyedMessage | None:
        row = self._committed().of_key(queue, kind, key)
        if row is None:
            return None
        return KeyedMessage(row.info(), None if row.waiting is None else row.waiting.told())

    def keyed_messages(
        self, queue: str, prefix: str, kind: str | None, after: tuple[str, str] | None, limit: int
    ) -> tuple[list[MessageInfo], tuple[str, str] | None]:
        found = {row.pending_key: row for row in self._committed().of_queue(queue) if row.pending_key}
        names = sorted(
            name
            for name in found
            if kind in (None, name[0]) and name[1].startswith(prefix) and (after is None or name > after)
        )
        return [found[name].info() for name in names[:limit]], names[limit - 1] if len(
            names
        ) > limit else None

    def count_keys(self, queue: str, most: int) -> dict[str, int]:
        names = sorted(row.pending_key for row in self._committed().of_queue(queue) if row.pending_key)
        return dict(Counter(kind for kind, _ in names[:most]))

    def peek(self, queue: str, limit: int) -> list[MessageInfo]:
        return _page(self._committed().claimable(queue)[:limit])

    def peek_shuffled(self, queue: str, limit: int) -> list[MessageInfo]:
        ready = self._committed().claimable(queue)
        return _page(random.sample(ready, min(limit, len(ready))))

    def browse(self, queue: str, before_sequence: int | None, limit: int) -> list[MessageInfo]:
        return _page(self._newest_first(queue, before_sequence)[:limit])

    def search(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, limit: int, scan_max: int
    ) -> DeadLetterPage:
        page = PageBytes()
        looked = self._search(
            queue, wanted, before_sequence, limit, scan_max, lambda row: page.take(row.info())
        )
        found = [row.info() for row in looked.matches]
        return DeadLetterPage(
            found, len(looked.rows), self._committed().counts(queue).total, looked.next_before
        )

    def find_messages(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, limit: int, scan_max: int
    ) -> FoundRows:
        looked = self._search(queue, wanted, before_sequence, limit, scan_max)
        found = [row.listed(wanted.text) for row in looked.matches]
        total = self._committed().counts(queue).total
        oldest_at = _came_at(looked.rows[-1]) if looked.rows else None
        return FoundRows(found, len(looked.rows), total, looked.next_before, oldest_at)

    def count_messages(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, scan_max: int
    ) -> MatchCount:
        looked = self._search(queue, wanted, before_sequence, scan_max + 1, scan_max)
        processing = sum(row.status is Status.PROCESSING for row in looked.matches)
        total = self._committed().counts(queue).total
        oldest_at = _came_at(looked.rows[-1]) if looked.rows else None
        return MatchCount(
            len(looked.matches), processing, len(looked.rows), total, looked.next_before, oldest_at
        )

    def _search(
        self,
        queue: str,
        wanted: MessageFilter,
        before_sequence: int | None,
        limit: int,
        scan_max: int,
        fits: Callable[[Row], bool] = lambda _: True,
    ) -> "_Looked":
        """Search for at most `limit` messages. fits: whether a message that matches fits into the page."""
        above = wanted.above_sequence or 0
        rows = [row for row in self._newest_first(queue, before_sequence) if row.seq > above]
        found: list[Row] = []
        searched = 0
        for row in rows[:scan_max]:
            matches = _matches(row, wanted)
            if len(found) == limit or (matches and not fits(row)):
                break
            searched += 1
            if matches:
                found.append(row)
        return _Looked(found, rows[:searched], rows[searched - 1].seq if searched < len(rows) else None)

    def error_groups(self, queue: str, before_sequence: int | None, scan_max: int) -> ErrorGroups:
        looked = self._search(queue, MessageFilter(), before_sequence, scan_max, scan_max)
        rows: dict[tuple[str | None, str | None], list[Row]] = {}
        for row in looked.rows:
            key = fingerprint(row.last_error) if row.last_error else None
            rows.setdefault((row.failure_reason, key), []).append(row)
        groups = [_group(reason, some) for (reason, _), some in rows.items()]
        groups.sort(key=lambda each: (-each.count, -each.last_at, each.reason or "", each.error or ""))
        beyond: dict[str | None, list[ErrorGroup]] = {}
        for group in groups[limits.ERROR_GROUPS_MAX :]:
            beyond.setdefault(group.reason, []).append(group)
        return ErrorGroups(
            groups[: limits.ERROR_GROUPS_MAX],
            len(looked.rows),
            self._committed().counts(queue).total,
            looked.next_before,
            [
                ErrorGroup(
                    reason,
                    None,
                    sum(each.count for each in some),
                    max(each.last_at for each in some),
                    sum(each.errors for each in some),
                )
                for reason, some in beyond.items()
            ],
        )

    def error_texts(self, queue: str, wanted: MessageFilter, scan_max: int, limit: int) -> ErrorTexts:
        looked = self._search(queue, MessageFilter(), None, scan_max, scan_max)
        wanted = MessageFilter(reason=wanted.reason, error_like=wanted.error_like)
        counts = Counter(row.last_error for row in looked.rows if row.last_error and _matches(row, wanted))
        texts = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        return ErrorTexts(texts[:limit], len(counts))

    def list_messages(self, queue: str, state: ListedState, cursor: str | None, limit: int) -> MessagePage:
        if state == "ready":
            after = None if cursor is None else ClaimPlace.parse(cursor)
            rows = [
                row
                for row in self._committed().claimable(queue)
                if after is None or _claim_order(row) > (-after.priority, after.position, after.seq)
            ]
            ends = [str(ClaimPlace(row.priority, row.position, row.seq)) for row in rows]
        else:
            rows = self._newest_first(queue, None if cursor is None else parse_sequence(cursor))
            rows = [row for row in rows if state in ("all", row.status.name.lower())]
            ends = [str(row.seq) for row in rows]
        return MessagePage(
            [row.listed(None) for row in rows[:limit]], ends[limit - 1] if len(rows) > limit else None
        )

    def log_lines(
        self, log: LogName, after: int, until: int | None, limit: int, queue: str | None
    ) -> LogLines:
        read_page = events.read_page if log == "events" else history_reader.read_page
        return read_page(self._committed(), after, until, limit, queue)

    def message_events(self, queue: str, message_id: str) -> bytes:
        return events.of_message(self._committed(), queue, message_id)

    def database(self) -> DatabaseReading | None:
        return None

    def queues_of(self, sequences: Sequence[int]) -> dict[int, str]:
        rows = self._committed().rows
        return {sequence: rows[sequence].queue for sequence in sequences if sequence in rows}

    def _newest_first(self, queue: str, before_sequence: int | None) -> list[Row]:
        rows = self._committed().of_queue(queue)[::-1]
        return [row for row in rows if before_sequence is None or row.seq < before_sequence]

    def export(self, queue: str, after: int, until: int, limit: int) -> ExportRows:
        rows = [row for row in self._committed().of_queue(queue) if after < row.seq <= until]
        page = PageBytes()
        taken = list(
            takewhile(lambda row: page.take_bytes(row.bytes + limits.HISTORY_LINE_BYTES), rows[:limit])
        )
        lines = b"".join(_exported(row) for row in taken)
        written = lines_within(lines, limits.BROWSE_PAGE_BYTES_MAX)
        if len(written) < len(lines):
            return ExportRows(written, number_of_last(written, "sequence"))
        return ExportRows(lines, taken[-1].seq if len(taken) < len(rows) else None)

    def export_bounds(self, queue: str, count: int) -> ExportBounds:
        sequences = [row.seq for row in self._committed().of_queue(queue)]
        size = -(-len(sequences) // count)
        ends = [*sequences[size - 1 : -1 : size], *sequences[-1:]] if sequences else []
        return ExportBounds(list(zip([0, *ends], ends, strict=False)), len(sequences))

    def set_aside(self, after: int, limit: int) -> list[SetAside]:
        return []

    def count_set_aside(self) -> tuple[int, int]:
        return 0, 0

    def sent_figures(self, most: int) -> tuple[int, int, int | None]:
        return 0, 0, None

    def apps_named(self, app: str) -> list[PublishedVersion]:
        return [each for each in self._committed().apps.values() if each.app == app]

    def list_apps(self, after: int, limit: int) -> list[tuple[int, PublishedVersion]]:
        return [each for each in self._committed().apps.items() if each[0] > after][:limit]

    def schedule(self, name: str, runs: int) -> tuple[Schedule, tuple[SavedRun, ...]] | None:
        state = self._committed()
        stored = state.schedules.get(name)
        return (
            None if stored is None else (told(state, stored), state.schedule_runs.get(name, ())[::-1][:runs])
        )

    def schedule_of_queue(self, queue: str) -> str | None:
        named = [name for name, each in self._committed().schedules.items() if queue in each.new.queues]
        return named[0] if named else None

    def schedules(self, after: str, limit: int) -> SchedulePage:
        state = self._committed()
        behind = [state.schedules[name] for name in sorted(state.schedules) if name > after]
        page = PageBytes()
        taken = list(
            takewhile(
                lambda each: page.take_bytes(message_bytes(each.new.content, each.new.attributes)),
                behind[:limit],
            )
        )
        return SchedulePage(
            [told(state, each) for each in taken], taken[-1].name if len(taken) < len(behind) else None
        )

    def find_finished(
        self,
        queue: str,
        wanted: MessageFilter,
        outcome: Outcome | None,
        before: int | None,
        limit: int,
        scan_max: int,
    ) -> FinishedPage:
        return history_reader.find(self._committed(), queue, wanted, outcome, before, limit, scan_max)

    def finished(self, queue: str, message_id: str) -> FinishedMessage | None:
        return history_reader.read_one(self._committed().history.messages.values(), queue, message_id)

    def lease_pages(self, queue: str, consumer: str, number: int, first: int, count: int) -> list[bytes]:
        found = self._committed().consumers.get(consumer_key(queue, consumer))
        leases = [] if found is None else [lease for lease in found.leases if lease.number == number]
        pages = [page.body for lease in leases for page in lease.pages[first : first + count]]
        while len(pages) > 1 and sum(map(len, pages)) > limits.CONSUMER_READ_BYTES_MAX:
            pages.pop()
        return pages

    def interrupt(self) -> None:
        """Nothing to do: no read here runs long enough."""

    def close(self) -> None:
        """There is nothing to close."""


def _page(rows: Sequence[Row]) -> list[MessageInfo]:
    """The messages of `rows` that fit into a page."""
    return list(takewhile(PageBytes().take, (row.info() for row in rows)))


def _exported(row: Row) -> bytes:
    members = {
        "id": row.id,
        "queue": row.queue,
        "sequence": row.seq,
        "content": row.content,
        "receivedAt": row.received_at,
        "attempts": row.attempts,
        "priority": row.priority,
        "group": row.shown_group,
        "attributes": row.attributes,
        "state": row.status.name.lower(),
    } | history_reader.origin(row)
    return msgspec.json.encode(members) + b"\n"


class _Looked(NamedTuple):
    """What a search found, and the messages that it read."""

    matches: list[Row]
    rows: list[Row]
    next_before: int | None


def _claim_order(row: Row) -> tuple[int, int, int]:
    return -row.priority, row.position, row.seq


def _group(reason: str | None, rows: Sequence[Row]) -> ErrorGroup:
    errors = {row.last_error for row in rows if row.last_error}
    return ErrorGroup(reason, min(errors, default=None), len(rows), max(map(_came_at, rows)), len(errors))


def _came_at(row: Row) -> int:
    return row.received_at if row.dead_lettered_at is None else row.dead_lettered_at


def _matches(row: Row, wanted: MessageFilter) -> bool:
    came_at = _came_at(row)
    attributes = row.attributes or {}
    return (
        wanted.reason in (None, row.failure_reason)
        and (wanted.since is None or came_at >= wanted.since)
        and (wanted.until is None or came_at <= wanted.until)
        and all(attributes.get(key) == value for key, value in wanted.attributes.items())
        and (wanted.text is None or wanted.text in row.content)
        and wanted.error in (None, row.last_error or "")
        and (wanted.error_like is None or alike(row.last_error, wanted.error_like))
        and wanted.status in (None, row.status)
    )


def stored_result(row: Row, queue: str) -> MessageResult | None:
    """What is known of a stored message that was sent to this queue."""
    known = MessageResult(row.id, row.queue, "waiting", row.attempts, last_error=row.last_error)
    if row.queue == queue:
        return known
    if row.source_queue == queue:
        return msgspec.structs.replace(known, state="dead", ended_at=row.dead_lettered_at)
    return None
