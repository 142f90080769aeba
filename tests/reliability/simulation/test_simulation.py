"""Seeded trials of the writer on each engine: nothing lost, doubled, out of order or left waiting; and of pipelines.

On PostgreSQL the batches are dealt over three engines whose database is rough with them (support/rough.py).

FORQ_TEST_EFFORT sets how many trials run per engine; FORQ_SEED repeats the one trial of that seed.
"""

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import cast

import pytest

from forq_trio.model import limits
from forq_trio.storage.engine import Engine, EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from forq_trio.storage.sqlite.engine import SqliteEngine
from oracle.engine import MemoryEngine
from reliability.simulation.pipeline import PipelineTrial, small_pages
from reliability.simulation.schedules import ScheduleTrial
from reliability.simulation.trial import Trial, run_trial
from reliability.simulation.workers import WorkerTrial
from support.effort import count, many_trials
from support.postgres import empty
from support.rough import Rough

SEED = os.environ.get("FORQ_SEED")
Store = Callable[[int], AbstractContextManager[Callable[[], Engine]]]
"""For the trial of this seed."""


@contextmanager
def sqlite_store(_: int) -> Iterator[Callable[[], Engine]]:
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "forq.db")
        yield lambda: SqliteEngine(path, EngineSettings(), "normal")


@contextmanager
def memory_store(_: int) -> Iterator[Callable[[], Engine]]:
    """What is committed outlives an engine; what is not does not."""
    engines = []

    def reopen() -> Engine:
        engine = MemoryEngine(EngineSettings())
        if engines:
            engine._committed = engine._pending = engines[-1]._committed
        engines.append(engine)
        return engine

    yield reopen


STORES: dict[str, Store] = {"memory": memory_store, "sqlite": sqlite_store}


@pytest.fixture
def postgres_store(shared_database) -> Store:
    """Three engines, as three processes have them."""

    @contextmanager
    def store(seed: int) -> Iterator[Callable[[], Engine]]:
        empty(shared_database)
        rng = random.Random(seed)

        def open_engines() -> Engine:
            engines = [PostgresEngine(shared_database, EngineSettings(), "normal") for _ in range(3)]
            return cast("Engine", Rough(engines, rng, shared_database))

        yield open_engines

    return store


# In tier 1 on the engine that most have; the oracle is compared with it in tests/conformance.
@pytest.fixture(
    params=["sqlite", *(pytest.param(each, marks=pytest.mark.tier2) for each in ("memory", "postgres"))],
    name="store",
)
def _store(request) -> Store:
    return STORES.get(request.param) or request.getfixturevalue("postgres_store")


def run_trials(store: Store, seed: int, kind: type[Trial]) -> None:
    trials = count("writer_trials") if store in STORES.values() else count("postgres_trials")
    seeds = [int(SEED)] if SEED else range(seed, seed + trials)
    for each in seeds:
        try:
            with store(each) as open_store:
                run_trial(each, open_store, kind)
        except BaseException as error:
            error.add_note(f"to repeat this trial: FORQ_SEED={each}")
            print(f"FORQ_SEED={each}")
            raise


@many_trials
def test_promises_hold_in_random_trials(store, seed) -> None:
    run_trials(store, seed, Trial)


@many_trials
def test_each_time_of_a_schedule_has_its_message_once(store, seed, monkeypatch) -> None:
    monkeypatch.setattr(limits, "RUNS_KEPT_MAX", 10**6)
    run_trials(store, seed, ScheduleTrial)


@many_trials
def test_a_pipeline_has_every_message_once_and_in_order(store, seed, monkeypatch) -> None:
    small_pages(monkeypatch.setattr)
    run_trials(store, seed, PipelineTrial)


@many_trials
def test_workers_handle_every_message_and_none_without_its_lease(store, seed) -> None:
    run_trials(store, seed, WorkerTrial)
