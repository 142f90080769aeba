"""Sends: one INSERT for all messages of all producers in the batch, and one lookup of their deduplication ids and
groups (`look_up`). If they still have to wait for the database too often, the next batch sends the rest."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from forq_trio.model.commands import Produce, ProduceEach, ProduceMany
from forq_trio.model.errors import ForqError, QueueFull, QueueNotFound
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.model.queues.setting_values import Order
from forq_trio.model.queues.settings import QueueRules
from forq_trio.storage.engine import DEFERRED, PRODUCED, Deferred
from forq_trio.storage.relational.operations.dedup import (
    find_first,
    look_up_dedup,
    save_windows,
    start_window,
)
from forq_trio.storage.relational.operations.eviction import evict_for
from forq_trio.storage.relational.operations.groups import look_up_groups, position_and_group
from forq_trio.storage.relational.operations.table import carry_out_each, operation
from forq_trio.storage.relational.parts.inserts import OWN, PLAIN
from forq_trio.storage.relational.row import write_attributes
from forq_trio.storage.relational.statements import check_order
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import due_time, message_bytes
from forq_trio.storage.transitions import DELAYED, READY

Outcome = Produced | ForqError | Deferred
Key = tuple[str, str]
"""Kind and key of a message."""
_NO_KEY = None, None

check_order(  # as `store` puts rows together
    PLAIN, "seq id queue status process_after received_at expires_after priority position bytes content"
)
check_order(  # and `_own`
    OWN,
    "is_dlq max_attempts default_max_receives ttl_ms group_id attributes dedup_id dead_letter_queue kind key",
)


@operation(Produce)
def produce(tx: Transaction, commands: Sequence[Produce]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    look_up(tx, [(command.queue, command.message) for command in commands])
    for queue, group in groupby(commands, key=attrgetter("queue")):
        alike = list(group)
        is_left = bool(outcomes) and tx.waited_out
        outcomes += [DEFERRED] * len(alike) if is_left else _send_alike(tx, queue, alike)
    tx.leave_inserts()
    return outcomes


@operation(ProduceMany)
def produce_many(
    tx: Transaction, commands: Sequence[ProduceMany]
) -> list[tuple[Produced, ...] | ForqError | Deferred]:
    look_up(tx, [(command.queue, message) for command in commands for message in command.messages])
    outcomes = carry_out_each(tx, commands, _send_many, None)
    tx.leave_inserts()
    return outcomes


@operation(ProduceEach)
def produce_each(
    tx: Transaction, commands: Sequence[ProduceEach]
) -> list[tuple[Produced | ForqError, ...] | Deferred]:
    look_up(tx, [each for command in commands for each in command.messages])
    outcomes = carry_out_each(tx, commands, _send_across, None)
    tx.leave_inserts()
    return outcomes


def look_up(tx: Transaction, messages: Sequence[tuple[str, NewMessage]]) -> None:
    """Read at once what sends need to know about the deduplication ids and groups of these messages."""
    if len(messages) > 1 and tx.connection.is_distant:
        look_up_dedup(tx, messages)
        look_up_groups(tx, messages)


def _send_many(tx: Transaction, command: ProduceMany) -> tuple[Produced, ...] | ForqError | Deferred:
    """Store these messages, all or none."""
    stored = _unknown(tx, command) or send(tx, command.queue, command.messages)
    return tuple(stored) if isinstance(stored, list) else stored


def _send_across(tx: Transaction, command: ProduceEach) -> tuple[Produced | ForqError, ...] | Deferred:
    """Store these messages, each on its own. If the first has to wait, all do; a later one is refused instead."""
    newest = tx.sequence.last
    results: list[Produced | ForqError] = []
    for queue, message in command.messages:
        stored = send(tx, queue, (message,), newest, command.messages_max)
        if not isinstance(stored, Deferred):
            results.append(stored[0] if isinstance(stored, list) else stored)
        elif results:
            results.append(QueueFull())
        else:
            return DEFERRED
    return tuple(results)


def _send_alike(tx: Transaction, queue: str, commands: Sequence[Produce]) -> Sequence[Outcome]:
    """Store the messages of commands for one queue."""
    if not tx.is_known(queue) and any(command.known_only for command in commands):
        # Once one of them has made the queue, the others find it.
        return [_unknown(tx, command) or _send_each(tx, queue, [command.message])[0] for command in commands]
    return _send_each(tx, queue, [command.message for command in commands])


def _unknown(tx: Transaction, command: Produce | ProduceMany) -> QueueNotFound | None:
    """QueueNotFound for a command that must not make its queue, if there is none."""
    return QueueNotFound() if command.known_only and not tx.is_known(command.queue) else None


def _send_each(tx: Transaction, queue: str, messages: Sequence[NewMessage]) -> Sequence[Outcome]:
    """Store these messages, each on its own, or all together if none can be refused."""
    rules = tx.rules(queue)
    if not is_bounded(rules) and tx.admit(queue, *_named(messages)) is None:
        return store(tx, queue, messages, rules)
    sent = [send(tx, queue, (message,)) for message in messages]
    return [stored[0] if isinstance(stored, list) else stored for stored in sent]


def send(
    tx: Transaction,
    queue: str,
    messages: Sequence[NewMessage],
    newest: int | None = None,
    messages_max: int | None = None,
    key: Key | None = None,
) -> list[Produced] | ForqError | Deferred:
    """Store these messages, except known duplicates; or store none and return the error.

    newest, messages_max: see `evict_for`. key: of the one message.
    """
    refusal: ForqError | Deferred | None = tx.admit(queue, *_named(messages))
    if refusal is not None:
        return refusal
    rules = tx.rules(queue)
    if messages_max is not None or is_bounded(rules):
        newest = tx.sequence.last if newest is None else newest
        refusal = evict_for(tx, queue, messages, rules, newest, messages_max)
        if refusal is not None:
            return refusal
    return store(tx, queue, messages, rules, key)


def _named(messages: Sequence[NewMessage]) -> list[str]:
    """The dead-letter queues that messages name."""
    return [message.dead_letter_queue for message in messages if message.dead_letter_queue]


def is_bounded(rules: QueueRules) -> bool:
    """True if a queue may be full."""
    return rules.max_messages is not None or rules.max_bytes is not None


def store(
    tx: Transaction, queue: str, messages: Sequence[NewMessage], rules: QueueRules, key: Key | None = None
) -> list[Produced]:
    """Give the messages ids and sequence numbers and note their rows, except those of known duplicates.

    key: of the one message, None for none.
    """
    now_ms = tx.now_ms
    in_order = rules.order is Order.FIFO and queue not in tx.grouped
    is_dlq = is_dead_letter_queue(queue)
    next_id = tx.ids.next
    seq = tx.sequence.last
    arrivals: dict[int, _Arrivals] = {}
    produced = []
    for message in messages:
        content = message.content
        dedup_id = message.deduplication_id
        if dedup_id is not None and (first := find_first(tx, queue, dedup_id)) is not None:
            produced.append(Produced(*first, duplicate=True))
            continue
        due_ms = due_time(message, now_ms, rules)
        expires_after = due_ms + (rules.ttl_ms if message.ttl_ms is None else message.ttl_ms)
        seq += 1
        message_id = next_id(seq)
        status = DELAYED if due_ms > now_ms else READY
        plain = (seq, message_id, queue, status, due_ms, now_ms, expires_after, message.priority)
        row: tuple[Any, ...]
        if in_order and not is_dlq and key is None and _is_plain(message):
            message_size = len(content) if content.isascii() else len(content.encode())
            row = (*plain, seq, message_size, content)
            tx.inserts.plain.append(row)
        else:
            message_size = message_bytes(content, message.attributes)
            position, group_id = position_and_group(
                tx, queue, rules.order, message.group, seq, due_ms, message.priority, status
            )
            in_order = in_order and group_id is None
            row = (*plain, position, message_size, content, is_dlq, *_own(message, group_id, key))
            tx.inserts.others.append(row)
            if message.dead_letter_queue:
                tx.counts.make_known(message.dead_letter_queue)
        if status not in arrivals:
            arrivals[status] = _Arrivals()
        clock_ms = expires_after if status == READY else min(due_ms, expires_after)
        arrivals[status].add(row, message_size, clock_ms)
        produced.append(Produced(message_id, seq))
        if dedup_id is not None:
            window_ms = message.deduplication_window_ms
            if window_ms is None:
                window_ms = rules.deduplication_window_ms
            start_window(tx, queue, dedup_id, (message_id, seq), window_ms)
    tx.sequence.last = seq
    if messages:
        tx.scans.stir(queue, max(message.priority for message in messages) if in_order else None)
    save_windows(tx)
    for status, each in arrivals.items():
        tx.transition(PRODUCED, queue, None, status, each.rows, size=each.size, due_ms=each.due_ms)
    return produced


class _Arrivals:
    """New messages of one status: their rows, their bytes, and their earliest due time."""

    __slots__ = ("due_ms", "rows", "size")

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.size = 0
        self.due_ms: int | None = None

    def add(self, row: tuple[Any, ...], size: int, due_ms: int) -> None:
        self.rows.append(row)
        self.size += size
        if self.due_ms is None or due_ms < self.due_ms:
            self.due_ms = due_ms


def _is_plain(message: NewMessage) -> bool:
    """Whether a message sets none of the members that `insert_plain` leaves out."""
    return (
        message.group is None
        and message.attributes is None
        and message.deduplication_id is None
        and message.ttl_ms is None
        and message.max_attempts is None
        and message.default_max_receives is None
        and message.dead_letter_queue is None
    )


def _own(message: NewMessage, group_id: str | None, key: Key | None) -> tuple[Any, ...]:
    """The columns that `insert_plain` leaves out, except `is_dlq`."""
    return (
        message.max_attempts,
        message.default_max_receives,
        message.ttl_ms,
        group_id,
        write_attributes(message.attributes) if message.attributes else None,
        message.deduplication_id,
        message.dead_letter_queue,
        *(key or _NO_KEY),
    )
