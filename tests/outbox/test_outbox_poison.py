"""Text that PostgreSQL cannot store, in an outbox of SQLite: set aside with its reason, and the relay goes on."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from forq_trio import ForqClient, outbox
from forq_trio.worker import Worker
from support.postgres import Postgres
from support.real_server import SECRET, RealServer, real_server

pytestmark = pytest.mark.process
SECONDS_MAX = 60
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
def server(postgres: Postgres) -> Iterator[RealServer]:
    database = postgres.new_database()
    with real_server(database) as server:
        yield server
    postgres.drop_database(database)


def aside(shop: sqlite3.Connection) -> list[str]:
    """The contents that were set aside; the reason of each names the character."""
    found = outbox.set_aside(shop)
    assert all(REASON in each.reason for each in found)
    return [each.message.content for each in found]


def test_the_command_sets_it_aside(shop, queue: str, tmp_path: Path, server: RealServer) -> None:
    relay = subprocess.run(
        [sys.executable, "-m", "forq_trio.cli", "relay", tmp_path / "shop.db", "--once", "--url", server.url],
        env=os.environ | {"FORQ_AUTH_SECRET": SECRET},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert (relay.returncode, relay.stdout) == (0, "2 messages sent.\n")
    assert "Message 2 is set aside" in relay.stderr
    assert aside(shop) == ["a\0b"]
    with ForqClient(server.url, SECRET) as client:
        assert [each.content for each in client.receive(queue, max_messages=9, wait_ms=0)] == [
            "before",
            "after",
        ]


async def test_a_worker_sets_it_aside_and_goes_on(
    shop, queue: str, tmp_path: Path, server: RealServer
) -> None:
    worker = Worker(server.url, secret=SECRET, outbox=tmp_path / "shop.db")
    got: list[str] = []

    @worker.on(queue, concurrency=1)
    async def take(content: str) -> None:
        got.append(content)
        if len(got) == 2:
            worker.stop()

    with trio.fail_after(SECONDS_MAX):
        await worker.serve()
    assert got == ["before", "after"]
    assert aside(shop) == ["a\0b"]
