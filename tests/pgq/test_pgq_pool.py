"""Tables through PgBouncer: statements have their bounds, and nothing is left on the connections of the pool."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
import trio
import trio.testing

from forq_trio import ForqError, open_broker, pgq
from forq_trio.pgq.connections import connect, connected
from forq_trio.pgq.tables import TableOptions, Tables
from pgq.conftest import NUMBERS, locked, until_awaited
from pgq.rows import Rows
from pgq.theirs import Theirs
from support.pgbouncer import through
from support.processes import WAIT_SECONDS_MAX

LEFT = """SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
    (SELECT count(*) FROM pg_listening_channels())"""


@pytest.fixture
def pooled(postgres, pgq_url) -> Iterator[str]:
    with postgres.pool("transaction") as pool:
        yield through(pool, pgq_url)


def left_behind(pooled: str) -> set[tuple[object, ...]]:
    """What another program finds on the connections of the pool, which takes one after the other."""
    with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as other:
        return {tuple(other.execute(LEFT).fetchone()) for _ in range(12)}


async def test_publishers_and_consumers_leave_nothing_behind(pooled, table, rows: Rows) -> None:
    rows.run("INSERT INTO {} (payload, metadata) VALUES ('[]', '{{}}')")
    async with pgq.Publisher(pooled) as publisher:
        await publisher.publish(table, *(pgq.Message({"n": n}) for n in range(5)))
    async with Tables(pooled, TableOptions()).opened() as tables:
        for number in range(5):
            (delivery,) = await tables.receive(table)
            assert f'"n": {number}' in delivery.content
            assert (await tables.ack(table, [delivery.receipt]))[0].ok
        await trio.testing.wait_all_tasks_blocked(0.05)
    assert [row for row in rows.all() if row["processed_at"] is None] == []
    assert left_behind(pooled) == {("0", "0", 0)}


async def test_bounds_hold_through_a_pool(locks_are_short, pooled, table, pgq_url) -> None:
    async with Tables(pooled, TableOptions()).opened() as tables:
        with locked(pgq_url, table), pytest.raises(ForqError, match="somebody has locked"):
            await tables.receive(table)
    with connected(pooled) as connection:
        pgq.create_table(connection, f"made{next(NUMBERS)}")
    assert left_behind(pooled) == {("0", "0", 0)}


async def test_a_pool_that_passes_process_numbers_on_is_told_by_the_url(pgq_url, table) -> None:
    """Without a pool, all that a session would keep is seen."""
    url = f"{pgq_url}{'&' if '?' in pgq_url else '?'}pooled=yes"
    for given, is_pool in ((pgq_url, False), (url, True)):
        with connected(given) as connection:
            assert connection.pooled is is_pool
            assert connection.execute("SHOW lock_timeout").fetchone() != ("0",)
        with closing(connect(given)) as connection:
            assert (connection.execute("SHOW lock_timeout").fetchone() == ("0",)) is is_pool
    async with pgq.Publisher(url) as publisher:
        await publisher.publish(table, pgq.Message({"n": 1}))
    async with Tables(url, TableOptions()).opened() as tables:
        (delivery,) = await tables.receive(table)
        assert (await tables.ack(table, [delivery.receipt]))[0].ok


async def test_a_bound_queue_listens_beside_the_pool(
    only_told, pooled, pgq_url, table, theirs: Theirs
) -> None:
    async with open_broker(pooled, listen_url=pgq_url) as broker:
        queue = f"bound{next(NUMBERS)}"
        await broker.bind(queue, table)
        found = []

        async def receive() -> None:
            with trio.fail_after(WAIT_SECONDS_MAX):
                found.extend(await broker.receive(queue, wait_ms=30_000))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await until_awaited(theirs.connection, table)
            await trio.to_thread.run_sync(theirs.publish, {}, {})
    assert len(found) == 1
    assert left_behind(pooled) == {("0", "0", 0)}
