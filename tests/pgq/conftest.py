"""A database for the tests of pgq's tables, in which each test has a table of its own."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

import psycopg
import pytest
import trio
from psycopg import sql

from forq_trio import Broker, open_broker, pgq
from forq_trio.pgq import connections
from forq_trio.pgq.tables import TableOptions, Tables
from pgq.rows import Rows
from pgq.theirs import Theirs
from support.processes import WAIT_SECONDS_MAX

NUMBERS = count(1)
REPLACED = ("%", "%", "s", "(", ")", "{", "}", "\\", "$", "1", '"', "'", ":", "?", "/", " ", "ß")
"""What a name may have that statements, formats, patterns, URLs and shells replace."""


@contextmanager
def locked(url: str, table: str) -> Iterator[None]:
    """Somebody has the table for itself while the body runs."""
    with psycopg.connect(url) as connection:
        connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(table)))
        yield
        connection.rollback()


LOCKED = """
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1718579825 AND mode = 'ShareLock'
    AND objid = (64 + (hashtext(%s) & 63))::oid
"""


async def until_awaited(connection: psycopg.Connection, table: str, processes: int = 1) -> None:
    """Until so many processes have the trigger of the table tell of new messages, because somebody waits there."""
    with trio.fail_after(WAIT_SECONDS_MAX):
        while connection.execute(LOCKED, [table]).fetchone() != (processes,):
            await trio.lowlevel.checkpoint()


@pytest.fixture
def locks_are_short(monkeypatch) -> None:
    """Who waits for a lock is refused after 0.1 s, on connections that are made from here on: not after two seconds."""
    monkeypatch.setitem(connections._BOUNDS, "lock", "100")


@pytest.fixture
def only_told(monkeypatch) -> None:
    """Who waits does not look by itself before the test is over: a message comes because it was told of."""
    monkeypatch.setattr("forq_trio.pgq.tables.TableOptions", partial(TableOptions, polling_seconds=3_600.0))


@pytest.fixture(scope="session")
def pgq_url(postgres) -> Iterator[str]:
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def connection(pgq_url) -> Iterator[psycopg.Connection]:
    with psycopg.connect(pgq_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def table(connection, rng) -> str:
    """A table with a random name that has to be quoted."""
    name = f"Order's {next(NUMBERS)}{''.join(rng.choices(REPLACED, k=12))}EU"
    pgq.create_table(connection, name)
    return name


@pytest.fixture
def rows(connection, table) -> Rows:
    """The table as it is, beside what our code says about it."""
    return Rows(connection, table)


@pytest.fixture
async def tables(pgq_url) -> AsyncIterator[Tables]:
    async with Tables(pgq_url, TableOptions()).opened() as tables:
        yield tables


@pytest.fixture
def theirs(connection, table) -> Theirs:
    return Theirs(connection, table)


@pytest.fixture
async def broker(pgq_url) -> AsyncIterator[Broker]:
    async with open_broker(pgq_url) as broker:
        yield broker


@pytest.fixture
async def queue(broker, table) -> str:
    """A queue that is bound to the table."""
    name = f"bound{next(NUMBERS)}"
    await broker.bind(name, table)
    return name
