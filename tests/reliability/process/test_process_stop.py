"""A real server told to stop, and servers that cannot start."""

import json
import signal
import subprocess
import sys

import httpx
import pytest
import trio

from forq_trio.cli.exits import Exit
from reliability.process.books import LOAD, Books
from reliability.process.load import make_client, messages_of
from reliability.process.stopping import POLLING, Stopping
from support.effort import count, many_trials
from support.real_server import SECRET, environment, real_server

pytestmark = pytest.mark.process

KEY = {"X-API-Key": SECRET}


def stop_under_load(database, books: Books, sends: int) -> Stopping:
    """SIGTERM to a server with long polls, kept connections and new ones; the clients' view of it."""
    with real_server(database, ui=True) as server:
        clients = Stopping(int(server.address.rpartition(":")[2]), books, len(books.answered) + sends)

        async def parked() -> int:
            async with make_client(server.url) as client:
                return (await client.get("/api/v1/queues/idle")).json()["waiting"]

        async def run() -> None:
            with trio.fail_after(120):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(clients.run)
                    await clients.until_enough()
                    while await parked() < POLLING:
                        pass
                    server.process.terminate()

        trio.run(run)
        assert server.process.wait(120) == 0
    return clients


@many_trials
def test_sigterm_under_load_answers_everybody_and_loses_nothing(tmp_path, rng) -> None:
    """Design 2, structured shutdown. FORQ_TEST_EFFORT sets how often."""
    database = tmp_path / "forq.db"
    books = Books()
    refused: set[str] = set()
    for _ in range(count("stops")):
        clients = stop_under_load(database, books, rng.randrange(1, 500))
        refused |= clients.refused
        assert clients.polls == [(200, b'{"messages":[]}', b"close")] * POLLING
        assert clients.statuses <= {204, 503}
        assert not (tmp_path / "forq.db-wal").exists()
    assert books.check(database, tmp_path / "copy") == len(books.answered)
    assert books.asked == len(books.answered) + len(refused)


def serve(database, address: str) -> subprocess.CompletedProcess[str]:
    """`forq serve` where it cannot."""
    command = [
        sys.executable,
        "-m",
        "forq_trio.cli",
        "serve",
        "--api-addr",
        address,
        "--ui-addr",
        "127.0.0.1:0",
        "--db",
        str(database),
    ]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )


def refused(database, address: str = "127.0.0.1:0", code: Exit = Exit.USAGE) -> str:
    """The one sentence with which it gives up."""
    ended = serve(database, address)
    assert ended.returncode == code, ended
    assert ended.stdout == ""
    (sentence,) = ended.stderr.splitlines()
    assert "Traceback" not in sentence
    return sentence


def test_a_second_server_is_refused_and_sighup_ends_the_first_in_order(tmp_path) -> None:
    """The first one does not notice the second. Other names of the file, and locks of the dead: tests/storage/files.

    The terminal sends SIGHUP, which ends a process at once by default.
    """
    database = tmp_path / "forq.db"
    with real_server(database) as server:
        assert (
            httpx.post(
                f"{server.url}{messages_of(LOAD)}", json={"content": "1"}, headers=KEY, verify=False
            ).status_code
            == 204
        )
        assert "in use by another forq server" in refused(database)
        assert (
            httpx.get(f"{server.url}{messages_of(LOAD)}", headers=KEY, verify=False).json()["content"] == "1"
        )
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(120) == 0
    assert not database.with_name("forq.db-wal").exists()


@pytest.mark.tier2
def test_a_port_in_use_is_named(tmp_path) -> None:
    with real_server(tmp_path / "forq.db", ui=True) as server:
        assert server.address in refused(tmp_path / "other.db", server.address, Exit.FAILED)
        assert not (tmp_path / "other.db").exists()


@pytest.mark.tier2
def test_under_nohup_a_terminal_that_goes_away_is_none_of_its_business(tmp_path) -> None:
    """nohup starts a program with SIGHUP ignored, and it has to stay so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with real_server(tmp_path / "forq.db") as server:
            server.process.send_signal(signal.SIGHUP)
            assert httpx.get(f"{server.url}/healthcheck", verify=False).is_success
            assert server.stop() == 0
            assert server.process.stderr is not None
            events = [json.loads(line) for line in server.process.stderr]
    finally:
        signal.signal(signal.SIGHUP, before)
    assert [event.get("signal") for event in events] == ["SIGTERM", None]
