"""A real server told to stop, and servers that cannot start."""

import subprocess
import sys

import apsw
import pytest
import trio

from client.real_server import environment, real_server
from process.books import Books
from process.load import BROKEN_OFF, Load, make_client

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings(BROKEN_OFF)]


def test_sigterm_under_load_answers_what_it_took_and_ends_well(tmp_path) -> None:
    database = tmp_path / "forq.db"
    books = Books()
    polls: list[tuple[int, object]] = []
    with real_server(database) as server:
        load = Load(server.url, books, lambda sent: sent >= 100)

        async def poll() -> None:
            async with make_client(server.url) as client:
                answer = await client.post(
                    "/api/v1/queues/idle/messages/receive",
                    json={"max": 1, "waitMs": 30_000, "leaseMs": 1_000},
                )
                polls.append((answer.status_code, answer.json()))

        async def parked() -> int:
            async with make_client(server.url) as client:
                return (await client.get("/api/v1/queues/idle")).json()["waiting"]

        async def run() -> None:
            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    for _ in range(10):
                        nursery.start_soon(poll)
                    while await parked() < 10:
                        pass
                    nursery.start_soon(load.run)
                    await load.until_enough()
                    server.process.terminate()

        trio.run(run)
        assert server.process.wait(30) == 0
    assert polls == [(200, {"messages": []})] * 10
    assert load.statuses <= {200, 204, 503}
    books.check(database, tmp_path / "copy")
    assert not (tmp_path / "forq.db-wal").exists()


def serve(database, address: str) -> subprocess.CompletedProcess[str]:
    """`forq serve` where it cannot."""
    command = [sys.executable, "-m", "forq_trio.cli", "serve", "--api-addr", address, "--db", str(database)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)


def refused(database, address: str = "127.0.0.1:0") -> str:
    """The one sentence with which it gives up."""
    ended = serve(database, address)
    assert ended.returncode not in (0, -9), ended
    assert ended.stdout == ""
    (sentence,) = ended.stderr.splitlines()
    assert "Traceback" not in sentence
    return sentence


def test_a_second_server_on_the_file_is_refused(tmp_path) -> None:
    with real_server(tmp_path / "forq.db") as server:
        assert "in use by another forq server" in refused(tmp_path / "forq.db")
        assert server.stop() == 0


def test_a_port_in_use_is_named(tmp_path) -> None:
    with real_server(tmp_path / "forq.db") as server:
        assert server.address in refused(tmp_path / "other.db", server.address)
        assert not (tmp_path / "other.db").exists()


def test_a_file_that_is_no_database_stays_as_it_is(tmp_path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("This is not a database. " * 1_000, encoding="utf-8")
    before = path.read_bytes()
    assert "is not a SQLite database" in refused(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_somebody_elses_database_stays_as_it_is(tmp_path) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE people (name TEXT); INSERT INTO people VALUES ('Ada')")
    connection.close()
    before = path.read_bytes()
    assert str(path) in refused(path)
    assert path.read_bytes() == before


def test_a_damaged_database_stays_as_it_is(tmp_path) -> None:
    path = tmp_path / "forq.db"
    with real_server(path) as server:
        assert server.stop() == 0
    damaged = bytearray(path.read_bytes())
    damaged[100:4096] = bytes(3996)
    path.write_bytes(damaged)
    assert str(path) in refused(path)
    assert path.read_bytes() == bytes(damaged)


def test_a_missing_directory_is_a_problem_of_the_configuration(tmp_path) -> None:
    ended = serve(tmp_path / "missing" / "forq.db", "127.0.0.1:0")
    assert ended.returncode == 2
    assert "lies in a directory that does not exist" in ended.stderr
    assert list(tmp_path.iterdir()) == []
