"""Sends: one INSERT for all messages of all producers in the batch."""

from collections.abc import Sequence
from typing import Any

from forq_trio.commands import Produce, ProduceMany
from forq_trio.model import NewMessage, Produced, Status
from forq_trio.storage.engine import PRODUCED
from forq_trio.storage.sqlite.transaction import Transaction

Rows = list[tuple[Any, ...]]


def produce(tx: Transaction, commands: Sequence[Produce]) -> list[Produced]:
    rows: Rows = []
    outcomes = [_store(tx, command.queue, (command.message,), rows)[0] for command in commands]
    tx.run("insert_message", rows)
    return outcomes


def produce_many(tx: Transaction, commands: Sequence[ProduceMany]) -> list[tuple[Produced, ...]]:
    rows: Rows = []
    outcomes = [tuple(_store(tx, command.queue, command.messages, rows)) for command in commands]
    tx.run("insert_message", rows)
    return outcomes


def _store(tx: Transaction, queue: str, messages: Sequence[NewMessage], rows: Rows) -> list[Produced]:
    """Give the messages ids and numbers and add their rows, except where the deduplication id is known."""
    tx.admit(queue)
    now_ms = tx.now_ms
    ttl_ms = tx.settings.queue_ttl_ms
    next_id = tx.ids.next
    seq = tx.last_seq
    counts = [0, 0, 0, 0]
    produced = []
    for message in messages:
        dedup_id = message.deduplication_id
        if dedup_id is not None and (first := tx.query("find_dedup", queue, dedup_id, now_ms)):
            produced.append(Produced(first[0][0], first[0][1], duplicate=True))
            continue
        due_ms = now_ms if message.process_after_ms is None else message.process_after_ms
        status = Status.DELAYED if due_ms > now_ms else Status.READY
        seq += 1
        message_id = next_id()
        row = (
            seq,
            message_id,
            queue,
            status,
            due_ms,
            now_ms,
            now_ms,
            due_ms + ttl_ms,
            message.priority,
            seq,
            dedup_id,
            message.content,
        )
        rows.append(row)
        produced.append(Produced(message_id, seq))
        counts[status] += 1
        tx.due(due_ms if due_ms > now_ms else due_ms + ttl_ms)
        if dedup_id is not None:
            window_end = now_ms + message.deduplication_window_ms
            tx.query("save_dedup", queue, dedup_id, message_id, seq, window_end)
    tx.last_seq = seq
    for status in (Status.READY, Status.DELAYED):
        if counts[status]:
            tx.add(queue, status, counts[status])
    if sum(counts):
        tx.note(PRODUCED, queue, sum(counts))
    return produced
