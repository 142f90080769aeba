"""Every test of the writer runs once per engine, on simulated time unless it says otherwise."""

from collections.abc import Iterator

import pytest

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from oracle.engine import MemoryEngine
from support.actors import ObservedEngine
from support.empty_file import empty_file


@pytest.fixture(params=[pytest.param("memory", marks=pytest.mark.tier2), "sqlite"])
def engine(request, tmp_path) -> Iterator[ObservedEngine]:
    """An empty engine. The writer closes it; a test that runs no writer leaves that to the fixture."""
    settings = EngineSettings()
    if request.param == "memory":
        observed = ObservedEngine(MemoryEngine(settings))
    else:
        observed = ObservedEngine(SqliteEngine(str(empty_file(tmp_path)), settings, durability="normal"))
    yield observed
    if observed.closes == 0:
        observed.close()
