"""Fills the cache from a database."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from forq_trio.model.consumers import ConsumerTotals
from forq_trio.model.errors import StorageOpenError
from forq_trio.model.history import HistoryCounts
from forq_trio.model.logs import Log
from forq_trio.model.messages import QueueCounts
from forq_trio.model.publishing import KeyShare, Staging
from forq_trio.model.schedules import ScheduleTotals
from forq_trio.model.sessions import UiSession
from forq_trio.storage.apps import shares_with
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.logs import event_bytes
from forq_trio.storage.relational.cache import DUE_FROM_START, DUE_NEVER, Cache, QueueHistory
from forq_trio.storage.relational.operations.consumers import read_consumer
from forq_trio.storage.relational.operations.redrives import read_task
from forq_trio.storage.relational.operations.tokens import read_token
from forq_trio.storage.relational.row import read_settings
from forq_trio.storage.relational.statements import Query

T = TypeVar("T")


def load(query: Query, defaults: EngineSettings, path: str) -> Cache:
    """The cache as the tables have it. Costs a row per queue, not per message, and a few steps per group.

    All groups with held messages count as freed: if a crash came after the batch that freed one, nothing else would
    make its held messages ready.

    Raises StorageOpenError, which names the database by `path`, for a row that cannot be read.
    """
    cache = Cache(defaults)
    counted: dict[str, QueueCounts] = {}
    for queue, grouped, unhold_cursor, made_by, *counts in query("load_counts"):
        if not all(type(count) is int for count in counts):
            raise StorageOpenError(f"{path} is damaged: the counts of queue {queue} cannot be read")
        counted[queue] = QueueCounts(*counts)
        if made_by is not None:
            cache.take_makers({queue: made_by})
        if grouped:
            cache.grouped.add(queue)
        if unhold_cursor is not None:
            cache.unhold_cursors[queue] = unhold_cursor
    cache.take_counts(counted)
    cache.change_settings(
        {
            queue: _whole(f"the settings of queue {queue}", read_settings, text, path)
            for queue, text in query("load_settings")
        }
    )
    cache.tokens = {
        row[0]: _whole(f"the access token {row[0]}", read_token, row, path) for row in query("load_tokens")
    }
    sessions = [UiSession(*row) for row in query("load_sessions")]
    cache.sessions = {session.digest: session for session in sessions}
    cache.redrives = {
        task_id: _whole(f"the redrive {task_id}", read_task, text, path)
        for task_id, text in query("load_redrives")
    }
    stages, size, in_progress, first_entry, last_entry, apps = query("load_staging")[0]
    cache.staging = Staging(stages, size, in_progress, first_entry, last_entry, apps, _shares(query))
    for queue, number, total, *kept in query("load_history"):
        cache.history[queue] = QueueHistory(number, total, HistoryCounts(*kept))
    ((gone, last),) = query("load_history_ends")
    size = sum(each.kept.bytes for each in cache.history.values())
    cache.logs["history"] = Log(defaults.history, gone + 1, last, 0, size)
    _load_consumers(cache, query, path)
    for queue, counts in cache.counts.items():
        if counts.held and queue not in cache.unhold_cursors:
            groups = query("held_groups", queue)
            cache.freed |= dict.fromkeys((queue, group_id) for (group_id,) in groups)
    cache.logs["events"] = _event_log(query, cache.logs["events"])
    cache.last_seq = _first(query("last_sequence"))
    for queue in cache.settings:
        rate = cache.rules(queue).queue_rate
        if rate is not None:
            found = _first(query("find_bucket", queue, "", rate.count, rate.period_ms))
            cache.rates_full_at[queue] = 0 if found is None else -(-found // rate.count)
    cache.has_buckets = bool(_first(query("has_buckets")))
    cache.schedules = _schedules(query)
    first_due = _first(query("next_due", DUE_FROM_START, 1))
    cache.due_from_ms = DUE_NEVER if first_due is None else first_due
    due = [first_due, _first(query("next_wake"))]
    due.append(cache.schedules.due_at)
    cache.next_due_ms = min([at for at in due if at is not None], default=None)
    return cache


def _first(rows: Sequence[Any]) -> Any:
    """The first column of the first row; None where there is none."""
    return rows[0][0] if rows else None


def _schedules(query: Query) -> ScheduleTotals:
    """How many schedules there are, and when the next run is due."""
    made = {made_by: count for made_by, count in query("load_schedules")}
    count = sum(made.values())
    made.pop(None, None)
    return ScheduleTotals(count, made, _first(query("next_schedule")))


def _shares(query: Query) -> Mapping[str, KeyShare]:
    """The stages and apps that each key has made."""
    shares: Mapping[str, KeyShare] = {}
    for made_by, waits, size in query("load_stages"):
        shares = shares_with(shares, made_by, stages=waits, size=size)
    for made_by, count in query("count_apps"):
        shares = shares_with(shares, made_by, apps=count)
    return shares


def _load_consumers(cache: Cache, query: Query, path: str) -> None:
    consumers = [
        _whole(f"consumer {name} of queue {queue}", read_consumer, text, path)
        for queue, name, text in query("load_consumers")
    ]
    cache.consumers = {consumer.key: consumer for consumer in consumers}
    ((generation, number),) = query("load_forgotten_consumers")
    cache.consumer_totals = ConsumerTotals(
        sum([consumer.stored_bytes for consumer in consumers]),
        generation,
        number,
        sum([consumer.leased_bytes for consumer in consumers]),
    )


def _event_log(query: Query, log: Log) -> Log:
    """Which events there are. What a damaged one says of bytes counts as nothing: then fewer are removed."""
    rows = [*query("first_event"), *query("last_event")]
    if not rows:
        return log
    (first, begin), (last, end, queue, reason, target) = rows
    begin, end = (total if type(total) is int else 0 for total in (begin, end))
    return log._replace(
        first=first,
        last=last,
        bytes_before_first=begin,
        bytes_to_last=max(begin, end + event_bytes(queue or "", reason, target)),
    )


def _whole(what: str, read: Callable[[Any], T], stored: Any, path: str) -> T:
    """A stored value. Raises StorageOpenError, which says what cannot be read."""
    try:
        return read(stored)
    except (msgspec.MsgspecError, TypeError):
        raise StorageOpenError(f"{path} is damaged: {what} cannot be read") from None
