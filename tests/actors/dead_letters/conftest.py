"""Every test of the workbench runs on each engine, in simulated time that passes when it is told to."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.empty_file import empty_file
from support.simulated_time import mark_simulated

from .workbench import Workbench, open_workbench

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_simulated(items, HERE)


@pytest.fixture
def url(tmp_path) -> str:
    return f"sqlite:///{empty_file(tmp_path)}"


@pytest.fixture
async def bench(url) -> AsyncIterator[Workbench]:
    async with open_workbench(url) as bench:
        yield bench
