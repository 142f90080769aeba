"""Statements that are read ahead: their rows are there when they are asked for, unless something changed."""

from contextlib import closing

import pytest

from forq_trio.storage.postgres.connection import PgConnection
from forq_trio.storage.postgres.failures import DatabaseFailed
from forq_trio.storage.postgres.open import DatabaseAddress, open_writer
from support.batches import do
from support.words import send


@pytest.fixture
def connection(open_one, empty_tables):
    """A connection to a database with a message, whose waits are counted."""
    do(open_one(), send("x"))
    with closing(open_writer(DatabaseAddress(empty_tables))) as connection:
        yield connection


def waits(connection: PgConnection, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with each wait for the server."""
    counted: list[None] = []
    wait = connection.wait

    def counting() -> object:
        counted.append(None)
        return wait()

    monkeypatch.setattr(connection, "wait", counting)
    return counted


def test_what_is_read_ahead_comes_with_the_next_answer(connection, monkeypatch):
    waited = waits(connection, monkeypatch)
    connection.begin()
    connection.read_ahead("find_one_by_sequence", 1)
    assert connection.query("ping") == [(1,)]
    (found,) = connection.query("find_one_by_sequence", 1)
    assert found[0] == 1
    assert len(waited) == 1
    assert connection.query("find_one_by_sequence", 1) == [found]  # it is given out once
    assert len(waited) == 2


def test_new_rows_leave_it_and_changes_discard_it(connection):
    connection.begin()
    connection.read_ahead("find_one_by_sequence", 1)
    connection.query("ping")
    connection.query("save_maker", "token", "q")
    assert not connection._ahead
    connection.read_ahead("find_one_by_sequence", 1)
    connection.query("save_dedup", "q", "d", "id", 1, 9)
    assert connection._ahead
    connection.query("delete_message", 1)
    assert connection.query("find_one_by_sequence", 1) == []


def test_it_ends_with_its_batch(connection):
    connection.begin()
    connection.read_ahead("find_one_by_sequence", 1)
    connection.query("delete_message", 1)
    connection.query("rollback")
    connection.begin()
    connection.read_ahead("find_one_by_sequence", 1)
    connection.query("commit")
    connection.begin()
    connection.query("delete_message", 1)
    connection.query("commit")
    connection.begin()
    assert connection.query("find_one_by_sequence", 1) == []


def test_a_connection_that_was_lost_before_the_end_of_a_part_is_a_failure_of_the_database(connection):
    """It was an error of libpq, which ended the writer."""
    connection.close()
    with pytest.raises(DatabaseFailed):
        connection.end_sent()
