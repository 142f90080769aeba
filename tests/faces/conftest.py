"""Every test of this directory runs once per face, on SQLite, in simulated time that passes when it is told to."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from math import inf
from pathlib import Path

import pytest
import trio
import trio.testing

from forq_trio.readers.pool import ReaderPool

from .face import Face
from .running import KINDS, open_face

HERE = Path(__file__).parent


def run_in_simulated_time(main, *, clock=None, instruments: Sequence[trio.abc.Instrument] = ()) -> None:
    """How pytest-trio runs these tests. By itself it uses a mock clock only where the test takes it as an argument."""
    trio.run(main, clock=clock or trio.testing.MockClock(), instruments=instruments)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.trio(run=run_in_simulated_time))


@pytest.fixture
def url(tmp_path) -> str:
    """An empty database. That the memory engine does the same is shown in conformance."""
    return f"sqlite:///{tmp_path / 'forq.db'}"


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    """Which face."""
    return request.param


@pytest.fixture
async def face(kind, url) -> AsyncIterator[Face]:
    async with open_face(kind, url) as face:
        yield face


@pytest.fixture(autouse=True)
def _reads_without_a_deadline(monkeypatch) -> None:
    """A read runs in a thread, for which the simulated clock does not wait: time may jump meanwhile."""
    monkeypatch.setattr("forq_trio.system.ReaderPool", partial(ReaderPool, deadline_seconds=inf))
