"""Messages are written in the application's own transaction, on every kind of connection."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from forq_trio import ContentTooLarge, outbox
from support.programs import run_program


class Application:
    """A connection of one kind. begin, commit, roll_back: its transaction."""

    def __init__(self, connection: Any, begin: Callable[[], object], commit: Callable[[], object]) -> None:
        self.connection = connection
        self.begin = begin
        self.commit = commit

    def roll_back(self) -> None:
        if isinstance(self.connection, apsw.Connection):
            self.connection.execute("ROLLBACK")
        else:
            self.connection.rollback()


def nothing() -> None:
    pass


@pytest.fixture(params=["sqlite3", "apsw", "sqlalchemy", "session"])
def application(request, tmp_path) -> Iterator[Application]:
    path = str(tmp_path / "shop.db")
    if request.param == "sqlite3":
        with closing(sqlite3.connect(path)) as connection:
            yield Application(connection, nothing, connection.commit)
    elif request.param == "apsw":
        with closing(apsw.Connection(path)) as connection:
            yield Application(
                connection, lambda: connection.execute("BEGIN"), lambda: connection.execute("COMMIT")
            )
    else:
        import sqlalchemy.orm

        engine = sqlalchemy.create_engine(f"sqlite:///{path}")
        made = engine.connect() if request.param == "sqlalchemy" else sqlalchemy.orm.Session(engine)
        with made as connection:
            yield Application(connection, nothing, connection.commit)
        engine.dispose()


def waiting(path: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT id, queue FROM forq_outbox ORDER BY id").fetchall()


def test_a_message_is_there_once_the_application_commits(application, tmp_path):
    for _ in range(2):
        application.begin()
        outbox.create_table(application.connection)
        application.commit()
    application.begin()
    assert outbox.send(application.connection, "q", "kept", priority=7) == 1
    assert outbox.send(application.connection, "r", "kept") == 2
    assert waiting(tmp_path / "shop.db") == []
    application.commit()
    application.begin()
    outbox.send(application.connection, "q", "never")
    application.roll_back()
    assert waiting(tmp_path / "shop.db") == [(1, "q"), (2, "r")]


def test_what_is_not_valid_is_refused_in_the_application():
    """What that is: test_outbox_postgres."""
    with closing(sqlite3.connect(":memory:")) as connection:
        outbox.create_table(connection)
        for content, error in (("x" * 300_000, ContentTooLarge), (b"x", TypeError)):
            with pytest.raises(error):
                outbox.send(connection, "q", content)
        assert connection.execute("SELECT count(*) FROM forq_outbox").fetchone() == (0,)


def test_another_connection_is_a_mistake():
    with pytest.raises(TypeError, match="SQLite, not str"):
        outbox.send("shop.db", "q", "x")


@pytest.mark.parametrize("name", ["AsyncSession", "AsyncConnection"])
def test_a_connection_for_asyncio_is_told_of_run_sync(name):
    import sqlalchemy.ext.asyncio

    with pytest.raises(TypeError, match=f"{name}.run_sync"):
        outbox.send(object.__new__(getattr(sqlalchemy.ext.asyncio, name)), "q", "x")


def test_what_wraps_a_connection_of_sqlite3_is_taken():
    """A cursor, and the connection of Django."""
    from django.db.backends.sqlite3.base import DatabaseWrapper

    with closing(sqlite3.connect(":memory:")) as connection:
        outbox.create_table(connection.cursor())
        connection.commit()
        assert outbox.send(connection.cursor(), "q", "x") == 1
        django = DatabaseWrapper({})
        django.connection = connection
        assert outbox.send(django, "q", "x") == 2


DJANGO = """
from django.conf import settings
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}})
from django.db import connection, connections
from forq_trio import outbox
outbox.create_table(connection)
connection.close()
print(outbox.send(connection, "q", "x"))
connection.close()
print(outbox.set_aside(connection))
connections.close_all()
"""


def test_a_connection_of_django_need_not_have_made_a_query(tmp_path):
    """It connects at its first query, and was refused before."""
    done = run_program(DJANGO, tmp_path)
    assert (done.stdout, done.stderr) == ("1\n[]\n", "")
    assert waiting(tmp_path / "shop.db") == [(1, "q")]


def test_rows_may_be_what_the_application_wants():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = lambda cursor, row: {"id": row[0]}
        outbox.create_table(connection)
        refused = (1, "q", '{"content": "x"}', "code", "reason")
        connection.execute("INSERT INTO forq_outbox_set_aside VALUES (?, ?, ?, ?, ?)", refused)
        (aside,) = outbox.set_aside(connection)
        assert (aside.id, aside.message.content, aside.reason) == (1, "x", "reason")


def test_an_id_is_never_given_twice():
    with closing(sqlite3.connect(":memory:")) as connection:
        outbox.create_table(connection)
        assert outbox.send(connection, "q", "a") == 1
        connection.execute("DELETE FROM forq_outbox")
        assert outbox.send(connection, "q", "b") == 2
