"""Every test of this directory runs once per engine."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from forq_trio.storage.engine import Engine, EngineSettings
from oracle.engine import MemoryEngine


@pytest.fixture(params=["memory", "sqlite"])
def make_engine(request, tmp_path) -> Iterator[Callable[[EngineSettings], Engine]]:
    """Opens empty engines with settings of the test's choice; they are closed at its end."""
    with ExitStack() as engines:

        def make(settings: EngineSettings) -> Engine:
            if request.param == "memory":
                engine = MemoryEngine(settings)
            else:
                module = importlib.import_module("forq_trio.storage.sqlite.engine")
                engine = module.SqliteEngine(str(tmp_path / "forq.db"), settings, durability="normal")
            return engines.enter_context(closing(engine))

        yield make


@pytest.fixture
def engine(make_engine) -> Engine:
    """An empty engine with the settings Forq has."""
    return make_engine(EngineSettings())


@pytest.fixture
def reader(engine):
    with closing(engine.open_reader()) as reader:
        yield reader
