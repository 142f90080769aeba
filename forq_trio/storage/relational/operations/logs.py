"""The two logs: copies messages that are removed for good into the history, and trims the old end of each log."""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

from forq_trio.model import limits
from forq_trio.model.commands import PurgeHistory, PurgeStep, Removed, TrimEvents, TrimHistory
from forq_trio.model.fingerprints import fingerprint_key
from forq_trio.storage.logs import believable_until, one_step, outcome_of, outlived, retention_steps
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.row import Row
from forq_trio.storage.relational.transaction import Transaction


class _Finished(NamedTuple):
    id: int
    queue: str
    bytes: int
    finished_at: int
    kept_until: int | None


Keep = Callable[[Transaction, Sequence[Row], str, str], None]
"""Stores messages in the history that are about to be removed, as `keep_all` does."""


def keep_all(tx: Transaction, messages: Sequence[Row], change: str, event_reason: str) -> None:
    """Copy messages that are about to be removed, if the history is on. change: ACKED or CLEANED_UP."""
    if not tx.history.log.enabled:
        return
    outcome, reason = outcome_of(change, event_reason)
    rows = [
        (history_id, outcome, reason, tx.now_ms, number, total, message.seq)
        for message, (history_id, number, total) in zip(messages, tx.history.add(messages), strict=True)
    ]
    tx.run("keep_finished", rows)


def note_reasons(tx: Transaction, reasons: Sequence[tuple[Row, str]]) -> None:
    """Note why messages are about to be removed, if the history is on: it copies their last errors."""
    if tx.history.log.enabled:
        noted = [(reason, fingerprint_key(reason), message.seq) for message, reason in reasons]
        tx.run("note_last_error", noted)


@operation_on_each(TrimEvents)
def trim_events(tx: Transaction, command: TrimEvents) -> Removed:
    """Remove the oldest events that retention removes; the newest event always stays."""
    log = tx.events.log
    if log.first >= log.last:
        return Removed(0, more=False)
    bound = limits.EVENTS_TRIMMED_MAX * retention_steps(log.bytes, command.bytes_max)
    before_first_min = log.bytes_to_last - command.bytes_max
    believable = believable_until(command.before_ms, tx.now_ms)
    kept = tx.query(
        "first_event_to_keep", bound, command.before_ms, before_first_min, log.last, believable, log.first
    )
    first: int = kept[0][0] if kept else log.first + bound
    if first <= log.first:
        return Removed(0, more=False)
    tx.query("delete_events", log.first, first)
    ((first, before_first),) = tx.query("first_event", first)
    tx.events.log = log._replace(first=first, bytes_before_first=before_first)
    return Removed(first - log.first, more=not kept)


@operation_on_each(TrimHistory)
def trim_history(tx: Transaction, command: TrimHistory) -> Removed:
    size = tx.history.log.bytes
    steps = retention_steps(size, command.bytes_max)
    rows = tx.query("oldest_finished", tx.history.log.first, steps * limits.HISTORY_STEP_MESSAGES + 1)
    oldest = [_Finished(*row) for row in rows]
    enabled = tx.history.log.enabled
    wanted = outlived(
        oldest,
        command.finished_before,
        size,
        command.bytes_max,
        tx.now_ms,
        enabled=enabled,
        beyond=len(_results_beyond(tx, oldest)),
    )
    removed = one_step(wanted, steps)
    if removed:
        _forget(tx, removed, removed[-1].id + 1)
    return Removed(len(removed), len(removed) < len(wanted))


@operation_on_each(PurgeHistory, changes=lambda _, command: [command.queue])
def purge_history(tx: Transaction, command: PurgeHistory) -> PurgeStep:
    up_to = tx.history.log.last if command.up_to is None else command.up_to
    bound = limits.HISTORY_STEP_MESSAGES + 1
    oldest = [_Finished(*row) for row in tx.query("oldest_finished_of_queue", command.queue, up_to, bound)]
    removed = one_step(oldest)
    if removed:
        _forget(tx, removed, tx.history.log.first)
    return PurgeStep(len(removed), up_to if len(removed) < len(oldest) else None)


def oldest_is_result(tx: Transaction) -> bool:
    """Whether the oldest finished message has a result, or there is none."""
    oldest = tx.query("oldest_finished", tx.history.log.first, 1)
    return not oldest or _Finished(*oldest[0]).kept_until is not None


def forget_results(tx: Transaction, added: int) -> None:
    """While the history is off and there are too many results: remove more of the oldest than were added."""
    if tx.history.log.enabled or tx.history.results(tx.query) <= limits.RESULTS_STORED_MAX:
        return
    steps = 1 + added // limits.HISTORY_STEP_MESSAGES
    rows = tx.query("oldest_finished", tx.history.log.first, steps * limits.HISTORY_STEP_MESSAGES)
    removed = one_step(_results_beyond(tx, [_Finished(*row) for row in rows]), steps)
    if removed:
        _forget(tx, removed, removed[-1].id + 1)


def _results_beyond(tx: Transaction, oldest: Sequence[_Finished]) -> Sequence[_Finished]:
    """Those of the oldest finished messages that are too many results, while the history is off."""
    if tx.history.log.enabled or tx.history.results(tx.query) <= limits.RESULTS_STORED_MAX:
        return ()
    last = tx.history.log.last - limits.RESULTS_STORED_MAX
    return list(takewhile(lambda each: each.id <= last and each.kept_until is not None, oldest))


def _forget(tx: Transaction, removed: Sequence[_Finished], first: int) -> None:
    """Remove these messages from the history. first: its first id afterwards, if it has any left."""
    for message in removed:
        tx.history.remove(message.queue, message.bytes)
    tx.query("forget_finished", str([message.id for message in removed]))
    log = tx.history.log
    if not tx.query("oldest_finished", first, 1):
        first = log.last + 1
    removed_bytes = log.bytes_before_first + sum([message.bytes for message in removed])
    tx.history.log = log._replace(first=first, bytes_before_first=removed_bytes)
    tx.query("save_history_ends", first - 1, log.last)
