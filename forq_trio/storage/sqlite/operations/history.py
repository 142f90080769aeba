"""The history: messages that go for good are copied into it, and its old end is removed in small steps."""

from collections.abc import Sequence
from typing import NamedTuple

from forq_trio.model import limits
from forq_trio.model.commands import Purged, PurgeHistory, Removed, TrimHistory
from forq_trio.storage.history import one_step, outcome_of, outlived
from forq_trio.storage.rules import retention_steps
from forq_trio.storage.sqlite.row import Row
from forq_trio.storage.sqlite.transaction import Transaction


class _Kept(NamedTuple):
    id: int
    queue: str
    bytes: int
    finished_at: int


def keep(tx: Transaction, messages: Sequence[Row], change: str, event_reason: str) -> None:
    """Copy messages that are about to be removed, if the history is on. change: ACKED or CLEANED_UP."""
    if not tx.history.on:
        return
    outcome, reason = outcome_of(change, event_reason)
    rows = []
    for message in messages:
        history_id, number, total = tx.history.add(message.queue, message.bytes)
        rows.append((history_id, outcome, reason, tx.now_ms, number, total, message.seq))
    tx.run("keep_finished", rows)


def trim(tx: Transaction, commands: Sequence[TrimHistory]) -> list[Removed]:
    return [_trim(tx, command) for command in commands]


def _trim(tx: Transaction, command: TrimHistory) -> Removed:
    steps = retention_steps(tx.history.bytes, command.bytes_max)
    oldest = [_Kept(*row) for row in tx.query("oldest_finished", steps * limits.HISTORY_STEP_MESSAGES + 1)]
    wanted = outlived(oldest, command.finished_before, tx.history.bytes, command.bytes_max, tx.now_ms)
    removed = one_step(wanted, steps)
    if removed:
        tx.history.gone = removed[-1].id
        _forget(tx, removed)
    return Removed(len(removed), len(removed) < len(wanted))


def purge(tx: Transaction, commands: Sequence[PurgeHistory]) -> list[Purged]:
    return [_purge(tx, command) for command in commands]


def _purge(tx: Transaction, command: PurgeHistory) -> Purged:
    up_to = tx.history.last if command.up_to is None else command.up_to
    bound = limits.HISTORY_STEP_MESSAGES + 1
    oldest = [_Kept(*row) for row in tx.query("oldest_finished_of_queue", command.queue, up_to, bound)]
    removed = one_step(oldest)
    if removed:
        _forget(tx, removed)
    return Purged(len(removed), up_to if len(removed) < len(oldest) else None)


def _forget(tx: Transaction, removed: Sequence[_Kept]) -> None:
    for message in removed:
        tx.history.remove(message.queue, message.bytes)
    tx.query("forget_finished", str([message.id for message in removed]))
    if not tx.query("oldest_finished", 1):
        tx.history.gone = tx.history.last
    tx.query("save_history_ends", tx.history.gone, tx.history.last)
