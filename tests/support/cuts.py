"""Connections to a PostgreSQL database that are cut, also at a point of a batch."""

from collections.abc import Callable

import psycopg
import pytest

from forq_trio.storage.postgres.engine import PostgresEngine


def cut(database: str) -> None:
    """End every connection of others to this database."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid()"
        )


def cut_one(database: str, engine: PostgresEngine) -> None:
    """End the write connection of this engine; returns when its process is gone."""
    number = engine._connection._pg.backend_pid
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [number])
        while connection.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [number]).rowcount:
            pass


def before_the_flush(
    monkeypatch: pytest.MonkeyPatch, engine: PostgresEngine, happens: Callable[[], None]
) -> None:
    """The next batch is committed; something happens before it is durable."""
    send = engine._connection.send

    def send_and_lose(name: str, *bindings: object) -> None:
        if name == "flush":
            monkeypatch.setattr(engine._connection, "send", send)
            engine._connection.wait()
            happens()
        send(name, *bindings)

    monkeypatch.setattr(engine._connection, "send", send_and_lose)
