"""A SQLite engine on a file of the test."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine


@pytest.fixture
def engine(tmp_path) -> Iterator[SqliteEngine]:
    with closing(SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal")) as engine:
        yield engine
