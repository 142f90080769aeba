"""Retention of lifecycle events: the oldest are removed, a few at a time, and never the newest."""

from collections.abc import Sequence

from forq_trio.model import limits
from forq_trio.model.commands import Removed, TrimEvents
from forq_trio.storage.rules import believable_until, retention_steps
from forq_trio.storage.sqlite.transaction import Transaction


def trim(tx: Transaction, commands: Sequence[TrimEvents]) -> list[Removed]:
    return [_trim(tx, command) for command in commands]


def _trim(tx: Transaction, command: TrimEvents) -> Removed:
    log = tx.event_log
    if log.first >= log.last:
        return Removed(0, more=False)
    bound = limits.EVENTS_TRIMMED_MAX * retention_steps(log.bytes, command.bytes_max)
    before_first_min = log.bytes_to_last - command.bytes_max
    believable = believable_until(command.before_ms, tx.now_ms)
    kept = tx.query("first_event_to_keep", bound, command.before_ms, before_first_min, log.last, believable)
    first: int = kept[0][0] if kept else log.first + bound
    if first <= log.first:
        return Removed(0, more=False)
    tx.query("delete_events", first)
    ((first, before_first),) = tx.query("first_event")
    tx.event_log = log._replace(first=first, bytes_before_first=before_first)
    return Removed(first - log.first, more=not kept)
