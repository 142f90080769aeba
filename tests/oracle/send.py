"""The reference engine: sends, the bounds of queues, and evictions."""

from collections.abc import Sequence

import msgspec
import uuid6

from forq_trio.model import limits
from forq_trio.model.commands import Produce, ProduceEach, ProduceMany, Resubmit
from forq_trio.model.errors import ForqError, InvalidContent, QueueFull, QueueNotFound
from forq_trio.model.message_batches.types import OWN_ATTRIBUTES
from forq_trio.model.messages.attributes import replaced
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import REASON_OVERFLOW, NewMessageWithDefaultBound, Produced, Status
from forq_trio.model.queues.setting_values import Order, Overflow
from forq_trio.storage import engine, rules
from oracle.groups import group_and_position
from oracle.operations import operation
from oracle.state import FirstSend, Keyed, Row
from oracle.transaction import Transaction


@operation(Produce)
def produce(tx: Transaction, command: Produce) -> Produced | QueueFull:
    _check_known(tx, command)
    sent = send(tx, command.queue, (command.message,), tx.state.last_seq)
    return sent[0] if isinstance(sent, tuple) else sent


@operation(ProduceMany)
def produce_many(tx: Transaction, command: ProduceMany) -> tuple[Produced, ...] | QueueFull:
    _check_known(tx, command)
    return send(tx, command.queue, command.messages, tx.state.last_seq)


def _check_known(tx: Transaction, command: Produce | ProduceMany) -> None:
    if command.known_only and command.queue not in {*tx.state.queues, *tx.state.settings}:
        raise QueueNotFound


@operation(ProduceEach)
def produce_each(tx: Transaction, command: ProduceEach) -> tuple[Produced | ForqError, ...]:
    """Store messages, each on its own."""
    newest = tx.state.last_seq
    outcomes: list[Produced | ForqError] = []
    for queue, message in command.messages:
        try:
            sent = send(tx, queue, (message,), newest, command.messages_max)
            outcomes.append(sent[0] if isinstance(sent, tuple) else sent)
        except ForqError as error:
            outcomes.append(error)
    return tuple(outcomes)


@operation(Resubmit)
def resubmit(tx: Transaction, command: Resubmit) -> Produced | None:
    """Send an edited copy. The original is removed first: it neither takes the copy's space nor is evicted for it."""
    row = next((row for row in tx.state.of_queue(command.queue) if row.id == command.message_id), None)
    if row is None:
        return None
    if command.remove and row.status is Status.PROCESSING:
        return None
    target = row.source_queue if command.target is None else command.target
    if target is None:
        return None
    if command.remove:
        tx.clean_up(row, "deleted_by_user")
    attributes = (
        row.attributes if command.attributes is None else replaced(row.attributes, command.attributes)
    )
    copy = NewMessageWithDefaultBound(
        content=row.content if command.content is None else command.content,
        attributes=attributes and {k: v for k, v in attributes.items() if k not in OWN_ATTRIBUTES},
        priority=row.priority,
        group=row.shown_group,
        ttl_ms=row.ttl_ms,
        max_attempts=row.max_attempts,
        dead_letter_queue=row.dead_letter_queue,
        default_max_receives=row.default_max_receives,
    )
    sent = send(tx, target, (copy,), tx.state.last_seq)
    if isinstance(sent, QueueFull):
        raise sent  # undoes the removal, too
    return sent[0]


def send(
    tx: Transaction,
    queue: str,
    messages: Sequence[NewMessage],
    newest: int,
    messages_max: int | None = None,
    key: Keyed | None = None,
) -> tuple[Produced, ...] | QueueFull:
    """Store all messages or none: refusals come before the first one is stored.

    newest: the last sequence number given out before this command; later messages are not evicted. messages_max: an
    additional bound for this send: it refuses, and never evicts.
    """
    named = [message.dead_letter_queue for message in messages if message.dead_letter_queue]
    tx.check_admitted(queue, *named)
    try:
        for message in messages:
            message.content.encode()
    except UnicodeEncodeError:
        raise InvalidContent from None
    refusal = _evict_for(tx, queue, _not_known_yet(tx, queue, messages), newest, messages_max)
    if refusal is not None:
        return refusal
    return tuple(store(tx, queue, message, key) for message in messages)


def _not_known_yet(tx: Transaction, queue: str, messages: Sequence[NewMessage]) -> list[NewMessage]:
    """The messages that will be stored, because their deduplication ids are new."""
    keys = [message.deduplication_id for message in messages]
    return [
        message
        for index, (key, message) in enumerate(zip(keys, messages, strict=True))
        if key is None or (key not in keys[:index] and _first_send(tx, queue, key) is None)
    ]


def _first_send(tx: Transaction, queue: str, key: str) -> FirstSend | None:
    first = tx.state.first_sends.get((queue, key))
    return first if first is not None and first.expires_at > tx.now_ms else None


