"""Recorded histories are those of the real engine; on which engine what is measured: tests/conformance."""

import pytest

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.actors import ObservedEngine
from support.empty_file import empty_file


@pytest.fixture
def engine(tmp_path) -> ObservedEngine:
    """An empty engine; the writer closes it."""
    return ObservedEngine(SqliteEngine(str(empty_file(tmp_path)), EngineSettings(), durability="normal"))
