"""Every test of recorded histories runs once per engine, on simulated time unless it says otherwise."""

import pytest

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from oracle.engine import MemoryEngine
from support.actors import ObservedEngine


@pytest.fixture(params=["memory", "sqlite"])
def engine(request, tmp_path) -> ObservedEngine:
    """An empty engine; the writer closes it."""
    if request.param == "memory":
        return ObservedEngine(MemoryEngine(EngineSettings()))
    return ObservedEngine(SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), durability="normal"))
