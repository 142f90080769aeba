"""The timeline of a message, made from its lifecycle events.

It is exact if the events since the send are stored, even if the message is gone. If there are many, those between the
first and the latest ones are folded.
"""

from collections.abc import Sequence

from forq_trio.drawing import format
from forq_trio.model.keys.types import OnceMore
from forq_trio.model.logs.events import EventKind, MessageEvent
from forq_trio.ui.timeline import Entry, TimelineStep, waiting_offers

SHOWN_MAX = 20
_WHAT: dict[EventKind, tuple[str, str]] = {
    "produced": ("sent", "Sent"),
    "delivered": ("processing", "Delivered"),
    "acked": ("acked", "Acked"),
    "nacked": ("failed", "Nack"),
    "released": ("ready", "Released"),
    "extended": ("processing", "Lease extended"),
    "lease_expired": ("failed", "Lease ended"),
    "dead_lettered": ("dead", "Moved to {target}"),
    "requeued": ("redriven", "Redriven to {target}"),
    "expired": ("dead", "Expired"),
    "deleted": ("dead", "Deleted"),
    "cancelled": ("dead", "Cancelled"),
    "updated": ("sent", "Changed by its key"),
}
"""The symbol and the words of each kind."""
_REASONS = {
    "failed": "attempts used up",
    "expired": "expired before it was delivered",
    "overflow": "its queue was full",
    "dlq_full": "the dead-letter queue was full",
    "deleted_by_user": "somebody asked for it",
    "consumer": "its consumer discarded it",
    "ended_by_consumer": "by its consumer",
}


def is_whole(events: Sequence[MessageEvent]) -> bool:
    """Whether the events begin with the send."""
    return bool(events) and events[0].kind == "produced"


def event_timeline(events: Sequence[MessageEvent], once_more: OnceMore | None = None) -> list[TimelineStep]:
    """The steps of a message, newest first. events: oldest first. once_more: the offer that waits behind it, if any."""
    entries = list(map(_entry, events))
    for offer in waiting_offers(once_more):
        place = max((n for n, entry in enumerate(entries, 1) if entry.at <= offer.at), default=0)
        entries.insert(place, offer)
    steps = [
        TimelineStep(entry, None if place == 0 else max(0, entry.at - entries[place - 1].at))
        for place, entry in enumerate(entries)
    ][::-1]
    hidden = steps[SHOWN_MAX - 1 : -1]
    if len(hidden) < 2:
        return steps
    fold = TimelineStep(None, None, tuple(hidden), f"{format.plural(len(hidden), 'event')} more")
    return [*steps[: SHOWN_MAX - 1], fold, steps[-1]]


def _entry(event: MessageEvent) -> Entry:
    shape, what = _WHAT[event.kind]
    said = event.reason if event.kind == "nacked" else None
    details = [
        f"attempt {event.attempt}" if event.attempt else "",
        "" if event.duration_ms is None else f"after {format.duration(max(event.duration_ms, 0))}",
        _REASONS.get(event.reason or "", "") if said is None else "",
    ]
    return Entry(event.at, shape, what.format(target=event.target), ", ".join(filter(None, details)), said)
