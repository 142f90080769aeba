"""Where messages go that nobody will process in their queue: they failed, expired, or had to make room."""

from collections.abc import Sequence

from forq_trio.model.messages import Status, is_dead_letter_queue
from forq_trio.model.queue_settings import NO_DEAD_LETTERS
from forq_trio.storage.engine import CLEANED_UP, MOVED_TO_DLQ
from forq_trio.storage.rules import dead_letter_target, moved_position
from forq_trio.storage.sqlite.row import Stored
from forq_trio.storage.sqlite.transaction import Transaction


def bury(
    tx: Transaction, messages: Sequence[Stored], event_reason: str, reason: str, target: str | None = None
) -> None:
    """Move messages to where their dead letters go, or delete those that have nowhere to go.

    target: the queue to move them to instead, "" to delete them. event_reason and reason: in the words of events and
    of the column `failure_reason`.
    """
    removed: list[Stored] = []
    moved: list[tuple[object, ...]] = []
    for message in messages:
        goes_to = target
        if goes_to is None:
            rules = tx.rules(message.queue)
            goes_to = dead_letter_target(message.queue, message.dead_letter_queue, rules)
        if goes_to in (NO_DEAD_LETTERS, message.queue):
            removed.append(message)
            tx.note(CLEANED_UP, message.queue, reason=event_reason)
        else:
            moved.append(_move(tx, message, goes_to, reason))
            tx.note(MOVED_TO_DLQ, message.queue, reason=event_reason)
    remove(tx, removed)
    tx.run("dead_letter", moved)


def remove(tx: Transaction, messages: Sequence[Stored]) -> None:
    """Delete messages for good."""
    tx.delete([message.seq for message in messages])
    sizes: dict[tuple[str, int], list[int]] = {}
    for message in messages:
        key = message.queue, message.status
        if key in sizes:
            sizes[key].append(message.bytes)
        else:
            sizes[key] = [message.bytes]
        if message.group_id:
            tx.leave(message)
    for (queue, status), each in sizes.items():
        tx.add(queue, status, -len(each), -sum(each))


def remove_for_user(tx: Transaction, queue: str, messages: Sequence[Stored]) -> None:
    """Delete messages of one queue because somebody asked for it."""
    remove(tx, messages)
    if messages:
        tx.note(CLEANED_UP, queue, len(messages), "deleted_by_user")


def transfer(tx: Transaction, message: Stored, target: str, ttl_ms: int | None) -> tuple[bool, int, int]:
    """Note that a message goes to `target` and is ready there; returns its is_dlq, position and expires_after.

    ttl_ms: how long it lives there; None for what the target says.
    """
    rules = tx.rules(target)
    expires_after = tx.now_ms + (rules.ttl_ms if ttl_ms is None else ttl_ms)
    tx.leave(message)
    tx.add(message.queue, message.status, -1, -message.bytes)
    tx.add(target, Status.READY, 1, message.bytes)
    tx.due(expires_after)
    position = moved_position(message.seq, message.position, rules.order)
    return is_dead_letter_queue(target), position, expires_after


def _move(tx: Transaction, message: Stored, target: str, reason: str) -> tuple[object, ...]:
    """Note a move to `target`; returns what the statement needs. Its own wish is fulfilled once, "" for ever."""
    now_ms = tx.now_ms
    is_dlq, position, expires_after = transfer(tx, message, target, None)
    return (
        target,
        is_dlq,
        position,
        now_ms,
        reason,
        message.queue,
        message.attempts,
        now_ms,
        None if message.dead_letter_queue else message.dead_letter_queue,
        now_ms,
        expires_after,
        message.seq,
    )