def _evict_for(
    tx: Transaction, queue: str, messages: Sequence[NewMessage], newest: int, messages_max: int | None
) -> QueueFull | None:
    """Evict messages until these fit, according to the queue's overflow; returns the outcome if the send is not stored.

    A send looks at a bounded number of messages; `rules.may_overflow` decides about the rest.
    """
    counts = tx.state.counts(queue)
    if not messages:
        return None
    queue_rules = tx.rules(queue)
    own_max = queue_rules.max_messages
    if messages_max is not None and own_max is None and counts.total + len(messages) > messages_max:
        return QueueFull()
    size = sum(rules.message_bytes(message.content, message.attributes) for message in messages)
    new = rules.Space(len(messages), size)
    over = rules.above(rules.Space(counts.total, counts.bytes), queue_rules)
    missing = rules.above(rules.Space(counts.total + len(messages), counts.bytes + size), queue_rules)
    if max(rules.above(new, queue_rules)) > 0:
        return QueueFull()
    if max(missing) <= 0:
        return None
    if queue_rules.overflow is Overflow.REJECT:
        return QueueFull()
    victims = _find_victims(tx, queue, newest, missing, len(messages))
    if victims is None:
        return QueueFull()
    fits = _make(victims, missing) or rules.may_overflow(over, new, _space_of(victims))
    while victims and (fits or max(over) > 0):
        victim = victims.pop(0)
        over = rules.Space(over.messages - 1, over.bytes - victim.bytes)
        if queue_rules.overflow is Overflow.DROP_OLDEST:
            tx.clean_up(victim, "overflow", with_waiting=True)
        else:
            tx.dead_letter_or_delete(victim, "overflow", REASON_OVERFLOW)
    return None if fits else QueueFull()


def _space_of(rows: Sequence[Row]) -> rules.Space:
    return rules.Space(len(rows), sum(row.bytes for row in rows))


def _make(rows: Sequence[Row], missing: rules.Space) -> bool:
    """Whether evicting these messages frees this space."""
    space = _space_of(rows)
    return space.messages >= missing.messages and space.bytes >= missing.bytes


def _find_victims(
    tx: Transaction, queue: str, newest: int, missing: rules.Space, sent: int
) -> list[Row] | None:
    """The messages to evict, as many as one send may look at; None if evicting all of them is not enough."""
    looked_at: list[Row] = []
    for row in _in_eviction_order(tx, queue):
        looked_at.append(row)
        found = [each for each in looked_at if each.seq <= newest]
        most = max(limits.EVICTED_MAX, sent)
        seen = _space_of(looked_at)
        if _make(found, missing) or seen.messages >= most or seen.bytes >= limits.STEP_BYTES_MAX:
            return found
    return None


def _in_eviction_order(tx: Transaction, queue: str) -> list[Row]:
    """The ready messages: the lowest priority first, within it the oldest."""
    lifo = tx.rules(queue).order is Order.LIFO
    ready = tx.state.claimable(queue)
    if lifo:
        ready.reverse()
    return sorted(ready, key=lambda row: row.priority)


def store_waiting(tx: Transaction) -> set[str]:
    """Store the offers that waited behind messages that are gone, in the order of going; returns their queues."""
    going_on, tx.going_on = tx.going_on, []
    for row in going_on:
        assert row.key is not None
        assert row.waiting is not None
        waiting = row.waiting
        key = msgspec.structs.replace(
            row.key,
            due=waiting.due,
            revision=waiting.revision,
            mode=waiting.offering.mode,
            offers=waiting.offers,
            first_offer_at=waiting.first_offer_at,
            last_offer_at=waiting.offered_at,
            max_wait_until=waiting.max_wait_until,
            waiting=None,
            pending=True,
        )
        assert tx.state.of_key(row.queue, key.kind, key.key) is None
        message = msgspec.structs.replace(waiting.offering.message, process_after=waiting.due, delay_ms=None)
        store(tx, row.queue, message, key)
    return {row.queue for row in going_on}


def send_one(
    tx: Transaction, queue: str, message: NewMessage, newest: int, key: Keyed
) -> Produced | QueueFull:
    """Send a message with a key that is free. newest: see `send`."""
    sent = send(tx, queue, (message,), newest, key=key)
    return sent[0] if isinstance(sent, tuple) else sent


def store(tx: Transaction, queue: str, message: NewMessage, keyed: Keyed | None = None) -> Produced:
    """Store a message. keyed: its key; revision 0 stands for the first one, the sequence number."""
    key = message.deduplication_id
    first = None if key is None else _first_send(tx, queue, key)
    if first is not None:
        return Produced(first.id, first.seq, duplicate=True)
    queue_rules = tx.rules(queue)
    process_after = rules.due_time(message, tx.now_ms, queue_rules)
    ttl_ms = queue_rules.ttl_ms if message.ttl_ms is None else message.ttl_ms
    seq = tx.state.last_seq = tx.state.last_seq + 1
    group, position = group_and_position(tx, queue, message, seq, process_after)
    if keyed is not None and not keyed.revision:
        keyed = msgspec.structs.replace(keyed, revision=seq)
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
        default_max_receives=message.default_max_receives,
        key=keyed,
    )
    if key is not None:
        window_ms = message.deduplication_window_ms
        window_ms = queue_rules.deduplication_window_ms if window_ms is None else window_ms
        tx.state.first_sends[queue, key] = FirstSend(row.id, row.seq, tx.now_ms + window_ms)
    if message.dead_letter_queue:
        tx.make_known(message.dead_letter_queue)
    tx.transition(engine.PRODUCED, None, row)
    return Produced(row.id, row.seq)
