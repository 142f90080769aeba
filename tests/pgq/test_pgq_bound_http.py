"""A bound queue over HTTP: who may bind it, what the routes answer, and what its page says."""

from collections.abc import Iterator

import pytest

from forq_trio import ForqClient, Scope
from forq_trio.model.errors import Forbidden, NoTable, QueueBound, QueueNotBound, WrongTable
from forq_trio.model.queue_settings import QueueTable
from forq_trio.pgq import drop_table
from support.real_server import SECRET, RealServer, real_server
from support.ui_http import logged_in

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(pgq_url) -> Iterator[RealServer]:
    with real_server(pgq_url, FORQ_ENV="local") as server:
        yield server


@pytest.fixture
def client(server) -> Iterator[ForqClient]:
    with ForqClient(server.url, SECRET) as client:
        yield client


def test_the_client_binds_and_what_it_sends_is_a_row(client, table, rows) -> None:
    assert client.bind("http", table) == client.bound_table("http") == QueueTable("pgq", table)
    produced = client.produce("http", '{"n": 1}', attributes={"a": "b"})
    assert str(rows.one()["id"]) == produced.id
    assert client.queue_stats("http").ready == 1
    assert client.queue_stats("http").table == QueueTable("pgq", table)
    (delivery,) = client.receive("http")
    client.extend("http", delivery, 60_000)
    client.ack("http", delivery)
    assert rows.one()["processed_at"] is not None
    with pytest.raises(QueueBound, match="a purge is not possible"):
        client.purge("http")
    with pytest.raises(QueueBound):
        client.offer("http", "key", "{}")
    client.unbind("http")
    with pytest.raises(QueueNotBound):
        client.bound_table("http")


def test_what_is_wrong_with_a_table_is_told_over_http(client, table, rows) -> None:
    with pytest.raises(NoTable):
        client.bind("wrong", "No/Such")
    rows.run("ALTER TABLE {} DROP COLUMN error_detail")
    with pytest.raises(WrongTable, match="error_detail"):
        client.bind("wrong", table)


def test_a_token_of_some_queues_binds_none(server, client, table) -> None:
    made = client.create_token("some", scopes=[Scope.ADMIN], queues="own*")
    with ForqClient(server.url, made.token) as some, pytest.raises(Forbidden):
        some.bind("own", table)
    client.revoke_token("some")


def test_its_page_says_so_and_counts_the_rows(server, client, connection, table, rows) -> None:
    client.bind("paged", table)
    rows.add({})
    rows.add({}, consumed_count="9")
    with logged_in(server.ui_url) as browser:
        page = browser.get("/queue/paged").text
        assert "Bound to the table" in page
        assert "EU" in page
        assert "its rows that are not finished" in page
        assert "Lease 5 min, 5 attempts: defaults." in page
        assert "Purge…" not in page
        drop_table(connection, table)
        assert "does not exist" in browser.get("/queue/paged").text
    client.unbind("paged")
