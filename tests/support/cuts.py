"""Connections to a PostgreSQL database that are cut, also at a point of a batch."""

from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest

from forq_trio.model.errors import StorageUnavailable
from forq_trio.storage.engine import BatchResult
from forq_trio.storage.postgres.engine import PostgresEngine
from support.batches import run
from support.postgres import POOL_MODE


def cut(database: str) -> None:
    """End every connection of others to this database."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid()"
        )


def cut_one(database: str, engine: PostgresEngine) -> None:
    """End the write connection of this engine; returns when its process is gone."""
    number = engine.connection._pg.backend_pid
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [number])
        while connection.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [number]).rowcount:
            pass


def run_cut_off(database: str, engine: PostgresEngine) -> BatchResult:
    """Cut this engine off, and run the batch after which it is connected again."""
    cut_one(database, engine)
    # A pooler may have cut another connection off.
    refused = suppress(StorageUnavailable) if POOL_MODE else pytest.raises(StorageUnavailable)
    with refused:
        return run(engine)
    return run(engine)


def before_the_flush(
    monkeypatch: pytest.MonkeyPatch, engine: PostgresEngine, happens: Callable[[], None]
) -> None:
    """The next batch is committed; something happens before it is durable."""
    send = engine.connection.send

    def send_and_lose(name: str, *bindings: object) -> None:
        if name == "flush":
            monkeypatch.setattr(engine.connection, "send", send)
            engine.connection.wait()
            happens()
        send(name, *bindings)

    monkeypatch.setattr(engine.connection, "send", send_and_lose)
