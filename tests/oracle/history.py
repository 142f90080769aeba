"""The reference engine: finished messages."""

from collections.abc import Iterable

from forq_trio.model.commands import PurgeHistory, PurgeStep, Removed, TrimHistory
from forq_trio.model.logs.history import FinishedMessage
from forq_trio.storage.logs import outlived
from oracle.operations import operation
from oracle.transaction import Transaction


@operation(TrimHistory)
def trim(tx: Transaction, command: TrimHistory) -> Removed:
    oldest = list(tx.state.history.messages.values())
    size = sum(message.bytes for message in oldest)
    enabled = tx.state.defaults.history
    removed = outlived(
        oldest,
        command.finished_before,
        size,
        command.bytes_max,
        tx.now_ms,
        enabled=enabled,
        beyond=0 if enabled else len(tx.state.history.results_beyond),
    )
    if removed:
        tx.state.history.gone = removed[-1].history_id
        _forget(tx, removed)
    return Removed(len(removed), more=False)


@operation(PurgeHistory)
def purge(tx: Transaction, command: PurgeHistory) -> PurgeStep:
    up_to = tx.state.history.last if command.up_to is None else command.up_to
    removed = [
        message
        for message in tx.state.history.messages.values()
        if message.queue == command.queue and message.history_id <= up_to
    ]
    _forget(tx, removed)
    return PurgeStep(len(removed), None)


def forget_results(tx: Transaction) -> None:
    """Remove those of the oldest messages that are too many results."""
    removed = tx.state.history.results_beyond
    if removed:
        tx.state.history.gone = removed[-1].history_id
        _forget(tx, removed)


def _forget(tx: Transaction, removed: Iterable[FinishedMessage]) -> None:
    for message in removed:
        del tx.state.history.messages[message.history_id]
    if not tx.state.history.messages:
        tx.state.history.gone = tx.state.history.last
