"""outbox.send on connections to the PostgreSQL database of a queue: each kind of connection, in its own transaction."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest

from forq_trio import (
    ContentTooLarge,
    InvalidContent,
    OutOfRange,
    ProduceToDeadLetterQueue,
    ZeroCharacter,
    outbox,
)
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from support.batches import do
from support.programs import run_program
from support.words import claim


@pytest.fixture
def engine(empty_tables: str) -> Iterator[PostgresEngine]:
    with closing(PostgresEngine(empty_tables, EngineSettings(), "normal")) as engine:
        yield engine


def contents(engine: PostgresEngine, queue: str = "q") -> list[str]:
    return [each.content for each in do(engine, claim(queue=queue, most=100))]


def dialect_url(database: str, driver: str = "psycopg") -> str:
    return database.replace("postgresql:", f"postgresql+{driver}:", 1)


Application = tuple[Any, Callable[[], AbstractContextManager[Any]]]
"""A connection, and what gives a savepoint in its transaction."""


@pytest.fixture(params=["psycopg", "cursor", "rows are dicts", "sqlalchemy", "session"])
def application(request, engine, empty_tables) -> Iterator[Application]:
    if request.param in ("psycopg", "cursor", "rows are dicts"):
        with psycopg.connect(empty_tables) as connection:
            if request.param == "rows are dicts":
                connection.row_factory = psycopg.rows.dict_row
            used = connection.cursor() if request.param == "cursor" else connection
            yield used, connection.transaction
    else:
        import sqlalchemy.orm

        maker = sqlalchemy.create_engine(dialect_url(empty_tables))
        made = maker.connect() if request.param == "sqlalchemy" else sqlalchemy.orm.Session(maker)
        with made as connection:
            yield connection, connection.begin_nested
        maker.dispose()


def test_a_message_is_sent_if_its_transaction_commits(application, engine):
    connection, savepoint = application
    owner = (
        getattr(connection, "connection", connection)
        if isinstance(connection, psycopg.Cursor)
        else connection
    )
    outbox.send(connection, "q", "never")
    owner.rollback()
    first = outbox.send(connection, "q", "a 100 % ü \\ '", priority=7, attributes={"k": "v"})
    with suppress(ZeroDivisionError), savepoint():
        outbox.send(connection, "q", "undone")
        raise ZeroDivisionError
    assert outbox.send(connection, "q", "b", group=None) > first
    assert contents(engine) == []
    owner.commit()
    assert contents(engine) == ["b", "a 100 % ü \\ '"]


DJANGO = """
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

parts = conninfo_to_dict(URL)
settings.configure(DATABASES={"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": parts["dbname"], "USER": parts["user"], "HOST": parts["host"],
}})
import django; django.setup()
from django.db import connection, transaction
from forq_trio import outbox

with transaction.atomic():
    outbox.send(connection, "q", "a 100 %", attributes={"k": "v"})
    try:
        with transaction.atomic():
            outbox.send(connection, "q", "undone")
            1 / 0
    except ZeroDivisionError:
        outbox.send(connection, "q", "b")
try:
    with transaction.atomic():
        outbox.send(connection, "q", "never")
        1 / 0
except ZeroDivisionError:
    connection.close()
"""


def test_a_message_is_sent_in_a_transaction_of_django(engine, empty_tables: str, tmp_path: Path):
    done = run_program(DJANGO.replace("URL", repr(empty_tables)), tmp_path)
    assert done.stderr == ""
    assert contents(engine) == ["a 100 %", "b"]


def test_an_asynchronous_connection_runs_the_statement(engine, empty_tables):
    async def send() -> None:
        async with await psycopg.AsyncConnection.connect(empty_tables) as connection:
            with pytest.raises(TypeError, match=r"outbox\.statement"):
                outbox.send(connection, "q", "x")
            await connection.execute(*outbox.statement("q", "a", attributes={"k": "v"}))

    anyio.run(send)
    assert contents(engine) == ["a"]


def test_an_asynchronous_session_runs_a_send(engine, empty_tables):
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    async def send() -> None:
        maker = create_async_engine(dialect_url(empty_tables))
        async with AsyncSession(maker) as session, session.begin():
            with pytest.raises(TypeError, match=r"AsyncSession\.run_sync"):
                outbox.send(session, "q", "x")
            await session.run_sync(lambda session: outbox.send(session, "q", "a"))
        await maker.dispose()

    anyio.run(send)
    assert contents(engine) == ["a"]


def test_another_driver_is_refused_by_name():
    class Dialect:
        name, driver = "postgresql", "pg8000"

    class Connection:
        dialect = Dialect()

    with pytest.raises(TypeError, match="needs the driver psycopg, not pg8000"):
        outbox.send(Connection(), "q", "x")


@pytest.mark.parametrize(
    ("queue", "content", "options", "error"),
    [
        ("q", "x" * 262_145, {}, ContentTooLarge),
        ("q", "x", {"priority": 5_000}, OutOfRange),
        ("q-dlq", "x", {}, ProduceToDeadLetterQueue),
        ("q", b"x", {}, TypeError),
        ("q", "a\0b", {}, ZeroCharacter),
        ("q", "x", {"attributes": {"k": "\0"}}, ZeroCharacter),
        ("q", "x", {"group": "\0"}, ZeroCharacter),
        ("q", "\ud800", {}, InvalidContent),
        ("q", "x", {"attributes": {"k": "\ud800"}}, InvalidContent),
    ],
)
def test_what_is_not_valid_is_refused_in_the_application(queue, content, options, error):
    with pytest.raises(error):
        outbox.statement(queue, content, **options)


def test_what_was_set_aside_is_listed_and_sent_again(application, engine, empty_tables):
    connection, _ = application
    owner = connection.connection if isinstance(connection, psycopg.Cursor) else connection
    outbox.send(connection, "q", "a")
    owner.commit()
    with psycopg.connect(empty_tables) as damaging:
        for content in ("b", "c"):
            message = json.dumps({"content": content, "priority": 5_000})
            damaging.execute("INSERT INTO forq.sent (queue, message) VALUES ('q', %s)", (message,))
    assert contents(engine) == ["a"]
    refused = outbox.set_aside(connection)
    assert [(each.queue, each.message.content, each.code) for each in refused] == [
        ("q", "b", "bad_request.priority.out_of_range"),
        ("q", "c", "bad_request.priority.out_of_range"),
    ]
    assert outbox.set_aside(connection, after=refused[0].id) == refused[1:]
    owner.commit()
    with psycopg.connect(empty_tables) as mending:
        mending.execute("UPDATE forq.sent_set_aside SET message = replace(message, '5000', '500')")
    outbox.retry_set_aside(connection, [each.id for each in refused])
    owner.commit()
    assert contents(engine) == ["b", "c"]
    assert outbox.set_aside(connection) == []
