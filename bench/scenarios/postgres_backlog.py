"""A claim of one message on PostgreSQL beside a large backlog: the whole batch, from the call to the durable commit.

Every claim is a batch of its own, as a lone consumer makes it; the ack is the next batch, and is not counted.
"""

from contextlib import closing
from time import perf_counter, time
from typing import Any

import psycopg

from bench.load.histogram import Histogram
from bench.scenarios.context import Context, Row
from bench.scenarios.postgres import database_beside, postgres_url, promise
from forq_trio.model.commands import Ack, Claim, Command
from forq_trio.model.messages.types import Receipt
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.open import open_engine

DAY_MS = 86_400_000
LEASE_MS = 600_000
READY, DELAYED = 0, 3
FILL = """
INSERT INTO forq.messages (seq, id, queue, status, process_after, received_at, updated_at, expires_after, priority,
                           position, bytes, content)
SELECT n, 'id-' || n, %(queue)s, %(status)s, %(due)s, %(now)s, %(now)s, %(now)s + 30 * 86400000::bigint, 100, n,
       octet_length(%(content)s), %(content)s
FROM generate_series(%(first)s::bigint, %(first)s::bigint + %(count)s - 1) n
"""
COUNT = """
INSERT INTO forq.queue_counts (queue, ready, processing, failed, delayed, bytes, updated_at, last_seq)
SELECT %(queue)s, count(*) FILTER (WHERE status = 0), 0, 0, count(*) FILTER (WHERE status = 3), sum(bytes), %(now)s,
       max(seq)
FROM forq.messages
"""


def postgres_backlog(context: Context) -> list[Row]:
    """Claims of one on PostgreSQL with a backlog of ready and delayed messages."""
    url = postgres_url(context)
    if url is None:
        return []
    queue, settings = context.queue("backlog"), context.settings
    with database_beside(url) as database:
        open_engine(database, EngineSettings(), "full").close()
        _fill(context, database, queue)
        with closing(open_engine(database, EngineSettings(), "full")) as engine:
            taken = _claim(engine, queue, settings.backlog_samples)
        stored = {"ready": settings.backlog_ready, "delayed": settings.backlog_delayed}
        server = promise(database)
    return [{**stored, **taken.summary(), **server}]


def _fill(context: Context, database: str, queue: str) -> None:
    """Store the backlog, and update the database's statistics as autovacuum would."""
    settings, now = context.settings, round(time() * 1_000)
    values = {"queue": queue, "now": now, "content": context.content}
    with psycopg.connect(database, autocommit=True) as connection:
        first = 1
        for status, count, due in (
            (READY, settings.backlog_ready, now),
            (DELAYED, settings.backlog_delayed, now + DAY_MS),
        ):
            connection.execute(
                FILL.encode(), {**values, "status": status, "due": due, "first": first, "count": count}
            )
            first += count
        connection.execute(COUNT.encode(), values)
        connection.execute("VACUUM ANALYZE")


def _claim(engine: Any, queue: str, samples: int) -> Histogram:
    """How long each of `samples` claims took."""
    taken = Histogram()
    clock = engine.clock()

    def run(command: Command[Any]) -> Any:
        result = engine.execute_batch(Batch([command], clock.now_ms()))
        engine.commit()
        return result.outcomes[0]

    for _ in range(samples):
        began = perf_counter()
        (delivery,) = run(Claim(queue, 1, LEASE_MS, 0))
        taken.record(round((perf_counter() - began) * 1e9))
        run(Ack(queue, (Receipt.parse(delivery.receipt),)))
    return taken
