"""The reference engine's reads of the history."""

from collections.abc import Iterable
from typing import Any

import msgspec

from forq_trio.model import limits
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.fingerprints import alike
from forq_trio.model.logs.history import FinishedMessage, FinishedPage, Outcome
from forq_trio.model.logs.types import LogLines
from forq_trio.model.results.types import MessageResult
from forq_trio.storage.logs import end_of_page
from forq_trio.storage.rules import PageBytes, lines_within, number_of_last, shown_bytes
from oracle.state import Row, State


def read_page(state: State, after: int, until: int | None, limit: int, queue: str | None) -> LogLines:
    _, first, last, _, _ = state.history_log
    until = last if until is None else min(until, last)
    rest = [
        message
        for message in state.history.messages.values()
        if message.history_id > after and queue in (None, message.queue)
    ]
    page: list[FinishedMessage] = []
    size = 0
    for message in rest:
        size += message.bytes + limits.HISTORY_LINE_BYTES
        is_full = len(page) == limit or (page and size > limits.BROWSE_PAGE_BYTES_MAX)
        if message.history_id > until or is_full:
            break
        page.append(message)
    if not page:
        return LogLines(b"", max(after, until), first, last)
    following = rest[len(page)].history_id if len(page) < len(rest) else None
    lines = b"".join(msgspec.json.encode(_line(message)) + b"\n" for message in page)
    written = lines_within(lines, limits.BROWSE_PAGE_BYTES_MAX)
    if len(written) < len(lines):
        return LogLines(written, number_of_last(written, "historyId"), first, last)
    return LogLines(lines, end_of_page(page[-1].history_id, following, until), first, last)


def _line(message: FinishedMessage) -> dict[str, Any]:
    members = {
        "id": message.id,
        "queue": message.queue,
        "sequence": message.sequence,
        "receivedAt": message.received_at,
        "attempts": message.attempts,
        "priority": message.priority,
        "group": message.group,
        "attributes": message.attributes or None,
        "key": message.key,
        "kind": message.kind,
        "historyId": message.history_id,
        "outcome": message.outcome,
        "reason": message.reason,
        "finishedAt": message.finished_at,
        "content": message.content,
    } | origin(message)
    return {name: value for name, value in members.items() if value is not None}


def origin(message: FinishedMessage | Row) -> dict[str, Any]:
    """The members that only a dead letter's line has."""
    if message.source_queue is None:
        return {}
    return {
        "sourceQueue": message.source_queue,
        "sourceAttempts": message.source_attempts,
        "failureReason": message.failure_reason,
        "deadLetteredAt": message.dead_lettered_at,
    }


def find(
    state: State,
    queue: str,
    wanted: MessageFilter,
    outcome: Outcome | None,
    before: int | None,
    limit: int,
    scan_max: int,
) -> FinishedPage:
    whole = [message for message in reversed(state.history.messages.values()) if message.queue == queue]
    rest = [message for message in whole if before is None or message.history_id < before]
    found: list[FinishedMessage] = []
    searched = 0
    page = PageBytes()
    for message in rest[:scan_max]:
        matches = outcome in (None, message.outcome) and _matches(message, wanted)
        if len(found) == limit or (
            matches and not page.take_bytes(shown_bytes(message.bytes, message.failures))
        ):
            break
        searched += 1
        if matches:
            found.append(message)
    more = 0 < searched < len(rest)
    return FinishedPage(found, searched, len(whole), rest[searched - 1].history_id if more else None)


def _matches(message: FinishedMessage, wanted: MessageFilter) -> bool:
    return (
        wanted.reason in (None, message.reason)
        and (wanted.since is None or message.finished_at >= wanted.since)
        and (wanted.until is None or message.finished_at <= wanted.until)
        and all(message.attributes.get(key) == value for key, value in wanted.attributes.items())
        and (wanted.text is None or wanted.text in message.content)
        and wanted.error in (None, message.last_error or "")
        and (wanted.error_like is None or alike(message.last_error, wanted.error_like))
    )


def read_one(history: Iterable[FinishedMessage], queue: str, message_id: str) -> FinishedMessage | None:
    for message in history:
        if (message.id, message.queue) == (message_id, queue):
            return message
    return None


def read_result(history: Iterable[FinishedMessage], queue: str, message_id: str) -> MessageResult | None:
    """The latest end of a message that was sent to a queue."""
    known: MessageResult | None = None
    for message in history:
        if message.id == message_id and queue in (message.queue, message.source_queue):
            known = MessageResult(
                message.id,
                message.queue,
                message.outcome,
                message.attempts,
                message.result,
                message.last_error,
                message.finished_at,
            )
    return known
