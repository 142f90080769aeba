"""What every test may use: random numbers that can be had again, from a seed that the run shows.

FORQ_TEST_SEED=<number> repeats a run. Each test's own seed also depends on its name, so that running it alone or in
another order gives it the same numbers. FORQ_TEST_EFFORT says how hard a run tries (support/effort.py).
"""

import gc
import itertools
import os
import random
import re
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from forq_trio.model import limits
from support.processes import set_signals

pytest_plugins = [
    "support.tiers",
    "support.durations",
    "support.needs",
    "support.chromium",
    "support.postgres",
]

set_signals()

# How long an example takes says something about the machine, not about what it shows.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

SEED = int(os.environ.get("FORQ_TEST_SEED") or secrets.randbits(32))
os.environ["FORQ_TEST_SEED"] = str(SEED)  # pytest-xdist's workers have the same


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Leave what is collected out of garbage collections: with some 15,000 tests each takes long."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_report_header() -> str:
    return f"FORQ_TEST_SEED={SEED} FORQ_TEST_EFFORT={os.environ.get('FORQ_TEST_EFFORT') or 'quick'}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    if exitstatus != 0:
        terminalreporter.write_line(f"to have the same random numbers again: FORQ_TEST_SEED={SEED}")


DIRECTORIES = itertools.count(1)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty directory of this test's own.

    For each of its own pytest looks through those of all tests before: 4 ms after 1,500 of them. The name is as short,
    too: a socket below it may have 107 characters.
    """
    name = re.sub(r"\W", "_", request.node.name)[:24]
    path = tmp_path_factory.getbasetemp() / f"{name}-{next(DIRECTORIES)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """This test's seed."""
    return zlib.crc32(f"{SEED} {request.node.nodeid}".encode())


@pytest.fixture
def rng(seed: int) -> random.Random:
    """This test's random numbers."""
    return random.Random(seed)


@pytest.fixture
def failed_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that fail are left FAILED for a sweep, as those are for which a batch has no allowance left."""
    monkeypatch.setattr(limits, "FAILED_MOVED_MAX", 0)
