"""TLS to the database, for each kind of connection: who is not verified is refused in one sentence."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from forq_trio.cli.exits import Exit
from forq_trio.model.errors import StorageOpenError
from forq_trio.model.server.database_urls import OtherUrls
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.storage.postgres.engine import PostgresEngine
from support.batches import do
from support.postgres_tls import TlsPostgres, tls_server
from support.ui_http import until
from support.words import claim, send

PASSWORD = "hunter2"
CONNECTIONS = """
SELECT count(*), bool_and(ssl.ssl) FROM pg_stat_ssl AS ssl JOIN pg_stat_activity USING (pid)
WHERE usename = 'queue_server'
"""


@pytest.fixture(scope="module")
def tls() -> Iterator[TlsPostgres]:
    with tls_server() as server:
        server.make_role("queue_server", PASSWORD)
        server.execute("ALTER DATABASE queue OWNER TO queue_server")
        yield server


def url(tls: TlsPostgres, authority: Path | str | None = None, **more: str) -> str:
    """That of the server's role, as docs/postgres.md has it."""
    trusted = str(tls.authority if authority is None else authority)
    return tls.url("queue_server", PASSWORD, sslmode="verify-full", sslrootcert=trusted, **more)


WRONG = {
    "another host's name": ({"host": "other.example"}, 'server certificate for "db.example" does not match'),
    "another signer": ({"authority": "other"}, "certificate verify failed"),
    "a missing file": ({"authority": "/nowhere/ca.pem"}, '"/nowhere/ca.pem" does not exist'),
}


def wrong_url(tls: TlsPostgres, options: dict[str, str]) -> str:
    given: dict[str, str] = dict(options)
    authority = given.pop("authority", None)
    return url(tls, tls.other if authority == "other" else authority, **given)


@pytest.fixture
def alone(tls):
    """Nobody is connected any more: the database ends the process of a connection a moment after its client is gone."""
    until(lambda: tls.execute(CONNECTIONS) == [(0, None)])


def test_all_connections_are_verified_and_encrypted(tls, alone):
    others = OtherUrls(listen=url(tls))
    with closing(open_engine(url(tls), EngineSettings(), "full", others)) as engine:
        assert isinstance(engine, PostgresEngine)
        do(engine, send("x"))
        assert [each.content for each in do(engine, claim())] == ["x"]
        with closing(engine.listen()) as listener, closing(engine.open_reader()) as reader:
            assert listener.heard() == set()
            assert reader.queue("q")[0].processing == 1
            assert tls.execute(CONNECTIONS) == [(3, True)]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("command", ["migrate", "serve"])
def test_who_is_not_verified_is_refused(tls, forq, monkeypatch, logging_as_before, command, wrong):
    options, words = WRONG[wrong]
    monkeypatch.setenv("FORQ_API_ADDR", "127.0.0.1:0")
    monkeypatch.setenv("FORQ_UI_ENABLED", "false")
    monkeypatch.setenv("FORQ_DB_URL", wrong_url(tls, options))
    done = forq(command)
    assert (done.code, done.out, done.err.count("\n")) == (Exit.USAGE, "", 1), done
    assert words in done.err
    assert PASSWORD not in done.err


@pytest.mark.parametrize("wrong", WRONG)
def test_a_place_to_listen_that_is_not_verified_is_refused(tls, wrong):
    options, words = WRONG[wrong]
    with pytest.raises(StorageOpenError, match=words) as raised:
        open_engine(url(tls), EngineSettings(), "full", OtherUrls(listen=wrong_url(tls, options)))
    assert "\n" not in str(raised.value)
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_replica_that_is_not_verified_is_not_used(tls, alone, wrong):
    others = OtherUrls(replica=wrong_url(tls, WRONG[wrong][0]))
    with (
        closing(open_engine(url(tls), EngineSettings(), "full", others)) as engine,
        closing(engine.open_reader()) as reader,
    ):
        reader.queues()
        assert engine.facts().replica == "away"
        assert tls.execute(CONNECTIONS) == [(2, True)]


@pytest.mark.tier2
def test_a_server_without_tls_is_refused(forq, monkeypatch):
    with tls_server(tls=False) as plain:
        plain.make_role("queue_server", PASSWORD)
        monkeypatch.setenv("FORQ_DB_URL", url(plain))
        done = forq("migrate")
    assert (done.code, done.out, done.err.count("\n")) == (Exit.USAGE, "", 1), done
    assert "server does not support SSL, but SSL was required" in done.err
    assert PASSWORD not in done.err
