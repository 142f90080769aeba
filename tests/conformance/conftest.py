"""Every test of this directory runs once per engine, and once on several engines of one database.

In tier 1 SQLite has all of them. What is in memory is the model, which test_model_equivalence.py compares with SQLite
there. Tests marked `on_sql` (engines.py) do not run on it.
"""

import importlib
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from conformance.engines import SQL, THREE
from forq_trio.storage.engine import Engine, EngineSettings
from oracle.engine import MemoryEngine
from support.dealt import Dealt
from support.empty_file import empty_file

IN_TIER_1 = {
    "test_claim.py",
    "test_claim_at_once.py",
    "test_ack.py",
    "test_nack.py",
    "test_produce.py",
    "test_reader.py",
    "test_groups.py",
}
"""What runs on PostgreSQL in tier 1, too: the statements that messages pass."""


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their tier
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        engine = getattr(item, "callspec", None) and item.callspec.params.get("make_engine")
        if engine == THREE or (engine == "postgres" and item.path.name not in IN_TIER_1):
            item.add_marker(pytest.mark.tier2)


@pytest.fixture(params=[pytest.param("memory", marks=pytest.mark.tier2), *SQL])
def make_engine(request, tmp_path) -> Iterator[Callable[[EngineSettings], Engine]]:
    """Opens empty engines with settings of the test's choice; they are closed at its end."""
    with ExitStack() as engines:

        def make(settings: EngineSettings) -> Engine:
            if request.param == "memory":
                engine = MemoryEngine(settings)
            elif request.param == "sqlite":
                module = importlib.import_module("forq_trio.storage.sqlite.engine")
                engine = module.SqliteEngine(str(empty_file(tmp_path)), settings, durability="normal")
            else:
                url = request.getfixturevalue("empty_tables")
                module = importlib.import_module("forq_trio.storage.postgres.engine")
                each = [
                    module.PostgresEngine(url, settings, "normal")
                    for _ in range(3 if request.param == THREE else 1)
                ]
                engine = Dealt(each, random.Random(random.random())) if request.param == THREE else each[0]
            return engines.enter_context(closing(engine))

        yield make


@pytest.fixture
def zero(request) -> str:
    """The character U+0000, which PostgreSQL's text cannot have: there another one stands for it."""
    return "0" if "postgres" in request.node.callspec.params["make_engine"] else "\0"


@pytest.fixture
def engine(make_engine) -> Engine:
    """An empty engine with the settings Forq has."""
    return make_engine(EngineSettings())


@pytest.fixture
def reader(engine):
    with closing(engine.open_reader()) as reader:
        yield reader
