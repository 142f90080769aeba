"""The store: one call executes and commits a batch, where the policy says."""

import threading

import pytest
import trio

from forq_trio.model.errors import StorageUnavailable
from forq_trio.storage.engine import Batch
from forq_trio.store import CommitFailed, Store
from support.actors import T0, ObservedEngine, SlowCommit, in_a_thread, on_the_loop
from support.batches import waiting
from support.words import claim, contents, send


@pytest.fixture
def on_loop(engine: ObservedEngine) -> Store:
    return Store(engine, on_the_loop())


async def test_there_is_no_checkpoint_where_the_commit_runs_on_the_loop(engine, on_loop) -> None:
    with trio.testing.assert_no_checkpoints():
        result = await on_loop.run(Batch([send("x")], T0))
    assert result.outcomes[0].sequence == 1
    assert engine.commits == 1
    assert on_loop.snapshot().counts["q"].ready == 1


async def test_what_changed_nothing_has_no_commit_and_no_time(on_loop) -> None:
    assert (await on_loop.run(Batch([claim()], T0))).commit_seconds is None
    assert (await on_loop.run(Batch([send()], T0))).commit_seconds > 0


async def test_a_commit_in_a_thread_is_finished_before_a_cancellation(engine) -> None:
    slow = SlowCommit(engine)
    store = Store(engine, in_a_thread())
    outcome: list[object] = []

    async def run() -> None:
        outcome.append(await store.run(Batch([send("x")], T0)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await slow.reached()
        nursery.cancel_scope.cancel()
        slow.go_on()
    assert len(outcome) == 1
    assert store.snapshot().counts["q"].ready == 1


async def test_a_refusal_is_passed_on(engine, on_loop) -> None:
    engine.refusals = 1
    with pytest.raises(StorageUnavailable):
        await on_loop.run(Batch([send()], T0))
    assert on_loop.snapshot().counts == {}


async def test_a_commit_that_fails_names_the_receivers_it_was_to_serve(engine, on_loop) -> None:
    def fail() -> None:
        raise OSError("the disk went away")

    engine.before_commit = fail
    receivers = waiting({"q": [claim(), claim()], "other": [claim(queue="other")]})
    with pytest.raises(CommitFailed, match="the disk went away") as caught:
        await on_loop.run(Batch([send("x")], T0, receivers))
    assert caught.value.served == [receivers["q"][0].id]


async def test_an_error_of_the_engine_is_none_of_the_commit(engine, on_loop) -> None:
    def burst(_: Batch) -> None:
        raise ZeroDivisionError

    engine.execute_batch = burst
    with pytest.raises(ZeroDivisionError):
        await on_loop.run(Batch([send()], T0))
    assert engine.commits == 0


async def test_statements_run_on_the_loop_whatever_the_policy(engine) -> None:
    threads = []
    execute = engine.execute_batch

    def note(batch: Batch) -> object:
        threads.append(threading.current_thread())
        return execute(batch)

    engine.execute_batch = note
    result = await Store(engine, in_a_thread()).run(Batch([send("x"), claim()], T0))
    assert contents(result.outcomes[1]) == ["x"]
    assert threads == [threading.current_thread()]
