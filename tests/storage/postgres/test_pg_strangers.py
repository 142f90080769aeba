"""Roles that may connect to the database, and nothing else, do not hold up the queue."""

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from support.batches import do
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
    for number, table in enumerate(("gate", "batches", "migrations", "messages")):
        stranger.execute(f"PREPARE p{number} AS DELETE FROM forq.{table}")
    do(a, send())
    do(open_one(), send())
