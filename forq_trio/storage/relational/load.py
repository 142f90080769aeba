"""Fills the cache from a file that was just opened."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import apsw
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
from forq_trio.storage.relational.cache import Cache, QueueHistory
from forq_trio.storage.relational.operations.consumers import read_consumer
from forq_trio.storage.relational.operations.redrives import read_task
from forq_trio.storage.relational.operations.tokens import read_token
from forq_trio.storage.relational.row import read_settings
from forq_trio.storage.relational.transaction import SQL

T = TypeVar("T")


def load(connection: apsw.Connection, defaults: EngineSettings, path: str) -> Cache:
    """The cache as the tables have it. Costs a row per queue, not per message, and a few steps per group.

    All groups with held messages count as freed: if a crash came after the batch that freed one, nothing else would
    make its held messages ready.

    Raises StorageOpenError, which names the file by `path`, for a row that cannot be read.
    """
    cache = Cache(defaults)
    counted: dict[str, QueueCounts] = {}
    for queue, grouped, unhold_cursor, made_by, *counts in connection.execute(SQL["load_counts"]):
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
            for queue, text in connection.execute(SQL["load_settings"])
        }
    )
    cache.tokens = {
        row[0]: _whole(f"the access token {row[0]}", read_token, row, path)
        for row in connection.execute(SQL["load_tokens"])
    }
    sessions = [UiSession(*row) for row in connection.execute(SQL["load_sessions"])]
    cache.sessions = {session.digest: session for session in sessions}
    cache.redrives = {
        task_id: _whole(f"the redrive {task_id}", read_task, text, path)
        for task_id, text in connection.execute(SQL["load_redrives"])
    }
    stages, size, in_progress, first_entry, last_entry, apps = next(connection.execute(SQL["load_staging"]))
    cache.staging = Staging(stages, size, in_progress, first_entry, last_entry, apps, _shares(connection))
    for queue, number, total, *kept in connection.execute(SQL["load_history"]):
        cache.history[queue] = QueueHistory(number, total, HistoryCounts(*kept))
    ((gone, last),) = connection.execute(SQL["load_history_ends"])
    size = sum(each.kept.bytes for each in cache.history.values())
    cache.logs["history"] = Log(defaults.history, gone + 1, last, 0, size)
    consumers = [
        _whole(f"consumer {name} of queue {queue}", read_consumer, text, path)
        for queue, name, text in connection.execute(SQL["load_consumers"])
    ]
    cache.consumers = {consumer.key: consumer for consumer in consumers}
    pages_bytes = sum(consumer.stored_bytes for consumer in consumers)
    (forgotten,) = connection.execute(SQL["load_forgotten_consumers"])
    cache.consumer_totals = ConsumerTotals(pages_bytes, *forgotten)
    for queue, counts in cache.counts.items():
        if counts.held and queue not in cache.unhold_cursors:
            groups = connection.execute(SQL["held_groups"], (queue,))
            cache.freed |= dict.fromkeys((queue, group_id) for (group_id,) in groups)
    cache.logs["events"] = _event_log(connection, cache.logs["events"])
    cache.last_seq = connection.execute(SQL["last_sequence"]).get
    for queue in cache.settings:
        rate = cache.rules(queue).queue_rate
        if rate is not None:
            found = connection.execute(SQL["find_bucket"], (queue, "", rate.count, rate.period_ms)).get
            cache.rates_full_at[queue] = 0 if found is None else -(-found // rate.count)
    cache.has_buckets = bool(connection.execute(SQL["has_buckets"]).get)
    cache.schedules = _schedules(connection)
    due = [connection.execute(SQL["next_due"], (1,)).get, connection.execute(SQL["next_wake"]).get]
    due.append(cache.schedules.due_at)
    cache.next_due_ms = min([at for at in due if at is not None], default=None)
    return cache


def _schedules(connection: apsw.Connection) -> ScheduleTotals:
    """How many schedules there are, and when the next run is due."""
    made = {made_by: count for made_by, count in connection.execute(SQL["load_schedules"])}
    count = sum(made.values())
    made.pop(None, None)
    return ScheduleTotals(count, made, connection.execute(SQL["next_schedule"]).get)


def _shares(connection: apsw.Connection) -> Mapping[str, KeyShare]:
    """The stages and apps that each key has made."""
    shares: Mapping[str, KeyShare] = {}
    for made_by, waits, size in connection.execute(SQL["load_stages"]):
        shares = shares_with(shares, made_by, stages=waits, size=size)
    for made_by, count in connection.execute(SQL["count_apps"]):
        shares = shares_with(shares, made_by, apps=count)
    return shares


def _event_log(connection: apsw.Connection, log: Log) -> Log:
    """Which events there are. What a damaged one says of bytes counts as nothing: then fewer are removed."""
    rows = [*connection.execute(SQL["first_event"]), *connection.execute(SQL["last_event"])]
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
