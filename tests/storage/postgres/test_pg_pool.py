"""Through PgBouncer, whose transactions run on any of its connections: settings and statements go with each of them."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from forq_trio import open_blocking_broker
from forq_trio.model import limits
from forq_trio.model.errors import StorageOpenError
from forq_trio.model.server.database_urls import OtherUrls, split_pooled
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.storage.postgres.connection import PgConnection
from forq_trio.storage.postgres.open import SESSION, DatabaseAddress
from support.batches import do
from support.pgbouncer import through
from support.words import ack, claim, send

ROOT = Path(__file__).parents[3]
PIECE = ["tests/storage/postgres/test_pg_engines.py", "tests/storage/postgres/test_pg_reader.py"]
PIECE += [f"tests/conformance/test_{name}.py" for name in ("claim", "reader", "groups", "isolation")]


def shown_by(connection: PgConnection, name: str) -> str:
    connection._pg.send_query_params(f"SHOW {name}".encode(), None)
    connection._sent.append(None)
    ((value,),) = connection.wait()
    return value


def test_each_transaction_has_our_settings_and_leaves_none_behind(postgres, database):
    with (
        postgres.pool("transaction") as pool,
        closing(DatabaseAddress(through(pool, database)).connect()) as ours,
    ):
        assert ours.pooled
        ours.query("begin")
        shown = {name: shown_by(ours, name) for name in SESSION}
        ours.query("commit")
        assert shown == SESSION
        with psycopg.connect(through(pool, database), autocommit=True) as other:
            for _ in range(8):
                assert other.execute("SHOW search_path").fetchone() == ('"$user", public',)


def told_pooled(url: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}pooled=yes"


def prepared_by(connection: PgConnection) -> str:
    connection._pg.send_query_params(b"SELECT count(*) FROM pg_prepared_statements", None)
    connection._sent.append(None)
    ((value,),) = connection.wait()
    return value


@pytest.mark.parametrize("replica", [False, True])
def test_a_pool_that_passes_process_numbers_on_is_told_by_the_url(database, replica):
    """Without a pool, all that a session would keep is seen."""
    for url, is_pool in ((database, False), (told_pooled(database), True)):
        with closing(DatabaseAddress(url).connect(replica=replica)) as ours:
            assert ours.pooled is is_pool
            for _ in range(2):
                ours.query("begin")
                assert shown_by(ours, "search_path") == "forq"
                ours.query("encoding")
                ours.query("commit")
                ours.reopen()
            ours.query("encoding")
            assert (prepared_by(ours) == 0) is is_pool
            assert (shown_by(ours, "search_path") == '"$user", public') is is_pool


def test_nobody_listens_through_a_pool_that_the_url_tells_of(database):
    url = told_pooled(database)
    for others, seconds in (
        (OtherUrls(), limits.PEERS_LOOK_SECONDS_POOLED),
        (OtherUrls(listen=database), limits.PEERS_LOOK_SECONDS),
    ):
        with closing(open_engine(url, EngineSettings(), "full", others)) as engine:
            do(engine, send("x"))
            with closing(engine.listen()) as listener, closing(engine.open_reader()) as reader:
                assert listener.catch_up_seconds == seconds
                assert reader.queue("q")[0].ready >= 1
            assert [each.content for each in do(engine, claim())] == ["x"]
    with pytest.raises(StorageOpenError, match="is reached through a pool, where nothing can be heard"):
        open_engine(database, EngineSettings(), "full", OtherUrls(listen=url))


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("postgresql://db/q?pooled=yes", ("postgresql://db/q", True)),
        ("postgresql://db/q?pooled=auto", ("postgresql://db/q", False)),
        ("postgresql://db/q?pooled=yes&port=1", ("postgresql://db/q?port=1", True)),
        ("postgresql://db/q?port=1&pooled=yes&host=a", ("postgresql://db/q?port=1&host=a", True)),
        ("postgresql://db/q?port=1&pooled=yes", ("postgresql://db/q?port=1", True)),
        ("postgresql://db/q?application_name=pooled=yes", ("postgresql://db/q?application_name=pooled=yes", False)),
        ("postgresql://db/q", ("postgresql://db/q", False)),
    ],
)  # fmt: skip
def test_the_option_of_a_url_is_ours(given, read):
    assert split_pooled(given) == read


def test_another_value_of_the_option_is_refused_by_name():
    with pytest.raises(StorageOpenError, match=r"cannot be read: .*pooled"):
        DatabaseAddress("postgresql://db/q?pooled=on")


def test_three_processes_share_a_pool_smaller_than_their_connections(postgres, database):
    with postgres.pool("transaction") as pool:
        url = through(pool, database)
        engines = [open_engine(url, EngineSettings(), "full") for _ in range(3)]
        readers = [engine.open_reader() for engine in engines for _ in range(2)]
        for number in range(12):
            do(engines[number % 3], send(str(number)))
            assert readers[number % 6].queue("q")[0].ready == 1
            (delivery,) = do(engines[(number + 1) % 3], claim())
            assert delivery.content == str(number)
            assert do(engines[(number + 2) % 3], ack(delivery)) == (True,)
        for each in (*readers, *engines):
            each.close()


def test_a_pool_of_statements_is_refused(postgres, database):
    with postgres.pool("statement") as pool, pytest.raises(StorageOpenError) as raised:
        open_engine(through(pool, database), EngineSettings(), "full")
    assert "cannot be used: its pool needs pool_mode = transaction or session" in str(raised.value)


def test_an_embedded_broker_listens_beside_the_pool(postgres, database, monkeypatch):
    """A looks once an hour, so only what is heard wakes its consumer."""
    for name in ("PEERS_LOOK_SECONDS", "PEERS_LOOK_SECONDS_POOLED"):
        monkeypatch.setattr(limits, name, 3_600.0)
    with (
        postgres.pool("transaction") as pool,
        open_blocking_broker(through(pool, database), listen_url=database) as a,
        open_blocking_broker(database) as b,
        ThreadPoolExecutor(1) as threads,
    ):
        a.configure("q", max_attempts=9)  # so it is known
        received = threads.submit(a.receive, "q", wait_ms=30_000)
        while not a.queue_stats("q").waiting:
            a.healthcheck()
        b.produce("q", "x")
        assert [each.content for each in received.result()] == ["x"]


@pytest.mark.parametrize("option", ["listen_url", "replica_url"])
def test_another_url_that_is_no_database_of_this_one_is_refused(postgres, database, option):
    other = postgres.new_database()
    options = {option: other}
    with pytest.raises(StorageOpenError), open_blocking_broker(database, **options):
        raise AssertionError
    postgres.drop_database(other)
    with pytest.raises(StorageOpenError, match="is for a database of PostgreSQL"):
        open_blocking_broker("memory:", **options)


@pytest.mark.tier2
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_piece_of_the_conformance_suite(mode):
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-k", "not memory and not sqlite", *PIECE),
        ],
        env=os.environ | {"FORQ_TEST_POSTGRES_POOL": mode, "FORQ_TEST_EFFORT": "0.05"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-4000:]
