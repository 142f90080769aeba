"""The trigger of a table tells only while a consumer waits, and no consumer misses a message for it."""

from collections.abc import Iterator

import psycopg
import pytest
import trio

from forq_trio import pgq
from forq_trio.model import limits
from forq_trio.pgq.connections import PgqConnection
from forq_trio.pgq.tables import TableOptions, Tables
from forq_trio.pgq.wakes import Wakes
from pgq.conftest import until_awaited

FOR_EVER = 3_600.0


@pytest.fixture
def publisher(pgq_url, table) -> Iterator[psycopg.Connection]:
    """An application that also hears what it tells."""
    with psycopg.connect(pgq_url, autocommit=True) as connection:
        connection.execute("LISTEN forq_pgq")
        yield connection


def told(publisher: psycopg.Connection, table: str) -> list[str]:
    """What publishing a message tells."""
    pgq.publish(publisher, table, pgq.Message({}))
    publisher.execute("SELECT")
    return [each.payload for each in publisher.notifies(timeout=0) if each.payload == table]


def test_nobody_is_told_where_nobody_waits(publisher, table):
    assert told(publisher, table) == []


async def test_who_waits_is_told_and_no_longer_when_he_has_left(pgq_url, publisher, table):
    async with (
        Tables(pgq_url, TableOptions(polling_seconds=FOR_EVER)).opened() as tables,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(lambda: tables.receive(table, wait_ms=30_000))
        await until_awaited(publisher, table, 1)
        assert told(publisher, table) == [table]
        await until_awaited(publisher, table, 0)
        assert told(publisher, table) == []


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
async def test_what_was_published_before_he_waited_and_is_committed_later_is_found(
    pgq_url, publisher, table, isolation
):
    """Its transaction had nobody to tell."""
    found = []
    async with (
        Tables(pgq_url, TableOptions(polling_seconds=FOR_EVER)).opened() as tables,
        trio.open_nursery() as nursery,
    ):
        publisher.execute(f"BEGIN ISOLATION LEVEL {isolation}")
        pgq.publish(publisher, table, pgq.Message({}))

        async def receive() -> None:
            found.extend(await tables.receive(table, wait_ms=60_000))

        nursery.start_soon(receive)
        with psycopg.connect(pgq_url, autocommit=True) as other:
            await until_awaited(other, table, 1)
        publisher.execute("COMMIT")
    assert len(found) == 1


async def test_publishers_of_very_many_are_not_asked_to_tell_and_their_messages_come(
    pgq_url, publisher, table, monkeypatch
):
    monkeypatch.setattr(limits, "WAKE_NOTICES_MAX", 0)
    got = 0
    async with (
        Tables(pgq_url, TableOptions(polling_seconds=FOR_EVER)).opened() as tables,
        trio.open_nursery() as nursery,
    ):

        async def receive() -> None:
            nonlocal got
            while got < 2:
                got += len(await tables.receive(table, wait_ms=60_000))

        nursery.start_soon(receive)
        await until_awaited(publisher, table, 1)
        assert told(publisher, table) == [table]
        await until_awaited(publisher, table, 0)
        assert told(publisher, table) == []


def test_the_function_of_somebody_else_stays(connection, pgq_url):
    """Who may not replace it makes tables that have it."""
    with connection.transaction(force_rollback=True):
        connection.execute(
            "CREATE ROLE shop; CREATE SCHEMA shop; GRANT ALL ON SCHEMA shop TO shop; SET search_path = shop"
        )
        pgq.create_table(connection, "theirs")
        before = connection.execute(
            "SELECT xmin FROM pg_proc WHERE oid = 'forq_pgq_notify'::regproc"
        ).fetchone()
        connection.execute("SET LOCAL ROLE shop")
        pgq.create_table(connection, "ours")
        (triggers,) = connection.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'ours'::regclass"
        ).fetchone()
        after = connection.execute(
            "SELECT xmin FROM pg_proc WHERE oid = 'forq_pgq_notify'::regproc"
        ).fetchone()
    assert (triggers, after) == (1, before)


@pytest.mark.parametrize("is_pooled", [False, True], ids=["listening", "pooled"])
async def test_who_has_waited_leaves_nothing_in_memory_under_the_name_of_a_table(
    pgq_url, connection, table, is_pooled
):
    """An application may have tables of which it makes and drops one each day."""
    url = f"{pgq_url}{'&' if '?' in pgq_url else '?'}pooled=yes" if is_pooled else pgq_url
    async with Tables(url, TableOptions(polling_seconds=FOR_EVER)).opened() as tables:
        wakes = tables._wakes
        for name in (table, f"{table}2"):
            pgq.create_table(connection, name)
            assert await tables.receive(name, wait_ms=1) == []
        assert not wakes._events
        if is_pooled:
            assert not wakes._wake_ups


async def test_who_leaves_while_the_trigger_is_told_for_the_first_time_does_no_harm(
    pgq_url, table, monkeypatch
):
    """The listener has its connection, but has never rested."""
    telling, has_left, told_one = trio.Event(), trio.Event(), trio.Event()
    change = Wakes._change

    async def changing(wakes: Wakes, connection: PgqConnection, changes: dict[str, bool]) -> None:
        telling.set()
        await has_left.wait()
        await change(wakes, connection, changes)
        told_one.set()

    monkeypatch.setattr(Wakes, "_change", changing)
    wakes = Wakes(pgq_url)
    async with trio.open_nursery() as nursery:
        with wakes.waiting(table):
            nursery.start_soon(wakes.run)
            await telling.wait()
        has_left.set()
        await told_one.wait()
        nursery.cancel_scope.cancel()
