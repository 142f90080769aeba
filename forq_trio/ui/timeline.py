"""The timeline of a message, made from its stored members: a list of entries, newest first.

A message has its latest failures, its latest delivery, and the times when it was sent, is due, and was dead-lettered.
After a redrive attempts are counted from 1 again: a new series begins where the number of the attempt does not grow. If
a series has more than ATTEMPTS_SHOWN_MAX failed attempts, the older ones are folded.
"""

from msgspec import Struct

from forq_trio.drawing import format
from forq_trio.model.keys.types import OnceMore
from forq_trio.model.limits import FAILURES_PER_MESSAGE_MAX
from forq_trio.model.messages.types import (
    LEASE_ENDED,
    REASON_EXPIRED,
    REASON_MAX_ATTEMPTS,
    REASON_OVERFLOW,
    Failure,
    MessageInfo,
)

ATTEMPTS_SHOWN_MAX = 4
_ATTEMPTS_KEPT = 2
_REASONS = {
    REASON_MAX_ATTEMPTS: "attempts used up",
    REASON_EXPIRED: "expired before it was delivered",
    REASON_OVERFLOW: "its queue was full",
}


class Entry(Struct, frozen=True):
    """An event in the life of a message, and when it happened (epoch ms)."""

    at: int
    shape: str  # its symbol
    what: str
    detail: str = ""
    reason: str | None = None  # the words of a consumer


class TimelineStep(Struct, frozen=True):
    """An entry, or several that are folded. after_ms: since the entry before it, None for the first one."""

    entry: Entry | None
    after_ms: int | None = None
    folded: tuple["TimelineStep", ...] = ()
    words: str = ""


def reason_words(reason: str | None) -> str:
    """Why a message is a dead letter; any other text is shown as it is."""
    return _REASONS.get(reason or "", reason or "")


def timeline(message: MessageInfo, now_ms: int, once_more: OnceMore | None = None) -> list[TimelineStep]:
    """The steps of a message, newest first. once_more: the offer that waits behind it."""
    failures = _failures(message)
    others = [*_offers(message), *waiting_offers(once_more), *_others(message, now_ms)]
    entries = sorted([*failures, *others], key=lambda entry: entry.at)
    after = {
        id(entry): None if place == 0 else max(0, entry.at - entries[place - 1].at)
        for place, entry in enumerate(entries)
    }
    folded = _folded(message.failures, failures)
    steps: list[TimelineStep] = []
    hidden: list[TimelineStep] = []
    for entry in reversed(entries):
        words = folded.get(id(entry))
        if words is None:
            steps.append(TimelineStep(entry, after[id(entry)]))
            continue
        hidden.append(TimelineStep(entry, after[id(entry)]))
        if words:
            steps.append(TimelineStep(None, None, tuple(hidden), words))
            hidden = []
    return steps


def forgotten(message: MessageInfo) -> bool:
    """Whether the message may have failed more often than is stored."""
    return len(message.failures) >= FAILURES_PER_MESSAGE_MAX


def _failures(message: MessageInfo) -> list[Entry]:
    entries = []
    for failure in message.failures:
        by_lease = failure.reason == LEASE_ENDED
        what = "Lease ended" if by_lease else "Nack"
        reason = None if by_lease else failure.reason
        entries.append(Entry(failure.at, "failed", what, f"attempt {failure.attempt}", reason))
    return entries


def _folded(failures: tuple[Failure, ...], entries: list[Entry]) -> dict[int, str]:
    """The words for folded entries, by id: the oldest of a fold has them, the others have ""."""
    folded: dict[int, str] = {}
    start = 0
    for place in range(1, len(failures) + 1):
        if place < len(failures) and failures[place].attempt > failures[place - 1].attempt:
            continue
        end = place - _ATTEMPTS_KEPT
        if place - start > ATTEMPTS_SHOWN_MAX:
            first, last = failures[start].attempt, failures[end - 1].attempt
            for each in range(start, end):
                folded[id(entries[each])] = ""
            folded[id(entries[start])] = f"{end - start} more, attempts {first} to {last}"
        start = place
    return folded


def waiting_offers(once_more: OnceMore | None) -> list[Entry]:
    """The last offer that waits behind a message."""
    if once_more is None:
        return []
    detail = "" if once_more.offers == 1 else f"the last of {format.plural(once_more.offers, 'offer')}"
    return [Entry(once_more.offered_at, "sent", "Offered, waits as one more", detail)]


def _offers(message: MessageInfo) -> list[Entry]:
    """The first and the last offer of a message with a key."""
    keyed = message.keyed
    if keyed is None:
        return []
    entries = [Entry(keyed.first_offer_at, "sent", "Offered, created")]
    if keyed.offers > 1:
        detail = f"the last of {format.plural(keyed.offers, 'offer')}"
        entries.append(Entry(keyed.last_offer_at, "sent", "Offered again", detail))
    return entries


def _others(message: MessageInfo, now_ms: int) -> list[Entry]:
    """All but the failures."""
    entries = [] if message.keyed else [Entry(message.received_at, "sent", "Sent")]
    first = message.first_received_at
    if message.dead_lettered_at is None:
        entries += _due(message, now_ms)
    if first is not None and first != message.processing_started_at:
        entries.append(Entry(first, "processing", "Delivered for the first time"))
    if message.processing_started_at is not None and message.status == "processing":
        entries.append(
            Entry(message.processing_started_at, "processing", "Delivered", f"attempt {message.attempts}")
        )
    if message.dead_lettered_at is not None:
        detail = reason_words(message.failure_reason)
        if message.source_attempts:
            detail = ", ".join(filter(None, (detail, format.plural(message.source_attempts, "attempt"))))
        entries.append(Entry(message.dead_lettered_at, "dead", f"Moved to {message.queue}", detail))
    return entries


def _due(message: MessageInfo, now_ms: int) -> list[Entry]:
    """That the message is due later than at its send or its latest failure, and why, as far as that is known.

    A delay is known until the first delivery, a back-off until the next change: a release moves the due time as well.
    """
    due, failure = message.process_after, message.failures[-1] if message.failures else None
    if due <= (message.received_at if failure is None else failure.at):
        return []
    if failure is not None and message.updated_at == failure.at:
        back_off = format.duration(due - failure.at)
        return [Entry(failure.at, "delayed", f"Back-off of {back_off}", _due_words(due, now_ms))]
    first = message.first_received_at
    if failure is None and (first is None or due <= first):
        if due <= now_ms:
            return [Entry(due, "ready", "Due")]
        delay = format.duration(due - message.received_at)
        return [Entry(message.received_at, "delayed", f"Delay of {delay}", _due_words(due, now_ms))]
    why = "its consumer gave it back" if failure is None else ""
    if due <= now_ms:
        return [Entry(due, "ready", "Due again", why)]
    detail = ", ".join(filter(None, (why, _due_words(due, now_ms))))
    return [Entry(message.updated_at, "delayed", "Delayed", detail)]


def _due_words(due: int, now_ms: int) -> str:
    return f"due again in {format.duration(due - now_ms)}" if due > now_ms else "over"
