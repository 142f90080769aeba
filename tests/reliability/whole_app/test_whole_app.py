"""The whole application (broker, jobs, Forq's API) in one thread and simulated time.

Each trial is one seed: two to six random clients, cut connections, refused batches, failing commits, a clock that is
set, kills and restarts (trial.py), and books that are checked at every commit (books.py, causes.py, order.py; what is
promised is listed in violations.py). One trial in ten runs on SQLite.

- FORQ_TEST_EFFORT sets how many trials; many run over all cores. Every seed that failed is named.
- FORQ_SEED=<n>: only this one, in this process: it does the same again (replay.py says why).
"""

import os
import subprocess
import sys

import pytest

from reliability.whole_app.lab import run_in_processes, run_trial, run_trials
from support.effort import count, many_trials, soak_seconds

SEED = os.environ.get("FORQ_SEED") or None
# Few trials run in the tests' own processes, many (in tier 2) in some of their own.
PARTS = 3 if SEED is None and count("whole_app_trials") < 1_000 else 1
REACHED = (
    *("acked", "purged", "removed", "expired", "failed", "overflow", "delivered", "duplicates", "redriven"),
    *("released", "stale receipts", "served while parked", "cut", "unsent", "kills", "failed commits"),
    *("offer created", "offer updated", "once more", "promoted", "several of a strict group"),
)
"""What happens in any few hundred trials; else they have become too tame to prove anything."""


@many_trials
@pytest.mark.parametrize("part", range(PARTS))
def test_promises_hold_in_random_trials(seed, part) -> None:
    if SEED is not None:
        run_trial(int(SEED))
        return
    trials = count("whole_app_trials") // PARTS
    seen, failures = run_trials(seed, trials)
    print(f"from FORQ_SEED={seed}: {dict(seen)}")
    assert failures == []
    assert trials < 1_000 or [what for what in REACHED if not seen[what]] == []


@pytest.mark.tier2
@many_trials
def test_promises_hold_in_random_trials_on_postgres(seed, shared_database) -> None:
    """Each batch on one of three engines, whose database is rough with them (support/rough.py)."""
    first = seed if SEED is None else int(SEED)
    for each in range(first, first + (count("postgres_app_trials") if SEED is None else 1)):
        run_trial(each, shared_database)


@pytest.mark.soak
def test_promises_hold_in_many_random_trials(seed) -> None:
    seen, failures = run_in_processes(seed, None, soak_seconds())
    print(f"from FORQ_SEED={seed}: {dict(seen)}")
    assert failures == []
    assert seen["trials"] < 1_000 or [what for what in REACHED if not seen[what]] == []


TELL = (
    "import sys; from reliability.whole_app.lab import run_trial; "
    "[print(run_trial(int(seed)).story()) for seed in sys.argv[1:]]"
)


@pytest.mark.tier2
def test_a_seed_is_the_same_trial_in_every_process(rng) -> None:
    """Whatever order sets of strings have there."""
    seeds = [str(rng.randrange(2**32) // 10 * 10 + kind) for kind in (0, 1, 2)]
    stories = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        told = subprocess.run(
            [sys.executable, "-c", TELL, *seeds],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        stories.append(told.stdout)
    assert stories[0] == stories[1], seeds
