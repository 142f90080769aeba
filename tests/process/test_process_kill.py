"""Promise 1 against real processes: killed under load, nothing that was answered is lost and nothing acked returns.

FORQ_KILL_ROUNDS sets how often the server is killed, FORQ_SOAK_MINUTES how long the soak goes on.
"""

import os
import time

import pytest
import trio

from client.real_server import real_server
from process.books import Books
from process.load import BROKEN_OFF, Load

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings(BROKEN_OFF)]

ROUNDS = int(os.environ.get("FORQ_KILL_ROUNDS", "20"))
SOAK_MINUTES = float(os.environ.get("FORQ_SOAK_MINUTES", "0"))


def kill_under_load(database, books: Books, sends: int) -> None:
    """Start a server, kill it after so many answered sends while more are under way."""
    with real_server(database) as server:
        load = Load(server.url, books, lambda sent: sent >= sends)

        async def run() -> None:
            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(load.run)
                    await load.until_enough()
                    server.process.kill()
                    # Whatever was answered before may still be on its way to us; then the connections break.

        trio.run(run)
        assert load.statuses <= {200, 204}
        server.process.wait()


def test_killed_again_and_again_it_keeps_its_promises(tmp_path, rng) -> None:
    database = tmp_path / "forq.db"
    books = Books()
    for _ in range(ROUNDS):
        kill_under_load(database, books, rng.randrange(1, 150))
        books.check(database, tmp_path / "copy")
    assert books.acked
    assert len(books.answered) >= ROUNDS


@pytest.mark.soak
@pytest.mark.skipif(SOAK_MINUTES == 0, reason="FORQ_SOAK_MINUTES says for how long")
def test_killed_for_minutes_it_keeps_its_promises(tmp_path, rng) -> None:
    database = tmp_path / "forq.db"
    books = Books()
    end = time.monotonic() + 60 * SOAK_MINUTES
    while time.monotonic() < end:
        kill_under_load(database, books, rng.randrange(1, 5_000))
        books.check(database, tmp_path / "copy")
