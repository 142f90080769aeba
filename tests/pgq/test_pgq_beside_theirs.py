"""Our consumers and publishers beside pgq's on one table: its statements, as it runs them."""

import threading
from datetime import UTC, datetime, timedelta

import anyio
import anyio.to_thread
import psycopg

from forq_trio import pgq
from forq_trio.pgq.tables import TableOptions, Tables
from pgq.theirs import Theirs


async def test_they_publish_and_we_consume(tables, theirs, table) -> None:
    id = theirs.publish({"n": 1}, {"a": "b"})
    theirs.publish({"n": 2}, {}, datetime.now(UTC) + timedelta(hours=1))
    (delivery,) = await tables.receive(table, max_messages=9)
    assert (delivery.id, delivery.content, delivery.attributes, delivery.attempts) == (
        str(id),
        '{"n": 1}',
        {"a": "b"},
        1,
    )
    assert theirs.claim() == []
    assert (await tables.ack(table, [delivery.receipt]))[0].ok
    assert theirs.claim(9) == []


def test_we_publish_and_they_consume(connection, theirs, table) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    ids = pgq.publish(
        connection, table, pgq.Message({"n": 1}, {"a": "b"}), pgq.Message({"n": 2}, scheduled_for=later)
    )
    (row,) = theirs.claim(9)
    assert (row["id"], row["payload"], row["metadata"], row["consumed_count"]) == (
        ids[0],
        {"n": 1},
        {"a": "b"},
        1,
    )
    theirs.ack(row["id"])
    assert theirs.claim(9) == []


async def test_what_one_gives_back_the_other_gets_with_its_count(tables, connection, theirs, table) -> None:
    pgq.publish(connection, table, pgq.Message({}))
    (row,) = theirs.claim()
    theirs.nack(row["id"], "their reason")
    (delivery,) = await tables.receive(table)
    assert delivery.attempts == 2
    await tables.nack(table, [delivery.receipt], reason="our reason")
    (again,) = theirs.claim()
    assert (again["consumed_count"], theirs.one()["error_detail"]) == (3, "our reason")
    theirs.nack(row["id"], "their reason")
    assert await tables.receive(table) == []
    assert theirs.claim() == []


async def test_what_one_discards_the_other_does_not_get(tables, connection, theirs, table) -> None:
    first, second = pgq.publish(connection, table, pgq.Message({}), pgq.Message({}))
    (row,) = theirs.claim()
    assert row["id"] == first
    theirs.discard(first, "theirs")
    (delivery,) = await tables.receive(table)
    assert delivery.id == str(second)
    await tables.discard(table, [delivery.receipt], reason="ours")
    assert await tables.receive(table) == theirs.claim() == []
    assert [row["error_detail"] for row in theirs.all()] == ["theirs", "ours"]


async def test_each_keeps_to_the_locks_and_deadlines_of_the_other(tables, connection, theirs, table) -> None:
    pgq.publish(connection, table, pgq.Message({}))
    (row,) = theirs.claim()
    assert await tables.receive(table) == []
    theirs.deadline(row["id"], -1)
    (delivery,) = await tables.receive(table)
    assert theirs.claim() == []
    await tables.extend(table, [delivery.receipt], 0)
    (again,) = theirs.claim()
    assert again["consumed_count"] == 3
    assert not (await tables.ack(table, [delivery.receipt]))[0].ok


async def test_filters_of_both_take_the_same(tables, theirs, table) -> None:
    for metadata in ({"baz": "quux"}, {"baz": "x"}, {}):
        theirs.publish({}, metadata)
    taken = {"=": {"baz": "quux"}, "<>": {"baz": {"not": "quux"}}}
    for operator, where in taken.items():
        ours = [each.id for each in await tables.receive(table, max_messages=9, where=where)]
        theirs.run("UPDATE {} SET locked_until = NULL, consumed_count = 0")
        found = theirs.claim(9, where=f"AND metadata->>'baz' {operator} 'quux'")
        theirs.run("UPDATE {} SET locked_until = NULL, consumed_count = 0")
        assert ours == [str(row["id"]) for row in found]
        assert len(ours) == 1


async def test_their_holder_that_is_late_frees_our_lock_and_then_we_know(tables, theirs, table) -> None:
    """What cannot be promised: their statements are not fenced."""
    id = theirs.publish({}, {})
    theirs.claim(seconds=-1)
    (delivery,) = await tables.receive(table)
    theirs.nack(id, "late")
    assert not (await tables.extend(table, [delivery.receipt]))[0].ok
    assert not (await tables.ack(table, [delivery.receipt]))[0].ok


async def test_both_at_once_get_each_message_once(pgq_url, connection, theirs, table) -> None:
    number = 300
    pgq.publish(connection, table, *[pgq.Message({})] * number)
    ours: list[str] = []
    others: list[str] = []

    async def consume() -> None:
        async with Tables(pgq_url, TableOptions()).opened() as tables:
            while found := await tables.receive(table, max_messages=7):
                ours.extend(each.id for each in found)
                assert all(result.ok for result in await tables.ack(table, [each.receipt for each in found]))

    def consume_as_they() -> None:
        with psycopg.connect(pgq_url, autocommit=True) as own:
            side = Theirs(own, table)
            while found := side.claim(7):
                others.extend(str(row["id"]) for row in found)
                for row in found:
                    side.ack(row["id"])

    threads = [threading.Thread(target=target) for target in (lambda: anyio.run(consume), consume_as_they)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await anyio.to_thread.run_sync(thread.join)
    assert len(ours + others) == len({*ours, *others}) == number
    assert {row["consumed_count"] for row in theirs.all()} == {1}
