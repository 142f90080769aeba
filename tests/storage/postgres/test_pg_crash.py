"""A crash of the database: it may take back what no caller was told of, and no server builds on that."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from forq_trio.model.commands import Command, ProduceMany
from forq_trio.model.errors import StorageUnavailable
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from support.batches import do
from support.cuts import before_the_flush, cut
from support.postgres import Postgres
from support.words import claim, send


class Database:
    """A database whose server writes no log by itself: what is not flushed on purpose is lost in a crash."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self.url = server.new_database()
        self._log_writer = 0

    def _process(self, kind: str) -> tuple[int, str] | None:
        """A process of the server, and what it waits for; None while there is none."""
        with suppress(psycopg.OperationalError), psycopg.connect(self._server.url()) as connection:
            return connection.execute(
                "SELECT pid, wait_event FROM pg_stat_activity WHERE backend_type = %s", (kind,)
            ).fetchone()
        return None

    def hold_the_log(self) -> None:
        """Stop whoever writes the log by itself, while it has no lock."""
        while True:
            found = self._process("walwriter")
            assert found is not None
            self._log_writer = found[0]
            os.kill(self._log_writer, signal.SIGSTOP)
            if self._process("walwriter") == (self._log_writer, "WalWriterMain"):
                return
            os.kill(self._log_writer, signal.SIGCONT)

    def crash(self) -> None:
        """All connections end and the shared memory is gone; returns when the server has recovered."""
        before = self._process("walwriter")
        os.kill(self._log_writer, signal.SIGKILL)
        while (found := self._process("walwriter")) is None or found == before:
            pass


@pytest.fixture
def database(postgres) -> Iterator[Database]:
    database = Database(postgres)
    yield database
    postgres.drop_database(database.url)


@pytest.fixture
def open_one(database) -> Iterator[Callable[[str], PostgresEngine]]:
    engines = []

    def open_one(durability: str) -> PostgresEngine:
        engines.append(PostgresEngine(database.url, EngineSettings(), durability))
        return engines[-1]

    yield open_one
    for engine in engines:
        engine.close()


def retried(engine: PostgresEngine, command: Command[Any]) -> Any:
    """The outcome of a command, after those that find out that the connection is lost."""
    while True:
        try:
            return do(engine, command)
        except StorageUnavailable:
            continue


def test_without_a_flush_commits_may_be_lost_and_no_cache_has_them(database, open_one):
    """Durability `normal`. The batch after the crash has the number of the one that was lost."""
    do(open_one("full"), send("kept"))
    a, b = open_one("normal"), open_one("normal")
    database.hold_the_log()
    do(a, ProduceMany("q", (NewMessage("lost"), NewMessage("lost, too"))))
    do(b, claim(queue="other"))  # takes it over
    assert b.snapshot().counts["q"].ready == 3
    database.crash()
    retried(a, send("new"))
    retried(b, claim(queue="other"))
    do(a, claim(queue="other"))
    assert a.snapshot().counts["q"].ready == b.snapshot().counts["q"].ready == 2
    assert [each.content for each in do(b, claim(most=10))] == ["kept", "new"]


def test_a_batch_that_a_crash_took_back_was_not_answered(database, open_one, monkeypatch):
    a, b = open_one("full"), open_one("full")
    do(a, send("kept"))

    def crash() -> None:
        do(b_normal, claim(queue="other"))
        assert b_normal.snapshot().counts["q"].ready == 2
        database.crash()

    b_normal = open_one("normal")
    database.hold_the_log()
    before_the_flush(monkeypatch, a, crash)
    with pytest.raises(StorageUnavailable):
        do(a, send("lost"))
    for engine in (a, b, b_normal):
        retried(engine, claim(queue="other"))
        assert engine.snapshot().counts["q"].ready == 1
    assert [each.content for each in retried(b, claim(most=10))] == ["kept"]


def test_a_batch_whose_flush_was_cut_off_is_flushed_before_it_is_answered(database, open_one, monkeypatch):
    a = open_one("full")
    database.hold_the_log()
    before_the_flush(monkeypatch, a, lambda: cut(database.url))
    do(a, send("x"))
    database.crash()
    assert [each.content for each in do(open_one("full"), claim())] == ["x"]


def test_what_is_answered_on_the_ground_of_another_batch_is_durable(database, open_one):
    """A duplicate changes nothing, and its sender is told that the message is stored."""
    a, b = open_one("normal"), open_one("full")
    database.hold_the_log()
    do(a, send("x", deduplication_id="d"))
    assert do(b, send("x", deduplication_id="d")).duplicate
    database.crash()
    assert [each.content for each in retried(b, claim(most=10))] == ["x"]
