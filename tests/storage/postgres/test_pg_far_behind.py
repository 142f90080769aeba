"""An engine that has missed batches says so: anything may have ended, or been withdrawn, of which it knows nothing."""

import pytest

from forq_trio.model.commands import CancelRunning
from forq_trio.model.workers.withdrawn import WithdrawnMessage
from forq_trio.storage.postgres import engine as module
from support.actors import T0
from support.batches import do, run
from support.words import claim, send

BEGAN = T0 - 1_000


def run_far_behind(monkeypatch: pytest.MonkeyPatch, engine):
    """Run the batch in which this engine reads all anew, since it is too many batches behind."""
    with monkeypatch.context() as few:
        few.setattr(module, "BATCHES_READ_MAX", 2)
        return run(engine)


def withdraw(engine, now_ms: int = T0) -> str:
    """Have a message removed while somebody has it; its id."""
    sent = do(engine, send(), now_ms=now_ms)
    do(engine, claim(), now_ms=now_ms)
    assert do(engine, CancelRunning("q", sent.id), now_ms=now_ms) is None
    return sent.id


def asked(engine, after: int, queue: str = "q") -> list[WithdrawnMessage]:
    return engine.snapshot().withdrawn.answer([queue], after, BEGAN).messages


def test_it_tells_once_that_anything_may_have_happened(open_one, monkeypatch) -> None:
    a, behind = open_one(), open_one()
    do(a, send())
    assert [each.reread for each in run(behind).elsewhere] == [False]
    do(a, send())
    assert [each.reread for each in run_far_behind(monkeypatch, behind).elsewhere] == [True]
    assert run(behind).elsewhere == ()


def test_what_it_missed_may_be_any_and_what_comes_later_is_named(open_one, monkeypatch) -> None:
    a, behind = open_one(), open_one()
    known = withdraw(a)
    run(behind)
    assert [each.message_id for each in asked(behind, T0 - 1)] == [known]
    withdraw(a)
    last = a.snapshot().withdrawn.last
    run_far_behind(monkeypatch, behind)
    assert behind.snapshot().withdrawn.last == last
    assert asked(behind, last - 1) == [WithdrawnMessage("q", None, None)]
    assert asked(behind, last) == []
    later = withdraw(a)
    run(behind)
    assert [each.message_id for each in asked(behind, last)] == [later]


def test_a_process_that_begins_knows_of_none_before_the_latest_batch(open_one) -> None:
    a = open_one()
    withdraw(a)
    do(a, send(), now_ms=T0 + 50)
    begins = open_one()
    assert asked(begins, T0 + 49) == [WithdrawnMessage("q", None, None)]
    assert asked(begins, T0 + 50) == []


@pytest.mark.parametrize("behind_ms", [0, 7])
def test_a_position_is_later_than_all_batches_before_whatever_the_clock_says(open_one, behind_ms) -> None:
    """A batch has the time at which it began to wait for those of others. So who begins in between misses nothing."""
    a, other = open_one(), open_one()
    do(other, send(queue="other"), now_ms=T0 + 50)
    begins = open_one()
    after = begins.snapshot().withdrawn.last
    withdrawn = withdraw(a, T0 + 50 - behind_ms)
    run(begins)
    assert [each.message_id for each in asked(begins, after)] == [withdrawn]
    assert a.snapshot().withdrawn.entries == begins.snapshot().withdrawn.entries
