"""A database that cannot store every text is refused by the name of its encoding, before anything is made in it."""

import asyncio
from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest

from forq_trio import pgq
from forq_trio.model.errors import StorageOpenError
from forq_trio.pgq.connections import connected
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.storage.postgres.move import PgSide
from forq_trio.storage.postgres.open import migrate

ENCODINGS: tuple[LiteralString, ...] = ("LATIN1", "SQL_ASCII")


@pytest.fixture(params=ENCODINGS)
def other(postgres, request) -> Iterator[tuple[str, str]]:
    """An encoding, and the URL of a database that has it."""
    name = f"in_{request.param.lower()}"
    postgres.execute(f"CREATE DATABASE {name} ENCODING '{request.param}' LOCALE 'C' TEMPLATE template0")
    yield request.param, postgres.url(name)
    postgres.drop_database(postgres.url(name))


@pytest.mark.parametrize(
    "use",
    [lambda url: open_engine(url, EngineSettings(), "full"), migrate, lambda url: PgSide(url, target=True)],
)
def test_a_database_of_another_encoding_is_refused_and_left_as_it_is(other, use):
    encoding, url = other
    with pytest.raises(StorageOpenError, match=f"has the encoding {encoding}, .*; use a database of UTF8"):
        use(url)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT FROM pg_namespace WHERE nspname = 'forq'").fetchall() == []


def test_so_is_one_for_tables_of_pgq(other):
    encoding, url = other
    with pytest.raises(pgq.DatabaseRefused, match=f"has the encoding {encoding}"), connected(url):
        raise AssertionError


def test_so_is_a_connection_of_the_caller_to_one(other):
    encoding, url = other
    with psycopg.connect(url) as connection:
        for use in (pgq.create_table, lambda given, table: pgq.publish(given, table, pgq.Message({"a": 1}))):
            with pytest.raises(pgq.DatabaseRefused, match=f"has the encoding {encoding}"):
                use(connection, "orders")
        assert connection.execute("SELECT to_regclass('orders')").fetchone() == (None,)


def test_so_is_one_of_asyncio(other):
    encoding, url = other

    async def publish() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            with pytest.raises(pgq.DatabaseRefused, match=f"has the encoding {encoding}"):
                await pgq.publish_async(connection, "orders", pgq.Message({"a": 1}))

    asyncio.run(publish())
