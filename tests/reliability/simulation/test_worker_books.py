"""The checker of workers notices what is broken: each of these breaks one thing."""

import anyio

from forq_trio.worker.jobs import HeldLease, Job
from forq_trio.worker.leases import JobLeases
from forq_trio.worker.loop import QueueLoop
from forq_trio.worker.outcomes import ACK
from forq_trio.worker.slots import Slots
from reliability.simulation.test_simulation import memory_store
from reliability.simulation.trial import run_trial
from reliability.simulation.workers import WorkerTrial

SEEDS_MAX = 60


def violated() -> str:
    """What the first trial says that finds anything."""
    for seed in range(SEEDS_MAX):
        with memory_store(0) as open_store:
            try:
                run_trial(seed, open_store, WorkerTrial)
            except (AssertionError, ExceptionGroup) as error:
                return repr(error)
    return "nothing"


def test_leases_whose_ends_nobody_notices(monkeypatch) -> None:
    monkeypatch.setattr(JobLeases, "end_of_new", lambda self: anyio.current_time() + 1e6)
    monkeypatch.setattr(HeldLease, "end_at", lambda self, ends_at: None)
    monkeypatch.setattr(Job, "lose", lambda self: None)
    assert "without its lease" in violated()


def test_more_slots_than_there_are(monkeypatch) -> None:
    monkeypatch.setattr(Slots, "free", property(lambda self: self.most - self.busy + 1))
    assert "are asked for" in violated()


def test_an_acknowledgement_of_what_was_not_done(monkeypatch) -> None:
    monkeypatch.setattr(QueueLoop, "_settlement", lambda self, result, job: ACK)
    assert "ack was accepted" in violated()
