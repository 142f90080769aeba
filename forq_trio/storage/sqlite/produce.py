"""Sends: one INSERT for all messages of all producers in the batch."""

from collections.abc import Sequence
from typing import Any

from forq_trio.commands import Produce, ProduceMany
from forq_trio.model import NewMessage, Produced, Status
from forq_trio.storage.engine import PRODUCED
from forq_trio.storage.sqlite.transaction import Transaction


def produce(tx: Transaction, commands: Sequence[Produce]) -> list[Produced]:
    rows: list[tuple[Any, ...]] = []
    outcomes = [_store(tx, command.queue, command.message, rows) for command in commands]
    tx.run("insert_message", rows)
    return outcomes


def produce_many(tx: Transaction, commands: Sequence[ProduceMany]) -> list[tuple[Produced, ...]]:
    rows: list[tuple[Any, ...]] = []
    outcomes = [
        tuple([_store(tx, command.queue, message, rows) for message in command.messages])
        for command in commands
    ]
    tx.run("insert_message", rows)
    return outcomes


def _store(tx: Transaction, queue: str, message: NewMessage, rows: list[tuple[Any, ...]]) -> Produced:
    """Give the message its id and number and add its row, unless its deduplication id is known."""
    dedup_id = message.deduplication_id
    if dedup_id is not None:
        first = tx.query("find_dedup", queue, dedup_id, tx.now_ms)
        if first:
            return Produced(first[0][0], first[0][1], duplicate=True)
    tx.admit(queue)
    now_ms = tx.now_ms
    process_after = message.process_after_ms
    status = Status.READY
    if process_after is None:
        process_after = now_ms
    elif process_after > now_ms:
        status = Status.DELAYED
    expires_after = process_after + tx.settings.queue_ttl_ms
    tx.last_seq = seq = tx.last_seq + 1
    message_id = tx.ids.next()
    rows.append(
        (
            seq,
            message_id,
            queue,
            int(status),
            process_after,
            now_ms,
            now_ms,
            expires_after,
            message.priority,
            seq,
            dedup_id,
            message.content,
        )
    )
    if dedup_id is not None:
        window_end = now_ms + message.deduplication_window_ms
        tx.query("save_dedup", queue, dedup_id, message_id, seq, window_end)
    tx.add(queue, status)
    tx.note(PRODUCED, queue)
    tx.due(expires_after if status is Status.READY else process_after)
    return Produced(message_id, seq)
