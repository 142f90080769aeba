"""What cannot be opened is refused in one sentence, without a password."""

import re
from contextlib import closing

import psycopg
import pytest

from forq_trio.model.commands import Ping
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.migrate import Migration
from forq_trio.storage.open import open_engine
from forq_trio.storage.postgres import open as module
from support.batches import do
from support.words import claim, send

SECRET = "hunter2"


def refusal(url: str) -> str:
    with pytest.raises(StorageOpenError) as raised:
        open_engine(url, EngineSettings(), "full")
    text = str(raised.value)
    assert SECRET not in text
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"postgresql://forq:{SECRET}@127.0.0.1:1/queue", "queue at 127.0.0.1 cannot be used: .*refused"),
        (f"postgresql://forq:{SECRET}@no.such.host.invalid/queue", "at no.such.host.invalid cannot be used"),
        (f"postgresql://forq:{SECRET}@localhost:port/queue", "port"),
        (f"postgresql://forq:{SECRET}@localhost/queue?sslmodus=require", "cannot be read: .*sslmodus"),
        (f"postgresq://forq:{SECRET}@localhost/queue", "is not a database URL; use sqlite"),
    ],
)
def test_a_url_with_a_typo_or_a_server_that_is_not_there(url, words):
    assert re.search(words, refusal(url))


@pytest.mark.parametrize(
    "password",
    [f"first@{SECRET}", f"first/{SECRET}", f"{SECRET}/last", f"first?{SECRET}/last", f"{SECRET}/a?b=c"],
)
def test_a_password_with_characters_of_a_url_is_not_taken_for_a_host(password):
    assert "write @ as %40, / as %2F" in refusal(f"postgresql://forq:{password}@localhost:1/queue")


def test_an_at_sign_where_it_cannot_be_misread_is_no_mistake():
    at = f"postgresql://forq:{SECRET}?%2F@localhost:1/queue?application_name=shop@home"
    assert "queue at localhost cannot be used" in refusal(at)


def test_a_database_that_is_not_there(postgres):
    assert 'database "nothing" does not exist' in refusal(postgres.url("nothing"))


def test_a_schema_that_is_not_ours(database):
    with psycopg.connect(database) as connection:
        connection.execute("CREATE SCHEMA forq; CREATE TABLE forq.orders (id bigint)")
    assert "has a schema `forq` that is not ours" in refusal(database)


def test_a_schema_of_a_newer_version(database):
    open_engine(database, EngineSettings(), "full").close()
    with psycopg.connect(database) as connection:
        connection.execute(
            "INSERT INTO forq.migrations VALUES (%s, 'later', 'x')", [module.KNOWN[-1].version + 1]
        )
    assert "was written by a newer version of forq-trio" in refusal(database)


def test_a_schema_of_an_older_version_is_brought_up_to_date_migration_by_migration(database, monkeypatch):
    module.migrate(database)
    latest = module.KNOWN[-1].version
    more = [Migration(latest + n, "more", f"CREATE TABLE more{n} (id bigint);") for n in (1, 2)]
    monkeypatch.setattr(module, "KNOWN", (*module.KNOWN, *more))
    engine = open_engine(database, EngineSettings(), "full")
    assert do(engine, Ping()) is None
    engine.close()
    with psycopg.connect(database) as connection:
        applied = connection.execute("SELECT version FROM forq.migrations ORDER BY version").fetchall()
    assert applied == [(migration.version,) for migration in module.KNOWN]


def test_a_role_without_rights(database):
    with psycopg.connect(database) as connection:
        connection.execute(f"DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD '{SECRET}'")
    assert "permission denied" in refusal(database.replace("postgres@", f"reader:{SECRET}@", 1))


def test_the_owner_of_the_database_needs_no_other_rights(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS plain")
        connection.execute("CREATE ROLE plain LOGIN")
        connection.execute(f"ALTER DATABASE {connection.info.dbname} OWNER TO plain")
    engine = open_engine(database.replace("postgres@", "plain@", 1), EngineSettings(), "full")
    assert do(engine, Ping()) is None
    engine.close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("REASSIGN OWNED BY plain TO postgres; DROP ROLE plain")


def test_a_role_that_owns_its_schema_needs_no_other_rights(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS tenant")
        connection.execute("CREATE ROLE tenant LOGIN; CREATE SCHEMA forq AUTHORIZATION tenant")
    engine = open_engine(database.replace("postgres@", "tenant@", 1), EngineSettings(), "full")
    do(engine, send("x"))
    assert [each.content for each in do(engine, claim())] == ["x"]
    with closing(engine.listen()) as listener, closing(engine.open_reader()) as reader:
        assert listener.heard() == set()
        assert reader.queue("q")[0].processing == 1
    engine.close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP OWNED BY tenant; DROP ROLE tenant")


def test_other_tables_of_the_database_are_left_alone_and_a_second_start_changes_nothing(database):
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE orders (id bigint)")
    for _ in range(2):
        engine = open_engine(database, EngineSettings(), "full")
        assert do(engine, Ping()) is None
        engine.close()
    with psycopg.connect(database) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [("orders",)]
