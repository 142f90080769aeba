"""Seeded trials of the writer on both engines: nothing lost, doubled, out of order or left waiting; and of pipelines.

FORQ_TEST_EFFORT sets how many trials run per engine; FORQ_SEED repeats the one trial of that seed.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from forq_trio.model import limits
from forq_trio.storage.engine import Engine, EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from oracle.engine import MemoryEngine
from reliability.simulation.pipeline import PipelineTrial, small_pages
from reliability.simulation.schedules import ScheduleTrial
from reliability.simulation.trial import Trial, run_trial
from reliability.simulation.workers import WorkerTrial
from support.effort import count, many_trials

SEED = os.environ.get("FORQ_SEED")
Store = Callable[[], AbstractContextManager[Callable[[], Engine]]]


@contextmanager
def sqlite_store() -> Iterator[Callable[[], Engine]]:
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "forq.db")
        yield lambda: SqliteEngine(path, EngineSettings(), "normal")


@contextmanager
def memory_store() -> Iterator[Callable[[], Engine]]:
    """What is committed outlives an engine; what is not does not."""
    engines = []

    def reopen() -> Engine:
        engine = MemoryEngine(EngineSettings())
        if engines:
            engine._committed = engine._pending = engines[-1]._committed
        engines.append(engine)
        return engine

    yield reopen


def run_trials(store: Store, seed: int, kind: type[Trial]) -> None:
    seeds = [int(SEED)] if SEED else range(seed, seed + count("writer_trials"))
    for each in seeds:
        try:
            with store() as open_store:
                run_trial(each, open_store, kind)
        except BaseException as error:
            error.add_note(f"to repeat this trial: FORQ_SEED={each}")
            print(f"FORQ_SEED={each}")
            raise


STORES = pytest.mark.parametrize("store", [memory_store, sqlite_store], ids=["memory", "sqlite"])


@STORES
@many_trials
def test_promises_hold_in_random_trials(store, seed) -> None:
    run_trials(store, seed, Trial)


@STORES
@many_trials
def test_each_time_of_a_schedule_has_its_message_once(store, seed, monkeypatch) -> None:
    monkeypatch.setattr(limits, "RUNS_KEPT_MAX", 10**6)
    run_trials(store, seed, ScheduleTrial)


@STORES
@many_trials
def test_a_pipeline_has_every_message_once_and_in_order(store, seed, monkeypatch) -> None:
    small_pages(monkeypatch.setattr)
    run_trials(store, seed, PipelineTrial)


@STORES
@many_trials
def test_workers_handle_every_message_and_none_without_its_lease(store, seed) -> None:
    run_trials(store, seed, WorkerTrial)
