"""The reference engine: sends, the bounds of queues, and evictions."""

from collections.abc import Sequence

import uuid6

from forq_trio.model import limits
from forq_trio.model.commands import Produce, ProduceEach, ProduceMany, Resubmit
from forq_trio.model.errors import InvalidContent, Overloaded, QueueFull, ServiceError
from forq_trio.model.messages import REASON_OVERFLOW, NewMessage, Produced, Status
from forq_trio.model.queue_settings import Order, Overflow
from forq_trio.storage import engine, rules
from forq_trio.storage.memory.groups import group_and_position
from forq_trio.storage.memory.state import FirstSend, Row
from forq_trio.storage.memory.transaction import Transaction


def produce(tx: Transaction, command: Produce) -> Produced:
    return _send(tx, command.queue, (command.message,), tx.state.last_seq)[0]


def produce_many(tx: Transaction, command: ProduceMany) -> tuple[Produced, ...]:
    return _send(tx, command.queue, command.messages, tx.state.last_seq)


def produce_each(tx: Transaction, command: ProduceEach) -> tuple[Produced | ServiceError, ...]:
    newest = tx.state.last_seq
    outcomes: list[Produced | ServiceError] = []
    for queue, message in command.messages:
        try:
            outcomes += _send(tx, queue, (message,), newest, command.messages_max)
        except ServiceError as error:
            outcomes.append(error)
    return tuple(outcomes)


def resubmit(tx: Transaction, command: Resubmit) -> Produced | None:
    """Remove the original before the send, so it neither takes the space of its copy nor is evicted for it."""
    row = next((row for row in tx.state.of_queue(command.queue) if row.id == command.message_id), None)
    if row is None or (command.remove and row.status is Status.PROCESSING):
        return None
    target = row.source_queue if command.target is None else command.target
    if target is None:
        return None
    if command.remove:
        tx.clean_up(row, "deleted_by_user")
    copy = NewMessage(
        content=row.content if command.content is None else command.content,
        attributes=row.attributes if command.attributes is None else command.attributes,
        priority=row.priority,
        group=row.shown_group,
        ttl_ms=row.ttl_ms,
        max_attempts=row.max_attempts,
        dead_letter_queue=row.dead_letter_queue,
    )
    return _send(tx, target, (copy,), tx.state.last_seq)[0]


def _send(
    tx: Transaction, queue: str, messages: Sequence[NewMessage], newest: int, messages_max: int | None = None
) -> tuple[Produced, ...]:
    """Store all messages or none: refusals come before the first one is stored.

    newest: the last sequence given out before this command; later messages are not evicted. messages_max: one more
    bound, of this send alone: it refuses, and never evicts.
    """
    if queue not in tx.state.queues and len(tx.state.queues) >= limits.QUEUES_MAX:
        raise Overloaded(f"there are {limits.QUEUES_MAX} queues already")
    try:
        for message in messages:
            message.content.encode()
    except UnicodeEncodeError:
        raise InvalidContent from None
    _evict_for(tx, queue, _not_known_yet(tx, queue, messages), newest, messages_max)
    return tuple(_store(tx, queue, message) for message in messages)


def _not_known_yet(tx: Transaction, queue: str, messages: Sequence[NewMessage]) -> list[NewMessage]:
    """The messages that will be stored: their deduplication ids are not known."""
    seen: set[str] = set()
    new = []
    for message in messages:
        key = message.deduplication_id
        if key is not None:
            if key in seen or _first_send(tx, queue, key) is not None:
                continue
            seen.add(key)
        new.append(message)
    return new


def _first_send(tx: Transaction, queue: str, key: str) -> FirstSend | None:
    first = tx.state.first_sends.get((queue, key))
    return first if first is not None and first.expires_at > tx.now_ms else None


def _evict_for(
    tx: Transaction, queue: str, messages: Sequence[NewMessage], newest: int, messages_max: int | None
) -> None:
    """Evict messages until these fit, as the queue's overflow says, or raise QueueFull."""
    if not messages:
        return
    counts = tx.state.counts(queue)
    if messages_max is not None and counts.total + len(messages) > messages_max:
        raise QueueFull
    queue_rules = tx.rules(queue)
    total_max = float("inf") if queue_rules.max_messages is None else queue_rules.max_messages - len(messages)
    size = sum(rules.message_bytes(message.content, message.attributes) for message in messages)
    bytes_max = float("inf") if queue_rules.max_bytes is None else queue_rules.max_bytes - size
    if total_max < 0 or bytes_max < 0:
        raise QueueFull
    victims = _victims(tx, queue, newest) if queue_rules.overflow is not Overflow.REJECT else []
    total, stored_bytes = counts.total, counts.bytes
    evicted = []
    while total > total_max or stored_bytes > bytes_max:
        if not victims:
            raise QueueFull
        victim = victims.pop(0)
        evicted.append(victim)
        total -= 1
        stored_bytes -= victim.bytes
    for victim in evicted:
        if queue_rules.overflow is Overflow.DROP_OLDEST:
            tx.clean_up(victim, "overflow")
        else:
            tx.dead_letter_or_delete(victim, "overflow", REASON_OVERFLOW)


def _victims(tx: Transaction, queue: str, newest: int) -> list[Row]:
    """The ready messages that may be evicted: the lowest priority first, within it the oldest."""
    lifo = tx.rules(queue).order is Order.LIFO
    ready = [row for row in tx.state.claimable(queue) if row.seq <= newest]
    if lifo:
        ready.reverse()
    return sorted(ready, key=lambda row: row.priority)


def _store(tx: Transaction, queue: str, message: NewMessage) -> Produced:
    key = message.deduplication_id
    first = None if key is None else _first_send(tx, queue, key)
    if first is not None:
        return Produced(first.id, first.seq, duplicate=True)
    queue_rules = tx.rules(queue)
    process_after = rules.due_time(message, tx.now_ms, queue_rules)
    ttl_ms = queue_rules.ttl_ms if message.ttl_ms is None else message.ttl_ms
    seq = tx.state.last_seq = tx.state.last_seq + 1
    group, position = group_and_position(tx, queue, message, seq)
    row = Row(
        seq=seq,
        id=str(uuid6.uuid7()),
        queue=queue,
        content=message.content,
        status=rules.initial_status(process_after, tx.now_ms),
        priority=message.priority,
        position=position,
        received_at=tx.now_ms,
        process_after=process_after,
        updated_at=tx.now_ms,
        expires_after=rules.expires_after(process_after, ttl_ms),
        max_attempts=message.max_attempts,
        ttl_ms=message.ttl_ms,
        attributes=message.attributes or None,
        group=group,
        dead_letter_queue=message.dead_letter_queue,
    )
    if key is not None:
        window_ms = message.deduplication_window_ms
        window_ms = queue_rules.deduplication_window_ms if window_ms is None else window_ms
        tx.state.first_sends[queue, key] = FirstSend(row.id, row.seq, tx.now_ms + window_ms)
    tx.transition(engine.PRODUCED, None, row)
    return Produced(row.id, row.seq)
