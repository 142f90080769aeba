"""Promise 1 against real processes: killed under load, nothing that was answered is lost and nothing acked returns.

Each round starts a server on the file the last one left, tries receipts from before, puts load on it while its clean-up
jobs run every second and `forq backup` copies the file again and again, kills it, and balances the books.
FORQ_TEST_EFFORT sets how often. In the soak, whose rounds are longer, as often as there is time.
"""

import subprocess
import sys
from time import monotonic

import pytest
import trio

from forq_trio.storage.sqlite.files.identity import LOCK_SUFFIX
from reliability.process.books import Books
from reliability.process.load import BROKEN_OFF, Load, make_client
from support.effort import count, many_trials, soak_seconds
from support.real_server import environment, real_server

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings(BROKEN_OFF)]

ROUNDS = count("kills")
BUSY_JOBS = {
    "FORQ_SASQUATCH_POISON_CLEANUP_INTERVAL": "1",
    "FORQ_SASQUATCH_RETENTION_CLEANUP_INTERVAL": "1",
    "FORQ_SASQUATCH_DEDUP_CLEANUP_INTERVAL": "1",
}


async def back_up(database, target, books: Books) -> None:
    """Run `forq backup` and hold the copy against the books as they were before and are now."""
    begun = books.page()
    command = [sys.executable, "-m", "forq_trio.cli", "backup", str(target), "--db", str(database)]
    done = await trio.run_process(command, env=environment(), capture_stdout=True, stderr=subprocess.STDOUT)
    assert b"is backed up to" in done.stdout
    books.check_backup(target, begun)
    target.unlink()


def kill_under_load(database, books: Books, sends: int) -> None:
    """Start a server, kill it after so many answered sends while more are under way."""
    with real_server(database, **BUSY_JOBS) as server:
        load = Load(server.url, books, lambda sent: sent >= sends)

        async def back_up_until_dead() -> None:
            while server.process.poll() is None:
                await back_up(database, database.with_name("backup.db"), books)

        async def run() -> None:
            with trio.fail_after(120):
                async with make_client(server.url) as client:
                    await load.settle_what_was_held(client)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(load.run)
                    nursery.start_soon(back_up_until_dead)
                    await load.until_enough()
                    server.process.kill()
                    # Whatever was answered before may still be on its way to us; then the connections break.

        trio.run(run)
        assert load.statuses <= {200, 204}
        server.process.wait()


def kill_again_and_again(tmp_path, rng, rounds: int, sends_max: int, seconds: float = 0.0) -> Books:
    """At least so many rounds, and as many more as there is time for; the first with enough sends to be worth it."""
    database = tmp_path / "forq.db"
    books = Books()
    end = monotonic() + seconds
    lock = database.with_name(database.name + LOCK_SUFFIX)
    done = unlocked = 0
    while done < rounds or monotonic() < end:
        done += 1
        if done == 2 or (done > 2 and rng.random() < 0.3):  # somebody tidies up between two servers
            lock.unlink()
            unlocked += 1
        kill_under_load(database, books, rng.randrange(1 if done > 1 else sends_max // 2, sends_max))
        books.check(database, tmp_path / "copy")
    print(f"{done} kills: {books.asked} sends asked for, {len(books.answered)} answered, ", end="")
    print(f"{len(books.acked)} acknowledged, {len(books.stale)} redelivered, {books.backups} backups,")
    print(f"{unlocked} lock files removed")
    return books


@many_trials
def test_killed_again_and_again_it_keeps_its_promises(tmp_path, rng) -> None:
    books = kill_again_and_again(tmp_path, rng, ROUNDS, 200)
    assert books.acked
    assert books.stale
    assert books.backups >= ROUNDS
    assert len(books.answered) >= ROUNDS


@pytest.mark.soak
def test_killed_for_long_it_keeps_its_promises(tmp_path, rng) -> None:
    sends_max = 2_000 if soak_seconds() >= 60 else 200
    books = kill_again_and_again(tmp_path, rng, 3, sends_max, soak_seconds())
    assert books.acked
    assert books.stale
    assert books.backups >= 3
