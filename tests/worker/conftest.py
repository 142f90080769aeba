"""Workers over a broker in memory, and over a client of a server; all in simulated time."""

import inspect
from collections.abc import AsyncIterator
from functools import partial
from math import inf
from pathlib import Path

import pytest
import trio
import trio.testing

from faces.face import Face
from faces.running import open_face
from forq_trio.readers.pool import ReaderPool

HERE = Path(__file__).parent


def run_in_simulated_time(main, *, clock=None, instruments=()) -> None:
    trio.run(main, clock=clock or trio.testing.MockClock(), instruments=instruments)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and inspect.iscoroutinefunction(item.function):
            if {"autojump_clock", "face"} <= set(item.fixturenames):
                pytest.fail(f"{item.nodeid}: a clock that jumps by itself, with a client's real sockets")
            item.add_marker(pytest.mark.trio(run=run_in_simulated_time))


@pytest.fixture(params=["broker", "http"])
async def face(request) -> AsyncIterator[Face]:
    async with open_face(request.param, "memory:") as face:
        yield face


@pytest.fixture(autouse=True)
def _reads_without_a_deadline(monkeypatch) -> None:
    """A read runs in a thread, for which the simulated clock does not wait: time may jump meanwhile."""
    monkeypatch.setattr("forq_trio.system.ReaderPool", partial(ReaderPool, deadline_seconds=inf))
