"""`forq relay` as a process: killed, twice at once, and over a restart of the server, it loses and doubles nothing."""

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from forq_trio import ForqClient, outbox
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, environment, real_server

pytestmark = pytest.mark.process


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "shop.db", timeout=60)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = off")
        outbox.create_table(connection)
        connection.commit()
        yield connection


@contextmanager
def relaying(folder: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A relay of the shop, killed in the end."""
    command = [sys.executable, "-m", "forq_trio.cli", "relay", str(folder / "shop.db"), "--url", url]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def write(shop: sqlite3.Connection, numbers: range) -> None:
    for number in numbers:
        outbox.send(shop, "q", str(number))
    shop.commit()


def receive(client: ForqClient, count: int) -> list[int]:
    """The next messages in their order, acknowledged."""
    got: list[int] = []
    while len(got) < count:
        deliveries = client.receive("q", max_messages=100, wait_ms=30_000)
        assert deliveries, f"only {len(got)} of {count} came"
        client.ack("q", [each.receipt for each in deliveries])
        got += [int(each.content) for each in deliveries]
    return got


@pytest.mark.tier2
def test_a_relay_sends_what_is_committed_and_goes_on_when_the_server_is_back(shop, tmp_path) -> None:
    with ExitStack() as stack:
        with real_server(tmp_path / "forq.db") as server:
            stack.enter_context(relaying(tmp_path, server.url))
            stack.enter_context(relaying(tmp_path, server.url))
            with ForqClient(server.url, SECRET) as client:
                write(shop, range(20))
                assert receive(client, 20) == [*range(20)]
            assert server.stop() == 0
        write(shop, range(20, 40))
        with (
            real_server(tmp_path / "forq.db", server.address) as server,
            ForqClient(server.url, SECRET) as client,
        ):
            assert receive(client, 20) == [*range(20, 40)]
            assert client.receive("q", wait_ms=0) == []


def killed_again_and_again(shop: sqlite3.Connection, folder: Path, rounds: int) -> None:
    """Kill relay and server while messages are sent, at a point that those choose; the last ones send the rest."""
    total = 0
    got: list[int] = []
    chance = random.Random(rounds)
    for number in range(rounds + 1):
        with real_server(folder / "forq.db") as server, relaying(folder, server.url) as relay:
            with ForqClient(server.url, SECRET) as client:
                for _ in range(4):
                    write(shop, range(total, total + 50))
                    total += 50
                last = number == rounds
                got += receive(client, total - len(got) if last else chance.randint(1, 150))
                assert not last or client.receive("q", wait_ms=0) == []
            victim = chance.choice((relay, server.process))
            victim.kill()
            victim.wait(WAIT_SECONDS_MAX)
    assert got == [*range(total)]


def test_a_relay_or_server_that_is_killed_loses_and_doubles_nothing(shop, tmp_path) -> None:
    killed_again_and_again(shop, tmp_path, 1)


@pytest.mark.tier2
def test_a_relay_or_server_that_is_killed_many_times_loses_and_doubles_nothing(shop, tmp_path) -> None:
    killed_again_and_again(shop, tmp_path, 25)
