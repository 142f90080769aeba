"""A publication for all tables, as Debezium and blue/green upgrades make one, refuses no batch."""

from collections.abc import Iterator

import psycopg
import pytest

from forq_trio.model.commands import ForgetConsumer, OpenConsumer
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from support.batches import run
from support.rich import fill
from support.words import ack, send

UNIDENTIFIED = """
SELECT relname FROM pg_class
WHERE relnamespace = 'forq'::regnamespace AND relkind IN ('r', 'p') AND relpersistence = 'p'
    AND relreplident <> 'f' AND NOT (relreplident = 'd' AND EXISTS (
        SELECT FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary))
"""


@pytest.fixture
def engine(database) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(database, EngineSettings(history=True, events=True), "normal")
    yield engine
    engine.close()


def test_each_table_says_what_identifies_its_rows(engine, database):
    with psycopg.connect(database) as connection:
        assert connection.execute(UNIDENTIFIED).fetchall() == []  # type: ignore[arg-type]


def test_batches_run_with_a_publication_for_all_tables(engine, database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    filled = fill(engine)
    assert run(engine, ack(filled.leased)).outcomes == [(True,)]
    run(engine, OpenConsumer("c", "n"))
    outcomes = run(engine, ForgetConsumer("c", "n"), send("an innocent one")).outcomes
    assert not any(isinstance(outcome, Exception) for outcome in outcomes)
