"""The checker can fail: for every promise an application that breaks it, and the clause under which that is found.

A fault may show under several clauses, by what it meets. So the seeds are always the same here.
"""

from contextlib import suppress

import pytest

from reliability.whole_app import broken
from reliability.whole_app.lab import quick
from reliability.whole_app.replay import run_seeded
from reliability.whole_app.stores import MemoryStore
from reliability.whole_app.trial import Trial
from reliability.whole_app.violations import Clause, Violation

SEEDS = range(20, 320)

ENGINES = [
    (broken.LosesSends, Clause.LOST),
    (broken.LosesWhatWaits, Clause.LOST),
    (broken.ForgetsOnceMore, Clause.LOST),
    (broken.IgnoresUpdates, Clause.ANSWER),
    (broken.LeavesReceipts, Clause.FENCE),
    (broken.StoresTwice, Clause.DOUBLED),
    (broken.LeasesTwice, Clause.HOLDERS),
    (broken.TakesAnyReceipt, Clause.FENCE),
    (broken.RefusesReceipts, Clause.FENCE),
    (broken.CountsReleases, Clause.ATTEMPTS),
    (broken.GoesOnTrying, Clause.ATTEMPTS),
    (broken.ServesAtRandom, Clause.ORDER),
    (broken.ServesEarly, Clause.EARLY),
    (broken.ForgetsDelays, Clause.EARLY),
    (broken.NeverPauses, Clause.EARLY),
    (broken.ForgetsTime, Clause.LATE),
    (broken.ForgetsReceivers, Clause.PARKED),
    (broken.LeasesToNobody, Clause.KEPT),
    (broken.Miscounts, Clause.COUNTS),
    (broken.MiscountsEvents, Clause.COUNTS),
]
HANDLERS = {
    "unsent": (broken.spoiling(broken.forget_unsent), Clause.KEPT),
    "sent": (broken.spoiling(broken.say_it_was_sent), Clause.LOST),
    "acked": (broken.spoiling(broken.say_it_was_acked), Clause.ANSWER),
    "hangs": (broken.never_answering, Clause.HUNG),
    "crashes": (broken.crashing, Clause.CRASHED),
}


def found(make_store=MemoryStore, **wraps) -> Violation | None:
    """What the checker finds first, in a few trials."""
    with quick():
        for seed in SEEDS:
            try:
                run_seeded(seed, lambda rng: Trial(rng, make_store(), **wraps).run())
            except Violation as violation:
                return violation
    return None


@pytest.mark.parametrize(
    ("engine", "clause"),
    [ENGINES[0], *(pytest.param(*each, marks=pytest.mark.tier2) for each in ENGINES[1:])],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_broken_engine_is_found_out(engine, clause) -> None:
    violation = found(wrap_engine=engine)
    assert violation is not None
    assert violation.clause is clause, violation


@pytest.mark.parametrize(
    "name", [each if each == "sent" else pytest.param(each, marks=pytest.mark.tier2) for each in HANDLERS]
)
def test_a_broken_handler_is_found_out(name) -> None:
    wrap, clause = HANDLERS[name]
    violation = found(wrap_handler=wrap)
    assert violation is not None
    assert violation.clause is clause, violation


def test_a_store_that_forgets_is_found_out() -> None:
    violation = found(make_store=broken.ForgetsLastCommit)
    assert violation is not None
    assert violation.clause is Clause.DURABLE, violation


def test_a_job_that_fails_is_found_out() -> None:
    """The supervisor would only log it."""
    with quick() as failed_jobs, suppress(Violation):
        run_seeded(SEEDS[0], lambda rng: Trial(rng, MemoryStore(), wrap_engine=broken.ConfusesSweeps).run())
    assert any("AttributeError" in job for job in failed_jobs)


def test_every_clause_has_been_broken() -> None:
    assert {clause for _, clause in [*ENGINES, *HANDLERS.values()]} | {Clause.DURABLE} == set(Clause)
