"""The checker can fail: for every promise an application that breaks it, and the clause under which that is found.

A fault may show under several clauses, by what it meets. So the seeds are always the same here.
"""

from contextlib import nullcontext, suppress

import pytest

from forq_trio.model.commands import Claim
from forq_trio.model.messages.types import Delivery, Receipt, Status
from forq_trio.model.queues.setting_values import Defaults, GroupOrder
from forq_trio.model.queues.settings import QueueSettings, rules_of
from forq_trio.storage.engine import Batch, BatchResult
from reliability.whole_app import broken
from reliability.whole_app.deeds import Deeds
from reliability.whole_app.lab import quick
from reliability.whole_app.order import check_held, check_strict_groups
from reliability.whole_app.replay import run_seeded
from reliability.whole_app.stores import MemoryStore, Stored, Table
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
    (broken.IgnoresGroups, Clause.GROUP),
    (broken.ServesEarly, Clause.EARLY),
    (broken.ForgetsDelays, Clause.EARLY),
    (broken.NeverPauses, Clause.EARLY),
    (broken.ForgetsTime, Clause.LATE),
    (broken.HoldsForEver, Clause.LATE),
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


STATUSES = {"R": Status.READY, "P": Status.PROCESSING, "D": Status.DELAYED, "H": Status.HELD}
KEPT = nullcontext()


def group_of(statuses: str) -> Table:
    """A strict group of messages with these statuses, from the first to the last."""
    messages = [
        Stored(
            *(seq, str(seq), "q", str(seq), STATUSES[each], 1, 100, seq, 0, 0, None, None, "g"),
            *(None, None, None, 1, None, None),
        )
        for seq, each in enumerate(statuses, 1)
    ]
    return {each.seq: each for each in messages}


def receives(*given: tuple[int, ...]) -> Deeds:
    """A batch of receives that were given messages with these sequence numbers."""
    claims = [Claim("q", 9, None) for _ in given]
    outcomes = [
        tuple(Delivery(str(seq), str(seq), str(Receipt(seq, 1)), 1, seq, 0, 1, 100, 0) for seq in some)
        for some in given
    ]
    return Deeds(Batch(claims, 0), BatchResult(outcomes, [], None, []), {}, {})


def broken_as(clause: Clause):
    return pytest.raises(Violation, match=clause.name)


@pytest.mark.parametrize(
    ("given", "statuses", "found"),
    [
        ([(1, 2)], "PP", KEPT),
        ([(1,), (2,)], "PP", broken_as(Clause.GROUP)),
        ([(2,)], "PP", broken_as(Clause.GROUP)),
        ([(1,)], "PP", broken_as(Clause.GROUP)),
        ([(2,)], "DP", broken_as(Clause.GROUP)),
        ([(1, 3)], "PDP", broken_as(Clause.GROUP)),
        ([(2,)], "HP", broken_as(Clause.GROUP)),
        ([(1,)], "PDH", KEPT),
    ],
)
def test_a_strict_group_is_with_one_receiver_at_a_time(given, statuses, found) -> None:
    with found:
        check_strict_groups(receives(*given), group_of(statuses), set(), lambda _: True)


@pytest.mark.parametrize(
    ("statuses", "found"),
    [("PH", KEPT), ("DH", KEPT), ("RH", KEPT), ("H", broken_as(Clause.LATE)), ("HD", broken_as(Clause.LATE))],
)
def test_a_message_is_held_for_a_reason(statuses, found) -> None:
    rules = rules_of("q", QueueSettings(group_order=GroupOrder.STRICT), Defaults())
    with found:
        check_held(group_of(statuses), lambda _: rules)


def test_every_clause_has_been_broken() -> None:
    assert {clause for _, clause in [*ENGINES, *HANDLERS.values()]} | {Clause.DURABLE} == set(Clause)
