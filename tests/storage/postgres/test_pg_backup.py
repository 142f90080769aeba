"""Backups by the database's own tools: what pg_dump wrote is a whole queue again, at another place."""

import subprocess
from contextlib import closing

import pytest

from forq_trio.model.commands import RunSchedule
from forq_trio.storage.engine import Engine, EngineSettings
from forq_trio.storage.open import open_engine
from support.batches import do
from support.postgres import SYSTEM_USER, programs
from support.rich import fill
from support.words import ack, claim, send


def opened(url: str) -> Engine:
    return open_engine(url, EngineSettings(history=True, events=True), "normal")


def run(postgres, program: str, *arguments: str) -> None:
    bin = programs()
    assert bin is not None
    subprocess.run([bin / program, *arguments], check=True, user=SYSTEM_USER, cwd=postgres.directory)


@pytest.fixture
def restored(postgres):
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


def test_a_dump_of_a_queue_in_use_is_a_whole_queue_elsewhere(postgres, database, restored):
    """The server goes on meanwhile: the dump has what was committed when it began."""
    dump = str(postgres.directory / "queue.dump")
    with closing(opened(database)) as engine:
        filled = fill(engine)
        run(postgres, "pg_dump", "--format=custom", "--schema=forq", f"--file={dump}", f"--dbname={database}")
        later = do(engine, send("later", queue="later"))
        run(postgres, "pg_restore", "--no-owner", f"--dbname={restored}", dump)
        with closing(opened(restored)) as copy:
            assert copy.snapshot().counts == {
                name: counts for name, counts in engine.snapshot().counts.items() if name != "later"
            }
            assert copy.snapshot().tokens == engine.snapshot().tokens
            assert do(copy, send(deduplication_id="once")).sequence == filled.once.sequence
            assert (
                do(copy, send("new", queue="later")).sequence == later.sequence
            )  # the same number, elsewhere
            assert do(copy, ack(filled.leased)) == (True,)
            assert do(engine, ack(filled.leased)) == (True,)
            assert not isinstance(do(copy, RunSchedule("a")), Exception)
            assert [each.content for each in do(copy, claim(queue="later"))] == ["new"]
