"""Roles that may connect to the database, and nothing else, do not hold up the queue."""

import select
from contextlib import closing

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from forq_trio.model.server.processes import ProcessReport
from support.batches import do
from support.processes import WAIT_SECONDS_MAX
from support.words import send


@pytest.fixture
def stranger(empty_tables):
    """The connection of a role without rights, in a transaction."""
    with psycopg.connect(empty_tables, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    with psycopg.connect(make_conninfo(empty_tables, user="stranger")) as connection:
        yield connection
        connection.rollback()


def test_nobody_takes_the_gate_by_its_number(open_one, stranger):
    """Advisory locks need no right: whoever may connect may take one."""
    a = open_one()
    do(a, send())
    stranger.execute("SELECT pg_advisory_lock(1718579825, 1), pg_advisory_lock(1718579825, 2)")
    do(a, send())
    do(open_one(), send())


def test_nobody_is_in_the_way_of_the_gate_by_preparing_statements(open_one, stranger):
    """PREPARE takes the locks of its statement, and asks for no rights."""
    a = open_one()
    do(a, send())
    for number, table in enumerate(("gate", "batches_2", "migrations", "messages")):
        stranger.execute(f"PREPARE p{number} AS DELETE FROM forq.{table}")
    do(a, send())
    do(open_one(), send())


def test_a_heap_of_notifications_is_not_kept(open_one, stranger):
    """Anybody may send them. Those that come with the answer of a statement are read nowhere else."""
    with closing(open_one().listen()) as listener:
        stranger.execute(
            "SELECT pg_notify('forq', n || repeat(' a b', 1900)) FROM generate_series(1, 20) AS n"
        )
        stranger.commit()
        listener.meet(ProcessReport(id="1", name="host-a", process=7, version="1.0", started_at=0))
        assert listener.heard() is None
        stranger.execute("SELECT pg_notify('forq', 'other q')")
        stranger.commit()
        assert select.select([listener.socket], [], [], WAIT_SECONDS_MAX)[0]
        assert listener.heard() == {"q"}
