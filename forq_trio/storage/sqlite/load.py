"""Fills the cache from a file that was just opened."""

import apsw

from forq_trio.model.messages import QueueCounts
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.cache import Cache
from forq_trio.storage.sqlite.operations.tokens import read_token
from forq_trio.storage.sqlite.row import read_settings
from forq_trio.storage.sqlite.transaction import SQL


def load(connection: apsw.Connection, defaults: EngineSettings) -> Cache:
    """The cache as the tables have it. Costs a row per queue, not per message, and a few steps per group.

    The first batch counts the groups with held messages as freed: if a crash came after the batch that freed one
    (`free_next`), nothing else would make its held messages ready.
    """
    cache = Cache(defaults)
    for queue, grouped, unhold_cursor, *counts in connection.execute(SQL["load_counts"]):
        cache.counts[queue] = QueueCounts(*counts)
        if grouped:
            cache.grouped.add(queue)
        if unhold_cursor is not None:
            cache.unhold_cursors[queue] = unhold_cursor
    cache.change_settings(
        {queue: read_settings(settings) for queue, settings in connection.execute(SQL["load_settings"])}
    )
    tokens = map(read_token, connection.execute(SQL["load_tokens"]))
    cache.change_tokens({token.name: token for token in tokens})
    for queue, counts in cache.counts.items():
        if counts.held and queue not in cache.unhold_cursors:
            cache.free_next.update(
                (queue, group_id) for (group_id,) in connection.execute(SQL["held_groups"], (queue,))
            )
    cache.last_seq = connection.execute(SQL["last_sequence"]).get
    cache.next_due_ms = connection.execute(SQL["next_due"]).get
    return cache
