"""Running trials by their seeds: one, or many over several processes."""

import gc
import logging
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import NamedTuple

from forq_trio.model import limits
from forq_trio.model.errors import OutcomeUnknown, StorageFull, StorageUnavailable
from reliability.whole_app.books import Books
from reliability.whole_app.replay import run_seeded
from reliability.whole_app.stores import Store, memory_store, postgres_store, sqlite_store
from reliability.whole_app.trial import Trial
from reliability.whole_app.violations import Clause, hold

SQLITE_SHARE = 10
"""One trial of so many runs on SQLite, the others in memory."""

FAULTS = (StorageUnavailable.__name__, StorageFull.__name__, OutcomeUnknown.__name__)
"""What jobs may fail with in a trial."""

CHUNK = 50
HERE_MAX = 300
"""So many trials take less time than processes for them would take to start."""


class Failure(NamedTuple):
    seed: int
    what: str


def run_trial(seed: int, url: str | None = None) -> Books:
    """The trial of this seed; raises what it found, with the seed. url: of a PostgreSQL database."""
    try:
        with _store(seed, url) as store, quick() as failed_jobs:
            books = run_seeded(seed, lambda rng: Trial(rng, store).run())
        hold(Clause.CRASHED, not failed_jobs, "{}", failed_jobs)
        return books
    except BaseException as error:
        error.add_note(f"to repeat this trial: FORQ_SEED={seed}")
        raise


def _store(seed: int, url: str | None) -> AbstractContextManager[Store]:
    if url is not None:
        return postgres_store(url, seed)
    return sqlite_store() if seed % SQLITE_SHARE == 0 else memory_store()


@contextmanager
def quick() -> Iterator[list[str]]:
    """Trials make faults, of which the application logs a lot, and much garbage that is not cyclic.

    Gives a list of the jobs that failed meanwhile with other errors than the faults that were made.
    """
    failed_jobs: list[str] = []

    def look(record: logging.LogRecord) -> bool:
        line = record.getMessage()
        if "job.failed" in line and not any(fault in line for fault in FAULTS):
            failed_jobs.append(line)
        return False

    logger, thresholds = logging.getLogger("forq_trio"), gc.get_threshold()
    logger.addFilter(look)
    gc.set_threshold(*limits.COLLECTOR_THRESHOLDS)
    try:
        yield failed_jobs
    finally:
        logger.removeFilter(look)
        gc.set_threshold(*thresholds)


def _run_chunk(seeds: Sequence[int]) -> tuple[Counter[str], list[Failure]]:
    seen: Counter[str] = Counter()
    failures = []
    for seed in seeds:
        try:
            seen += run_trial(seed).seen
        except (Exception, BaseExceptionGroup) as error:
            failures.append(Failure(seed, f"{type(error).__name__}: {error}"))
    return seen, failures


def run_trials(first: int, trials: int) -> tuple[Counter[str], list[Failure]]:
    """Run so many trials from seed `first` on, in this process or, if they are many, over all cores."""
    return _run_chunk(range(first, first + trials)) if trials <= HERE_MAX else run_in_processes(first, trials)


def run_in_processes(
    first: int, trials: int | None, seconds: float = 0.0
) -> tuple[Counter[str], list[Failure]]:
    """Run trials from seed `first` on over all cores: so many, or (None) for so long.

    Returns what was seen, and what failed.
    """
    seen, failures = Counter[str](), list[Failure]()
    ends_at = time.monotonic() + seconds

    def chunks() -> Iterator[Sequence[int]]:
        start = first
        while start < first + trials if trials is not None else time.monotonic() < ends_at:
            stop = start + CHUNK if trials is None else min(start + CHUNK, first + trials)
            yield range(start, stop)
            start = stop

    processes = os.cpu_count() or 1
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        waiting = chunks()
        running = [pool.apply_async(_run_chunk, (chunk,)) for chunk in islice(waiting, 2 * processes)]
        while running:
            chunk_seen, chunk_failures = running.pop(0).get()
            seen += chunk_seen
            failures += chunk_failures
            for failure in chunk_failures:
                print(f"FORQ_SEED={failure.seed}: {failure.what}", flush=True)  # the rest may take long
            following = next(waiting, None)
            if following is not None:
                running.append(pool.apply_async(_run_chunk, (following,)))
    return seen, failures
