"""The reference engine: how a change becomes a lifecycle event (see storage/logs.py)."""

from forq_trio.model.logs.events import MessageEvent
from forq_trio.storage.engine import CONSUMED
from forq_trio.storage.logs import TIMED, event_bytes, kind_and_reason
from forq_trio.storage.transitions import UPDATED
from oracle.state import Row, State, StoredEvent


def log(
    state: State, at: int, change: str, old: Row | None, new: Row | None, reason: str, nack_reason: str | None
) -> None:
    """Add the event of a change, if it has one; the arguments are those of `Transaction.transition`."""
    found = kind_and_reason(change, reason, nack_reason)
    if found is None:
        return
    kind, why = found
    row = new if old is None else old
    assert row is not None
    told = row if change != UPDATED or new is None else new  # the message after the change
    stays = new is not None and new.queue == row.queue
    duration_ms = None
    if change == CONSUMED:
        duration_ms = at - max(row.process_after, row.received_at)
    elif change in TIMED and row.processing_started_at is not None:
        duration_ms = at - row.processing_started_at
    event = MessageEvent(
        id=state.event_log.last + 1,
        at=at,
        kind=kind,
        queue=row.queue,
        sequence=row.seq,
        message_id=row.id,
        attempt=row.attempts + (change == CONSUMED),
        reason=why,
        target=new.queue if new is not None and new.queue != row.queue else None,
        received_at=told.received_at,
        duration_ms=duration_ms,
        bytes=told.bytes if stays else told.own_bytes,
    )
    state.events.append(StoredEvent(event, state.events_end))
    state.events_end += event_bytes(event.queue, event.reason, event.target)
