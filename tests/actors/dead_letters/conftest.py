"""Every test of the workbench runs on each engine, in simulated time that passes when it is told to."""

from collections.abc import AsyncIterator, Sequence
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
import trio
import trio.testing

from .workbench import Workbench, open_workbench

HERE = Path(__file__).parent


def run_in_simulated_time(main, *, clock=None, instruments: Sequence[trio.abc.Instrument] = ()) -> None:
    """How pytest-trio runs these tests. By itself it uses a mock clock only where the test takes it as an argument."""
    trio.run(main, clock=clock or trio.testing.MockClock(), instruments=instruments)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and iscoroutinefunction(item.function):
            item.add_marker(pytest.mark.trio(run=run_in_simulated_time))


@pytest.fixture
def url(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'forq.db'}"


@pytest.fixture
async def bench(url) -> AsyncIterator[Workbench]:
    async with open_workbench(url) as bench:
        yield bench
