"""Databases and tables in trouble: what mends itself is waited for, what does not ends the consumer with a sentence."""

import logging

import anyio
import anyio.to_thread
import psycopg
import pytest

from forq_trio import pgq
from forq_trio.model.errors import StorageUnavailable
from forq_trio.pgq import Consumer, Message
from forq_trio.pgq.tables import Tables
from support.processes import WAIT_SECONDS_MAX

# The number: until they have ended, at most so many ms.
OF_CONSUMERS = (
    "SELECT pg_terminate_backend(pid, 9999) FROM pg_stat_activity WHERE application_name = 'forq pgq'"
)


def counting(consumer: Consumer, table: str, number: int) -> list[int]:
    """What a handler has got; after so many it stops the consumer."""
    seen: list[int] = []

    @consumer.on(table)
    async def handle(payload: dict[str, int]) -> None:
        seen.append(payload["n"])
        if len(seen) == number:
            consumer.stop()

    return seen


async def serve(consumer: Consumer) -> None:
    with anyio.fail_after(WAIT_SECONDS_MAX):
        await consumer.serve()


@pytest.mark.parametrize(
    ("change", "named"),
    [("DROP TABLE {}", "Order"), ("ALTER TABLE {} DROP COLUMN consumed_count", "consumed_count")],
)
@pytest.mark.parametrize("before", [True, False])
async def test_a_table_or_column_that_is_gone_ends_the_consumer(
    pgq_url, connection, rows, table, change, named, before
) -> None:
    consumer = Consumer(pgq_url, polling=0.05)

    @consumer.on(table)
    async def handle(payload: dict) -> None:
        await anyio.to_thread.run_sync(rows.run, change)

    if before:
        rows.run(change)
    else:
        pgq.publish(connection, table, Message({}))
    with pytest.raises(pgq.WrongTable, match=named) as raised:
        await serve(consumer)
    assert isinstance(raised.value, pgq.NoTable) is change.startswith("DROP")


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_lost_connections_are_made_again(pgq_url, connection, table, backend, caplog) -> None:
    async def main() -> None:
        consumer = Consumer(pgq_url, polling=0.1)
        seen: list[int] = []
        first = anyio.Event()

        @consumer.on(table, concurrency=1)
        async def handle(payload: dict[str, int]) -> None:
            seen.append(payload["n"])
            if len(seen) == 1:
                await anyio.to_thread.run_sync(connection.execute, OF_CONSUMERS)
                pgq.publish(connection, table, *(Message({"n": n}) for n in range(1, 30)))
            if len(seen) == 30:
                consumer.stop()
            first.set()

        pgq.publish(connection, table, Message({"n": 0}))
        await serve(consumer)
        assert seen == list(range(30))

    anyio.run(main, backend=backend)
    (left,) = connection.execute(
        psycopg.sql.SQL("SELECT count(*) FROM {} WHERE processed_at IS NULL").format(
            psycopg.sql.Identifier(table)
        )
    ).fetchone()
    assert left == 0


async def test_a_server_that_starts_again_is_found_again(postgres, pgq_url, connection, table) -> None:
    pgq.publish(connection, table, *(Message({"n": n}) for n in range(2)))
    consumer = Consumer(pgq_url, polling=0.1)
    seen: list[int] = []

    @consumer.on(table, concurrency=1)
    async def handle(payload: dict[str, int]) -> None:
        seen.append(payload["n"])
        if len(seen) == 1:
            await anyio.to_thread.run_sync(postgres.restart)
        else:
            consumer.stop()

    await serve(consumer)
    assert seen == [0, 1]


async def test_a_table_that_is_locked_is_waited_for(
    locks_are_short, pgq_url, connection, rows, table, caplog
) -> None:
    pgq.publish(connection, table, Message({"n": 1}))
    consumer = Consumer(pgq_url)
    seen = counting(consumer, table, 1)
    refused = anyio.Event()

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            refused.set()

    logger = logging.getLogger("forq_trio.worker")
    told = Told(logging.WARNING)
    logger.addHandler(told)
    try:
        with psycopg.connect(pgq_url) as other:
            other.execute(psycopg.sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(rows.table))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve, consumer)
                await refused.wait()
                assert seen == []
                other.rollback()
    finally:
        logger.removeHandler(told)
    assert seen == [1]
    assert "lock timeout" in caplog.text


async def test_without_a_database_a_call_says_so_and_shows_no_password(table) -> None:
    url = "postgresql://anna:geheim@127.0.0.1:1/nowhere"
    async with pgq.Publisher(url) as publisher:
        with pytest.raises(StorageUnavailable, match=r"cannot be reached: .*refused") as raised:
            await publisher.publish(table, Message({}))
    assert "geheim" not in repr(raised.value)


async def test_idle_connections_that_the_server_has_closed_are_not_used(
    tables: Tables, connection, table, rows
) -> None:
    rows.add()
    (delivery,) = await tables.receive(table)
    (ended,) = connection.execute(f"SELECT count(*) FROM ({OF_CONSUMERS}) AS ended").fetchone()
    assert ended >= 1
    with anyio.fail_after(WAIT_SECONDS_MAX):
        assert (await tables.ack(table, [delivery.receipt]))[0].ok


async def test_a_server_that_has_become_a_replica_is_left(pgq_url, rows, table) -> None:
    read_only = f"{pgq_url}&options=-c%20default_transaction_read_only%3Don"
    async with pgq.Publisher(read_only) as publisher:
        with pytest.raises(StorageUnavailable, match="read-only transaction"):
            await publisher.publish(table, Message({}))
        assert publisher._connections._idle == []
    assert rows.all() == []
