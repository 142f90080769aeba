"""Tests in simulated time, which passes when they tell it to."""

import inspect
from collections.abc import Sequence
from functools import partial
from math import inf
from pathlib import Path

import pytest
import trio
import trio.testing

from forq_trio.readers.pool import ReaderPool


def run_in_simulated_time(main, *, clock=None, instruments: Sequence[trio.abc.Instrument] = ()) -> None:
    """How pytest-trio runs these tests. By itself it uses a mock clock only where the test takes it as an argument."""
    trio.run(main, clock=clock or trio.testing.MockClock(), instruments=instruments)


def mark_simulated(items: list[pytest.Item], folder: Path) -> None:
    """Run the asynchronous tests of a folder so; a client's sockets do not go with a clock that jumps by itself."""
    for item in items:
        if item.path.parent == folder and inspect.iscoroutinefunction(item.function):
            if {"autojump_clock", "face"} <= set(item.fixturenames):
                pytest.fail(f"{item.nodeid}: a clock that jumps by itself, with a client's real sockets")
            item.add_marker(pytest.mark.trio(run=run_in_simulated_time))


@pytest.fixture(autouse=True)
def reads_without_a_deadline(monkeypatch) -> None:
    """A read runs in a thread, for which the simulated clock does not wait: time may jump meanwhile."""
    monkeypatch.setattr("forq_trio.system.ReaderPool", partial(ReaderPool, deadline_seconds=inf))
