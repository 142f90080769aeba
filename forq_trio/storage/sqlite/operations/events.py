"""Retention of lifecycle events: the oldest are removed, a few at a time, and never the newest."""

from collections.abc import Sequence

from forq_trio.model import limits
from forq_trio.model.commands import Swept, TrimEvents
from forq_trio.storage.rules import believable_until
from forq_trio.storage.sqlite.transaction import Transaction


def trim(tx: Transaction, commands: Sequence[TrimEvents]) -> list[Swept]:
    return [_trim(tx, command) for command in commands]


def _trim(tx: Transaction, command: TrimEvents) -> Swept:
    log = tx.event_log
    if log.first >= log.last:
        return Swept(0, more=False)
    bound = limits.EVENTS_TRIMMED_MAX
    begin_min = log.end - command.bytes_max
    believable = believable_until(command.before_ms, tx.now_ms)
    kept = tx.query("first_event_to_keep", bound, command.before_ms, begin_min, log.last, believable)
    first: int = kept[0][0] if kept else log.first + bound
    if first <= log.first:
        return Swept(0, more=False)
    tx.query("delete_events", first)
    ((first, begin),) = tx.query("first_event")
    tx.event_log = log._replace(first=first, begin=begin)
    return Swept(first - log.first, more=not kept)
