"""A cycle on PostgreSQL, for us and for other queues: send a number of messages, receive as many, settle them.

Each function here is a context manager that yields the function of one cycle. `apart`: each call is a transaction of
its own, as its users have it; otherwise a cycle is one transaction, like a batch of ours. All of them use one
connection.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from importlib.resources import files
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

import psycopg

from forq_trio.model.commands import Ack, Claim, Command, Produce
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, Receipt
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.open import open_engine

LEASE_SECONDS = 600
Cycle = Callable[[], None]


@dataclass(frozen=True)
class Work:
    """The work of a process: in its own queue of a database, a number of messages with this content in each cycle."""

    url: str
    queue: str
    content: str
    messages: int
    apart: bool = False

    def once(self, connection: psycopg.Connection[Any]) -> AbstractContextManager[object]:
        """The transaction of a cycle, if it is one."""
        return nullcontext() if self.apart else connection.transaction()

    def payloads(self) -> list[str]:
        """The messages as JSON objects, which others ask for."""
        return [json.dumps({"content": self.content})] * self.messages


@contextmanager
def forq(work: Work) -> Iterator[Cycle]:
    """Our engine: a batch, one transaction: ids, leases fenced by a receipt, counts; one writer at a time."""
    engine = open_engine(work.url, EngineSettings(), "full")
    clock = engine.clock()
    held: Sequence[Delivery] = ()

    def cycle() -> None:
        nonlocal held
        commands: list[Command[Any]] = [Produce(work.queue, NewMessage(work.content))] * work.messages
        if held:
            commands.append(Ack(work.queue, tuple(Receipt.parse(each.receipt) for each in held)))
        commands.append(Claim(work.queue, work.messages, LEASE_SECONDS * 1_000, 0))
        result = engine.execute_batch(Batch(commands, clock.now_ms()))
        engine.commit()
        held = result.outcomes[-1]
        _whole(held, work)

    try:
        yield cycle
    finally:
        engine.close()


@contextmanager
def pgmq(work: Work) -> Iterator[Cycle]:
    """pgmq's functions: send_batch, read, delete; no fencing, no dead-letter queue, no counts."""
    queue, messages = work.queue.replace("-", "_"), work.payloads()
    with psycopg.connect(work.url, autocommit=True) as connection:
        connection.execute("SELECT pgmq.create(%s)", (queue,))

        def cycle() -> None:
            with work.once(connection):
                connection.execute("SELECT pgmq.send_batch(%s, %s::jsonb[])", (queue, messages))
                taken = connection.execute(
                    "SELECT * FROM pgmq.read(%s, %s, %s)", (queue, LEASE_SECONDS, work.messages)
                )
                ids = [row[0] for row in taken]
                connection.execute("SELECT pgmq.delete(%s, %s::bigint[])", (queue, ids))
            _whole(ids, work)

        yield cycle


PGQ_TABLE = """
CREATE TABLE {table} (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    started_at timestamptz, locked_until timestamptz, scheduled_for timestamptz, processed_at timestamptz,
    consumed_count integer NOT NULL DEFAULT 0, error_detail text, payload jsonb NOT NULL, metadata jsonb NOT NULL);
CREATE INDEX ON {table} (created_at);
CREATE INDEX ON {table} (processed_at) WHERE processed_at IS NULL;
CREATE INDEX ON {table} (scheduled_for ASC NULLS LAST) WHERE processed_at IS NULL;
CREATE INDEX ON {table} USING gin (metadata) WHERE processed_at IS NULL;
"""
PGQ_CLAIM = """
UPDATE {table} SET consumed_count = consumed_count + 1, started_at = CURRENT_TIMESTAMP,
    locked_until = CURRENT_TIMESTAMP + make_interval(secs => %s)
WHERE id IN (
    SELECT id FROM {table}
    WHERE processed_at IS NULL AND consumed_count < 3
        AND (locked_until IS NULL OR locked_until < CURRENT_TIMESTAMP)
        AND (scheduled_for IS NULL OR scheduled_for < CURRENT_TIMESTAMP)
    ORDER BY scheduled_for ASC NULLS LAST, consumed_count, created_at LIMIT %s FOR UPDATE SKIP LOCKED)
RETURNING id, payload, metadata, consumed_count, locked_until
"""


