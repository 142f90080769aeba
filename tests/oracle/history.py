"""The reference engine: finished messages."""

from collections.abc import Sequence

from forq_trio.model.commands import PurgeHistory, PurgeStep, Removed, TrimHistory
from forq_trio.model.logs.history import FinishedMessage
from forq_trio.storage.logs import one_step, outlived, retention_steps
from oracle.operations import operation
from oracle.transaction import Transaction


@operation(TrimHistory)
def trim(tx: Transaction, command: TrimHistory) -> Removed:
    oldest = list(tx.state.history.messages.values())
    size = sum(message.bytes for message in oldest)
    wanted = outlived(oldest, command.finished_before, size, command.bytes_max, tx.now_ms)
    removed = one_step(wanted, retention_steps(size, command.bytes_max))
    if removed:
        tx.state.history.gone = removed[-1].history_id
        _forget(tx, removed)
    return Removed(len(removed), len(removed) < len(wanted))


@operation(PurgeHistory)
def purge(tx: Transaction, command: PurgeHistory) -> PurgeStep:
    up_to = tx.state.history.last if command.up_to is None else command.up_to
    oldest = [
        message
        for message in tx.state.history.messages.values()
        if message.queue == command.queue and message.history_id <= up_to
    ]
    removed = one_step(oldest)
    _forget(tx, removed)
    return PurgeStep(len(removed), up_to if len(removed) < len(oldest) else None)


def _forget(tx: Transaction, removed: Sequence[FinishedMessage]) -> None:
    for message in removed:
        del tx.state.history.messages[message.history_id]
    if not tx.state.history.messages:
        tx.state.history.gone = tx.state.history.last
