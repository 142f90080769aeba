"""`forq migrate` and `forq move`, and `forq serve` on what it refuses: one sentence, exit code 2, no password."""

import json
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import psycopg
import pytest

from forq_trio.cli import database as commands
from forq_trio.cli.exits import Exit
from forq_trio.model import limits
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.migrate import Migration
from forq_trio.storage.open import open_engine
from forq_trio.storage.postgres.open import KNOWN as KNOWN_TO_POSTGRES
from forq_trio.storage.sqlite.files import migrations
from forq_trio.storage.sqlite.files.migrations import KNOWN
from forq_trio.storage.sqlite.files.open import open_database
from support.batches import run
from support.processes import killed_after
from support.real_server import environment
from support.rich import fill
from support.unreleased import SQLITE_VERSION, make_unreleased_file
from support.words import send

NOW, PG_NOW = KNOWN[-1].version, KNOWN_TO_POSTGRES[-1].version
SECRET = "hunter2"


def test_a_file_is_brought_up_to_date_once(forq, tmp_path: Path, monkeypatch):
    path = str(tmp_path / "old.db")
    open_database(path, "full").close()
    later = Migration(NOW + 1, "later", "ALTER TABLE queues ADD COLUMN later")
    monkeypatch.setattr(migrations, "KNOWN", (*KNOWN, later))
    for said in (f"brought up to date: from version {NOW} to {NOW + 1}", f"up to date: version {NOW + 1}"):
        done = forq("migrate", "--db", path)
        assert (done.code, done.out, done.err) == (0, f"{path} is {said}\n", "")


def test_the_schema_in_postgresql_is_made_once(forq, database, monkeypatch):
    monkeypatch.setenv("FORQ_DB_URL", database)
    done = [json.loads(forq("migrate", "--json").out) for _ in range(2)]
    assert [(each["before"], each["version"]) for each in done] == [(0, PG_NOW), (PG_NOW, PG_NOW)]


@pytest.fixture(params=["migrate", "serve"])
def refused(request, forq, monkeypatch, logging_as_before):
    """Runs the command on a database that it refuses; returns its sentence."""
    monkeypatch.setenv("FORQ_API_ADDR", "127.0.0.1:0")
    monkeypatch.setenv("FORQ_UI_ENABLED", "false")

    def run(url: str) -> str:
        monkeypatch.setenv("FORQ_DB_URL", url)
        done = forq(request.param)
        assert (done.code, done.out, done.err.count("\n")) == (Exit.USAGE, "", 1), done
        assert SECRET not in done.err
        return done.err

    return run


def test_a_server_that_is_not_there(refused):
    assert "queue at 127.0.0.1 cannot be used" in refused(f"postgresql://forq:{SECRET}@127.0.0.1:1/queue")


def test_a_role_without_rights(refused, database):
    with psycopg.connect(database) as connection:
        connection.execute(f"DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD '{SECRET}'")
    said = refused(database.replace("postgres@", f"reader:{SECRET}@", 1))
    assert re.search("permission denied for .*; let the role own the database", said)


def test_a_file_that_is_not_there_is_not_made(forq, tmp_path: Path):
    path = tmp_path / "typo.db"
    done = forq("migrate", "--db", str(path))
    assert (done.code, done.err) == (Exit.USAGE, f"forq: {path} does not exist\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "code"),
    [(("migrate", "--db"), Exit.USAGE), (("check", "--db"), Exit.FAILED), (("verify",), Exit.FAILED)],
)
def test_a_file_of_an_unreleased_version(forq, tmp_path: Path, command, code):
    path = str(tmp_path / "old.db")
    make_unreleased_file(path, SQLITE_VERSION - 1)
    done = forq(*command, path)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert f"unreleased version of forq-trio, at version {SQLITE_VERSION - 1} of its tables" in done.err


