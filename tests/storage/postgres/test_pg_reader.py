"""Reads of a PostgreSQL database: bounded, given up in time, and of one state."""

from contextlib import closing
from threading import Timer

import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.errors import ReadDeadlineExceeded
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from forq_trio.storage.postgres.reader import PgReader
from forq_trio.storage.reader import Reader
from support.actors import T0
from support.batches import do, run
from support.database_proxy import database_proxy
from support.words import send

PATIENT_SECONDS = 60.0
"""A deadline that no read misses that is not held up."""


def test_a_page_reads_little_more_than_it_shows(open_one, monkeypatch):
    engine = open_one()
    for _ in range(5):
        run(engine, *(send("x" * 1_000) for _ in range(40)))
    monkeypatch.setattr(limits, "BROWSE_PAGE_BYTES_MAX", 3_000)
    with closing(engine.open_reader()) as reader:
        for read in (lambda: reader.browse("q", None, 200), lambda: reader.peek("q", 200)):
            rows = []
            wait = reader._connection.wait

            def counting(wait=wait, rows=rows):
                found = wait()
                rows.append(len(found))
                return found

            reader._connection.wait = counting
            assert len(read()) < 5
            assert sum(rows) <= 64
            reader._connection.wait = wait
        assert not reader._connection.in_transaction
        assert reader.queue("q")[0].ready == 200


def test_a_read_is_given_up_and_the_connection_is_good_for_the_next(open_one):
    engine = open_one()
    do(engine, send())
    with closing(engine.open_reader()) as reader:
        connection = reader._connection
        connection._pg.send_query_params(b"SELECT pg_sleep(60)", None)
        connection._sent.append(None)
        timer = Timer(0.2, reader.interrupt)
        timer.start()
        with pytest.raises(ReadDeadlineExceeded):
            reader.queues()
        timer.join()
        assert reader.queues()["q"].ready == 1


def test_a_snapshot_sees_one_state(open_one):
    engine = open_one()
    do(engine, send())
    with closing(engine.open_reader()) as reader:
        with reader._snapshot():
            assert reader._counts("q").ready == 1
            do(engine, send(), T0 + 1)
            assert reader._counts("q").ready == 1
        assert reader._counts("q").ready == 2


async def test_a_database_that_falls_silent_keeps_nobody_waiting_but_its_reader(open_one, empty_tables):
    """The read is interrupted over another connection, which the database takes without a word."""
    asked = trio.Event()
    with (
        database_proxy(empty_tables) as proxy,
        closing(PostgresEngine(proxy.url, EngineSettings())) as engine,
    ):
        pool = ReaderPool(engine.open_reader, 1, PATIENT_SECONDS)
        await pool.run(lambda reader: reader.queues())
        token = trio.lowlevel.current_trio_token()

        def hold() -> bool:
            token.run_sync_soon(asked.set)
            return False

        async def go_on() -> None:
            await asked.wait()
            proxy.accepts = lambda: True
            proxy.release()

        proxy.accepts = hold
        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on)
            pool._deadline_seconds = 0.1
            with pytest.raises(ReadDeadlineExceeded):
                await pool.run(sleeping)
        pool._deadline_seconds = PATIENT_SECONDS
        assert await pool.run(lambda reader: reader.queues()) == {}
        pool.close()


def sleeping(reader: Reader) -> object:
    """A read that takes a minute."""
    assert isinstance(reader, PgReader)
    reader._connection._pg.send_query_params(b"SELECT pg_sleep(60)", None)
    reader._connection._sent.append(None)
    return reader.queues()
