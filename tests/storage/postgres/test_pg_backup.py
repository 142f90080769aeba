"""Backups by the database's own tools: what pg_dump wrote is a whole queue again, at another place."""

import re
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from forq_trio.model.commands import RunSchedule
from forq_trio.storage.engine import Engine, EngineSettings
from forq_trio.storage.open import open_engine
from support.batches import do
from support.postgres import SYSTEM_USER, USER, programs
from support.rich import fill
from support.words import ack, claim, send


def opened(url: str) -> Engine:
    return open_engine(url, EngineSettings(history=True, events=True), "normal")


def documented(program: str) -> list[str]:
    """The options of a command on the page about PostgreSQL, but for names of files and databases."""
    page = (Path(__file__).parents[3] / "docs/postgres.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith(f"{program} ")]
    return [
        word for word in line.split()[1:] if word.startswith("--") and not re.match("--(file|dbname)=", word)
    ]


def run(postgres, program: str, *arguments: str) -> None:
    bin = programs()
    assert bin is not None
    subprocess.run([bin / program, *arguments], check=True, user=SYSTEM_USER, cwd=postgres.directory)


@pytest.fixture
def restored(postgres):
    """A database whose owner is the queue's role, as the page has it made."""
    url = postgres.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE queue_server LOGIN")
        connection.execute("GRANT CREATE ON DATABASE " + connection.info.dbname + " TO queue_server")  # type: ignore[arg-type]
    yield url
    postgres.drop_database(url)
    postgres.execute("DROP ROLE queue_server")


def test_a_dump_of_a_queue_in_use_is_a_whole_queue_elsewhere(postgres, database, restored):
    """The server goes on meanwhile: the dump has what was committed when it began."""
    dump = str(postgres.directory / "queue.dump")
    with closing(opened(database)) as engine:
        filled = fill(engine)
        run(postgres, "pg_dump", *documented("pg_dump"), f"--file={dump}", f"--dbname={database}")
        later = do(engine, send("later", queue="later"))
        run(postgres, "pg_restore", *documented("pg_restore"), f"--dbname={restored}", dump)
        with closing(opened(restored.replace(f"//{USER}@", "//queue_server@"))) as copy:
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
