"""Text that PostgreSQL cannot store, in an outbox of SQLite: set aside with its reason, and the relay goes on."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from cli.conftest import Forq
from forq_trio import ForqClient, outbox
from forq_trio.worker import Worker
from support.in_process import in_process_server
from support.postgres import Postgres
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET

REASON = "U+0000"


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    """One of the test's own."""
    return request.node.name


@pytest.fixture
def shop(tmp_path: Path, queue: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        outbox.create_table(connection)
        for content in ("before", "a\0b", "after"):
            outbox.send(connection, queue, content)
        connection.commit()
        yield connection


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> Iterator[str]:
    """That of a server on PostgreSQL."""
    database = postgres.new_database()
    with in_process_server(database=database) as url:
        yield url
    postgres.drop_database(database)


def aside(shop: sqlite3.Connection) -> list[str]:
    """The contents that were set aside; the reason of each names the character."""
    found = outbox.set_aside(shop)
    assert all(REASON in each.reason for each in found)
    return [each.message.content for each in found]


def test_the_command_sets_it_aside(
    shop, queue: str, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORQ_AUTH_SECRET", SECRET)
    relay = Forq(monkeypatch)("relay", str(tmp_path / "shop.db"), "--once", "--url", url)
    assert (relay.code, relay.out) == (0, "2 messages sent.\n")
    assert "Message 2 is set aside" in relay.err
    assert aside(shop) == ["a\0b"]
    with ForqClient(url, SECRET) as client:
        received = client.receive(queue, max_messages=9, wait_ms=0)
    assert [each.content for each in received] == ["before", "after"]


async def test_a_worker_sets_it_aside_and_goes_on(shop, queue: str, tmp_path: Path, url: str) -> None:
    worker = Worker(url, secret=SECRET, outbox=tmp_path / "shop.db")
    got: list[str] = []

    @worker.on(queue, concurrency=1)
    async def take(content: str) -> None:
        got.append(content)
        if len(got) == 2:
            worker.stop()

    with trio.fail_after(WAIT_SECONDS_MAX):
        await worker.serve()
    assert got == ["before", "after"]
    assert aside(shop) == ["a\0b"]