def test_a_file_of_a_newer_version(forq, tmp_path: Path):
    path = str(tmp_path / "new.db")
    open_database(path, "full").close()
    with closing(apsw.Connection(path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (?, 'later', 'x', 0)", [NOW + 1])
    done = forq("migrate", "--db", path)
    assert (done.code, done.err.count("\n")) == (Exit.USAGE, 1)
    assert "was written by a newer version" in done.err


def test_a_file_is_moved_and_back(forq, database, tmp_path: Path, monkeypatch):
    path, back = tmp_path / "a.db", tmp_path / "b.db"
    with closing(open_engine(f"sqlite:///{path}", EngineSettings(), "normal")) as engine:
        fill(engine)
    monkeypatch.setenv("FORQ_DB_URL", database)
    done = forq("move", "--from", f"sqlite:{path}")
    assert (done.code, done.err) == (0, "")
    *rows, said = done.out.splitlines()
    assert "messages\t41\t" in "\n".join(rows)
    assert re.fullmatch(
        rf"{path} is moved to the PostgreSQL database \w+ at .*: \d+ rows, equal on both sides", said
    )
    moved = json.loads(forq("move", "--to", f"sqlite:{back}", "--json").out)
    assert (moved["to"], moved["left"]) == (str(back), [])
    digests = {each["name"]: each["digest"][:12] for each in moved["tables"]}
    assert [line.split("\t")[2] for line in rows[1:]] == list(digests.values())
    again = forq("move", "--to", f"sqlite:{back}")
    assert (again.code, again.out, again.err.count("\n")) == (Exit.USAGE, "", 1)
    assert f"{back} is not empty" in again.err


def test_how_far_a_move_is_stands_on_stderr(forq, database, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(limits, "MOVE_PAGE_ROWS_MAX", 10)
    monkeypatch.setattr(commands, "_LINE_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "a.db"
    with closing(open_engine(f"sqlite:///{path}", EngineSettings(), "normal")) as engine:
        fill(engine)
    done = forq("move", "--from", f"sqlite:{path}", "--to", database)
    assert "forq: copying messages: 41 rows\nforq: copying message_keys: 3 rows\n" in done.err
    assert "forq: comparing messages: 30 rows\n" in done.err
    shown = forq("move", "--to", f"sqlite:{tmp_path / 'b.db'}", "--from", database, terminal=True)
    assert (shown.code, "forq:" in shown.err) == (0, False)
    assert all(len(line) <= 80 for line in shown.out.splitlines()[:-1])


def test_ctrl_c_says_how_it_goes_on(forq, database, tmp_path: Path, monkeypatch):
    path = tmp_path / "a.db"
    with closing(open_engine(f"sqlite:///{path}", EngineSettings(), "normal")) as engine:
        fill(engine)
    with monkeypatch.context() as patch:
        patch.setattr(commands, "counted", lambda number, word: signal.raise_signal(signal.SIGINT))
        done = forq("move", "--from", f"sqlite:{path}", "--to", database)
    assert (done.code, done.err.strip()) == (130, "forq: the same command goes on with the move where it was")
    assert forq("move", "--from", f"sqlite:{path}", "--to", database).code == 0


@pytest.mark.tier2
@pytest.mark.process
def test_killed_with_9_it_goes_on(forq, database, tmp_path: Path):
    """The target says when it is in the middle."""
    path = tmp_path / "a.db"
    with closing(open_engine(f"sqlite:///{path}", EngineSettings(), "normal")) as engine:
        fill(engine)
        for _ in range(30):
            run(engine, *(send("x" * 2_000, queue="many") for _ in range(500)))
    arguments = ("move", "--from", f"sqlite:{path}", "--to", database)
    with (
        subprocess.Popen([sys.executable, "-m", "forq_trio.cli", *arguments], env=environment()) as process,
        killed_after(process),
        psycopg.connect(database, autocommit=True) as connection,
    ):
        while not (behind := copied(connection)):
            pass
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert behind < 15_000
    done = forq(*arguments, "--json")
    moved = {each["name"]: each["rows"] for each in json.loads(done.out)["tables"]}
    assert moved["messages"] == 15_041


def copied(connection: psycopg.Connection) -> int:
    """The number of the last message that is copied; 0 before the first."""
    try:
        ((text,),) = connection.execute("SELECT position FROM forq.moving").fetchall()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return 0
    position = json.loads(text)
    return position["behind"][0] if position["table"] == "messages" and position["behind"] else 0


def test_both_databases_have_to_be_named(forq, monkeypatch):
    monkeypatch.setenv("FORQ_DB_URL", "postgresql:///queue")
    for arguments in ((), ("--from", "postgresql:///queue")):
        done = forq("move", *arguments)
        assert (done.code, "name both databases" in done.err) == (Exit.USAGE, True)


def test_two_databases_are_one_too_many(forq, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("FORQ_DB_URL", "postgresql:///queue")
    done = forq("migrate", "--db", str(tmp_path / "a.db"))
    assert done.code == Exit.USAGE
    assert "FORQ_DB_URL: names another database than FORQ_DB_PATH" in done.err
