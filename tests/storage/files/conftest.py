"""Database files of several kinds, built by hand."""

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import pytest

from forq_trio.storage.sqlite.files.open import LockedFile, open_database
from support import old_files
from support.old_files import Row


@pytest.fixture
def forq_rows(rng: random.Random) -> Callable[[int], list[Row]]:
    """Makes so many messages in every state that Forq knows."""
    return partial(old_files.forq_rows, rng)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where the test's database goes."""
    return str(tmp_path / "forq.db")


@pytest.fixture
def database(path: str) -> Iterator[LockedFile]:
    """An open, empty database of ours."""
    opened = open_database(path, "full")
    yield opened
    opened.close()


@pytest.fixture
def make_forq_file(path: str) -> Callable[..., None]:
    """Builds a file as Forq leaves it."""
    return partial(old_files.make_forq_file, path)


@pytest.fixture
def fingerprint(path: str) -> Callable[[], dict[str, str]]:
    """The content of everything in the database's directory, by name. Only for files that nobody has open."""

    def take() -> dict[str, str]:
        return {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "directory"
            for file in Path(path).parent.iterdir()
        }

    return take


@pytest.fixture
def read() -> Callable[..., list[Row]]:
    """Rows of a file, read by a connection of the test's own."""

    def rows(path: str, statement: str) -> list[Row]:
        with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return connection.execute(statement).fetchall()

    return rows
