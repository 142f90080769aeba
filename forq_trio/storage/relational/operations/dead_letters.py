"""Failed, expired and evicted messages: moved to their dead-letter queue, or deleted."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from forq_trio.model.messages.types import REASON_EXPIRED, Status
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.model.queues.setting_values import NO_DEAD_LETTERS
from forq_trio.storage.engine import ACKED, CLEANED_UP, MOVED_TO_DLQ
from forq_trio.storage.logs import outcome_of
from forq_trio.storage.relational.operations.logs import Keep, keep_all
from forq_trio.storage.relational.row import Row
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.relational.waiting_offers import Waiting, read_waiting
from forq_trio.storage.rules import dead_letter_target, moved_position

WaitingBehind = Mapping[int, tuple[str, Waiting]]
"""The keys of messages, and the offers that wait behind them, by sequence."""


def dead_letter_or_delete(
    tx: Transaction, messages: Sequence[Row], event_reason: str, reason: str, target: str | None = None
) -> None:
    """Move messages to their dead-letter queues, or delete those that have none, or have expired where that deletes.

    target: the queue to move them to instead, "" to delete them. event_reason: the reason of the event; reason: of the
    column `failure_reason`.
    """
    removed: list[Row] = []
    moved: list[tuple[object, ...]] = []
    waiting = read_all_waiting(tx, messages)
    for message in messages:
        goes_to = target
        if goes_to is None:
            deletes = reason == REASON_EXPIRED and tx.rules(message.queue).deletes_expired
            goes_to = NO_DEAD_LETTERS if deletes else target_of(tx, message)
        if goes_to in (NO_DEAD_LETTERS, message.queue):
            removed.append(message)
        else:
            (alone,) = without_waiting(tx, [message], waiting=waiting)
            moved.append(_move(tx, alone, goes_to, event_reason, reason))
    remove(tx, removed, CLEANED_UP, event_reason)
    tx.run("dead_letter", moved)


def target_of(tx: Transaction, message: Row) -> str:
    """The dead-letter queue of a message; its own one only if that exists or may be created."""
    own = message.dead_letter_queue
    if own and tx.admit(own) is not None:
        own = None
    return dead_letter_target(message.queue, own, tx.rules(message.queue))


def remove(
    tx: Transaction,
    messages: Sequence[Row],
    change: str,
    event_reason: str = "",
    *,
    alone: bool = True,
    keep: Keep = keep_all,
) -> None:
    """Delete messages for good. change: ACKED or CLEANED_UP; event_reason: the reason of the event.

    alone: True if offers that wait behind their keys become messages now; False if they are removed, too. keep: called
    with the messages before they go.
    """
    if not messages:
        return
    keyed = [message.seq for message in messages if message.kind is not None]
    if keyed:
        messages = without_waiting(tx, messages, goes_on=alone)
    keep(tx, messages, change, event_reason)
    tx.withdrawn.note(tx.now_ms, messages, change, event_reason)
    if change == ACKED:
        tx.endings.note_acks(messages)
    else:
        tx.endings.note(messages, outcome_of(change, event_reason)[0])
    if keyed:
        tx.query("delete_keys", str(keyed))
    tx.delete([message.seq for message in messages])
    if len(messages) == 1:
        (one,) = messages
        tx.transition(change, one.queue, one.status, None, messages, size=one.bytes, reason=event_reason)
        return
    alike: dict[tuple[str, int], list[Row]] = {}
    for message in messages:
        alike.setdefault((message.queue, message.status), []).append(message)
    for (queue, status), each in alike.items():
        size = sum([message.bytes for message in each])
        tx.transition(change, queue, status, None, each, size=size, reason=event_reason)


def remove_for_user(tx: Transaction, messages: Sequence[Row]) -> None:
    """Delete messages because somebody asked for it."""
    remove(tx, messages, CLEANED_UP, "deleted_by_user")


def drop(tx: Transaction, messages: Sequence[Row]) -> None:
    """`remove_for_user`, including the offers that wait behind their keys."""
    remove(tx, messages, CLEANED_UP, "deleted_by_user", alone=False)


def read_all_waiting(tx: Transaction, messages: Sequence[Row]) -> WaitingBehind:
    """The offers that wait behind the keys of these messages."""
    keyed = [message.seq for message in messages if message.kind is not None]
    rows = tx.query("read_all_waiting", str(keyed)) if keyed else ()
    return {seq: (key, read_waiting(waiting)) for seq, key, waiting in rows}


def without_waiting(
    tx: Transaction, messages: Sequence[Row], *, goes_on: bool = True, waiting: WaitingBehind | None = None
) -> Sequence[Row]:
    """These messages without the offers that wait behind their keys, which become messages (`waiting.store_waiting`).

    goes_on: False if the offers are removed instead. waiting: the offers, if they were read already.
    """
    found = read_all_waiting(tx, messages) if waiting is None else waiting
    if not found:
        return messages
    alone = []
    for message in messages:
        if message.seq in found:
            key, behind = found[message.seq]
            if goes_on:
                tx.leftovers.offers.append((message.queue, (str(message.kind), key), behind))
            message = resized(tx, message, -behind.size)
            tx.query("save_waiting", 0, None, message.seq)
        alone.append(message)
    return alone


def resized(tx: Transaction, message: Row, size: int) -> Row:
    """Note that the offer behind a message grew by `size` bytes (below 0: shrank); returns the message."""
    tx.counts.resize(message.queue, size)
    tx.query("resize_message", message.bytes + size, message.seq)
    return replace(message, bytes=message.bytes + size)


def transfer(
    tx: Transaction, message: Row, target: str, ttl_ms: int | None, change: str, event_reason: str = ""
) -> tuple[bool, int, int]:
    """Note that a message moves to `target` and is ready there; returns its is_dlq, position and expires_after.

    ttl_ms: its time to live there; None for that of the target. change: MOVED_TO_DLQ or REQUEUED.
    """
    rules = tx.rules(target)
    expires_after = tx.now_ms + (rules.ttl_ms if ttl_ms is None else ttl_ms)
    if change == MOVED_TO_DLQ:
        tx.endings.note((message,), "dead")
    position = moved_position(message.seq, message.position, rules.order, tx.now_ms)
    tx.transition(
        change,
        message.queue,
        message.status,
        Status.READY,
        (message if position == message.position else replace(message, position=position),),
        size=message.bytes,
        due_ms=expires_after,
        to=target,
        reason=event_reason,
    )
    return is_dead_letter_queue(target), position, expires_after


def _move(tx: Transaction, message: Row, target: str, event_reason: str, reason: str) -> tuple[object, ...]:
    """Note a move to `target`; returns the bindings of `dead_letter`.

    The message's own dead-letter queue is used only once, but "" (delete the message) stays.
    """
    now_ms = tx.now_ms
    is_dlq, position, expires_after = transfer(tx, message, target, None, MOVED_TO_DLQ, event_reason)
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