@contextmanager
def pgq(work: Work) -> Iterator[Cycle]:
    """What Go's pgq does on its table, an ack a message: no fencing, finished messages stay, claims walk past them."""
    table, payloads = f'"{work.queue}"', work.payloads()
    publish = f"INSERT INTO {table} (payload, metadata) VALUES {', '.join(['(%s, %s)'] * work.messages)} RETURNING id"
    values = [value for payload in payloads for value in (payload, "{}")]
    ack = f"UPDATE {table} SET locked_until = NULL, processed_at = CURRENT_TIMESTAMP WHERE id = %s"
    with psycopg.connect(work.url, autocommit=True) as connection:
        connection.execute(PGQ_TABLE.format(table=table))
        claim = PGQ_CLAIM.format(table=table).encode()

        def cycle() -> None:
            with work.once(connection):
                connection.execute(publish.encode(), values)
                ids = [row[0] for row in connection.execute(claim, (LEASE_SECONDS, work.messages))]
                for each in ids:
                    connection.execute(ack.encode(), (each,))
            _whole(ids, work)

        yield cycle


@contextmanager
def pgqueuer(work: Work) -> Iterator[Cycle]:
    """PgQueuer's Queries on asyncpg: enqueue, dequeue, log_jobs; its workers' heartbeats are left out."""
    import asyncpg
    from pgqueuer.ports.repository import EntrypointExecutionParameter
    from pgqueuer.queries import Queries

    count, who = work.messages, uuid4()
    payloads = [payload.encode() for payload in work.payloads()]
    entrypoints = {work.queue: EntrypointExecutionParameter(0)}
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(work.url))
        queries = Queries.from_asyncpg_connection(connection)

        async def cycle() -> None:
            await queries.enqueue([work.queue] * count, payloads, [0] * count)
            jobs = await queries.dequeue(count, entrypoints, who, None, timedelta(seconds=LEASE_SECONDS))
            await queries.log_jobs([(job, "successful", None) for job in jobs])
            _whole(jobs, work)

        yield lambda: runner.run(cycle())
        runner.run(connection.close())


def _whole(received: Sequence[object], work: Work) -> None:
    """Raise an error if a cycle has received fewer messages than it sent, because it would measure something else."""
    if len(received) != work.messages:
        raise AssertionError(f"received {len(received)} of {work.messages} messages")


CYCLES = {cycle.__name__: cycle for cycle in (forq, pgmq, pgqueuer, pgq)}
IN_ONE_TRANSACTION = {"forq", "pgmq", "pgq"}
APART = {"pgmq", "pgq", "pgqueuer"}


def install(url: str, say: Callable[[str], None]) -> Iterator[str]:
    """Make in this database what the others need, and name those that are installed."""
    yield "forq"
    if _is_here("pgmq", say):
        script = files("pgmq").joinpath("sql/pgmq.sql").read_text(encoding="utf-8")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(script.encode())
        yield "pgmq"
    if _is_here("pgqueuer", say) and _is_here("asyncpg", say):
        asyncio.run(_install_pgqueuer(url))
        yield "pgqueuer"
    yield "pgq"


def _is_here(package: str, say: Callable[[str], None]) -> bool:
    found = find_spec(package) is not None
    if not found:
        say(f"SKIPPED peer: {package} is not installed (extra: bench)")
    return found


async def _install_pgqueuer(url: str) -> None:
    import asyncpg
    from pgqueuer.queries import Queries

    connection = await asyncpg.connect(url)
    await Queries.from_asyncpg_connection(connection).install()
    await connection.close()
