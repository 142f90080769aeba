"""Connections, answers and commits that get lost, and processes that are stopped: no wrong answer, no long wait."""

import time

import psycopg
import pytest

from forq_trio.model.errors import StorageOpenError, StorageUnavailable
from forq_trio.storage.engine import Batch, OutcomeLost
from forq_trio.storage.postgres import connection as connection_module
from forq_trio.storage.postgres import engine as module
from support.actors import T0
from support.batches import do
from support.cuts import before_the_flush, cut
from support.words import claim, send


def test_the_outcome_of_a_batch_that_was_forgotten_meanwhile_is_not_known(
    open_one, empty_tables, monkeypatch
):
    """A process that is stopped within its COMMIT wakes when the others have forgotten what became of it."""
    a, b = open_one("full"), open_one()
    a.execute_batch(Batch([send("x")], T0))

    def meanwhile() -> None:
        monkeypatch.setattr(module, "BATCHES_STORED", 3)
        monkeypatch.setattr(module, "BATCHES_FORGOTTEN", 1)
        for number in range(5):
            do(b, send(str(number)))
        cut(empty_tables)

    before_the_flush(monkeypatch, a, meanwhile)
    with pytest.raises(OutcomeLost):
        a.commit()


def test_the_outcome_of_a_batch_whose_place_another_took_is_known(open_one, empty_tables, monkeypatch):
    a = open_one()
    a.execute_batch(Batch([send("x")], T0))
    cut(empty_tables)
    do(open_one(), send("y"))
    with pytest.raises(StorageUnavailable):
        a.commit()
    assert [each.content for each in do(a, claim(most=9))] == ["y"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_process_that_was_stopped_while_it_opened_opens_once_more(
    open_one, empty_tables, monkeypatch, times
):
    do(open_one(), send("x"))
    query, cuts = module.PgConnection.query, list(range(times))

    def cutting(self: module.PgConnection, name: str, *bindings: object) -> list[object]:
        if name == "last_batch" and cuts:
            cuts.pop()
            cut(empty_tables)
        return query(self, name, *bindings)

    monkeypatch.setattr(module.PgConnection, "query", cutting)
    if times == 1:
        assert [each.content for each in do(open_one(), claim())] == ["x"]
    else:
        with pytest.raises(StorageOpenError):
            open_one()


def test_an_engine_tells_what_it_is_while_its_connection_is_lost(open_one):
    """Metrics and pages show it: they are needed most then."""
    a = open_one()
    facts = a.facts()
    a.connection.close()
    assert a.facts() == facts


def test_a_process_that_was_stopped_while_it_read_the_clock_reads_it_again(open_one, monkeypatch):
    a = open_one()
    query, stops = a.connection.query, [3_600.0, 0.0]
    stopped = 0.0

    def stopping(name: str, *bindings: object) -> list[object]:
        nonlocal stopped
        rows = query(name, *bindings)
        if name == "clock":
            stopped += stops.pop(0)
        return rows

    monkeypatch.setattr(a.connection, "query", stopping)
    monkeypatch.setattr(module.time, "monotonic", lambda real=time.monotonic: real() + stopped)
    monkeypatch.setattr(module.time, "time", lambda real=time.time: real() + stopped)
    a._clock.read(a.connection)
    assert abs(a._clock.ahead_ms + stopped * 1_000) < 1_000


def test_a_database_that_does_not_answer_is_unavailable(open_one, monkeypatch):
    """As when its machine has lost its power: no packet says that the connection is gone."""
    a = open_one()
    with psycopg.connect(a._addresses.database.conninfo) as other, monkeypatch.context() as impatient:
        other.execute("LOCK forq.messages")
        impatient.setattr(connection_module, "ANSWER_SECONDS_MAX", 0.3)
        with pytest.raises(StorageUnavailable):
            do(a, send("x"))
    do(a, send("y"))
    assert [each.content for each in do(a, claim(most=9))] == ["y"]


@pytest.mark.tier2
def test_a_process_that_is_stopped_while_it_is_answered_gives_the_gate_back(open_one, empty_tables):
    """Its answer fills the socket: the database waits for it within a statement, and no transaction is idle."""
    a, b = open_one(), open_one()
    stopped = a.connection
    stopped.send("begin")
    stopped.query("gate")
    stopped._pg.send_query_params(b"SELECT repeat('x', 9000000)", [])
    stopped._pg.pipeline_sync()
    stopped._pg.flush()
    with psycopg.connect(empty_tables, autocommit=True) as watcher:
        waits = "SELECT FROM pg_stat_activity WHERE application_name = 'forq' AND wait_event = 'ClientWrite'"
        while not watcher.execute(waits).rowcount:
            pass
    began = time.monotonic()
    do(b, send("x"))
    assert time.monotonic() - began < 4
    with pytest.raises(StorageUnavailable):
        do(a, send("y"))
    assert [each.content for each in do(a, claim(most=9))] == ["x"]
