"""Stopping: what was sent is answered, what comes later is refused, and the engine is closed exactly once."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model.commands import Release
from forq_trio.model.errors import Stopping
from forq_trio.storage.engine import EngineSettings
from forq_trio.store import Store
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from oracle.engine import MemoryEngine
from support.actors import (
    ObservedEngine,
    SlowCommit,
    TrioClock,
    in_a_thread,
    on_the_loop,
    running_writer,
    until,
)
from support.words import Pending, claim, contents, receipts, send


async def test_everything_sent_before_the_stop_is_executed(engine, mock_clock) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        slow = SlowCommit(engine)
        sent = [Pending(nursery, writer, send())]
        await slow.reached()
        sent += [Pending(nursery, writer, send()) for _ in range(20)]
        await wait_all_tasks_blocked()
        writer.stop()
        slow.go_on()
        assert sorted([(await call.finished()).sequence for call in sent]) == list(range(1, 22))
    assert engine.closes == 1


async def test_calls_after_the_stop_are_refused(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        writer.stop()
        with pytest.raises(Stopping):
            await writer.execute(send())
    with pytest.raises(Stopping):
        await writer.execute(send())
    writer.post(send())
    writer.stop()
    assert engine.closes == 1


async def test_parked_receivers_are_answered_with_nothing(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receivers = [Pending(nursery, writer, claim(30_000)) for _ in range(10)]
        await wait_all_tasks_blocked()
        writer.stop()
        assert [await receiver.finished() for receiver in receivers] == [()] * 10
        assert trio.current_time() == 0


async def test_a_claim_taken_after_receivers_are_drained_is_not_parked(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        writer.drain_receivers()
        assert await writer.execute(claim(30_000)) == ()
        assert trio.current_time() == 0
        await writer.execute(send())
        assert len(await writer.execute(claim(30_000))) == 1


async def test_a_receiver_drained_while_its_commit_runs_gives_its_message_back(engine, mock_clock) -> None:
    """It was answered with nothing, so the message must not stay leased to it."""
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        receiver = Pending(nursery, writer, claim(30_000))
        await until(lambda: writer.parked.total == 1)
        slow = SlowCommit(engine)
        Pending(nursery, writer, send())
        await slow.reached()
        writer.drain_receivers()
        assert await receiver.finished() == ()
        slow.go_on()
        (delivery,) = await writer.execute(claim())
        assert delivery.attempts == 1


async def test_stopped_while_a_receiver_is_being_served_nothing_stays_leased(engine, mock_clock) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        receiver = Pending(nursery, writer, claim(30_000))
        await until(lambda: writer.parked.total == 1)
        slow = SlowCommit(engine)
        Pending(nursery, writer, send())
        await slow.reached()
        writer.stop()
        slow.go_on()
        assert await receiver.finished() == ()
    released = [c for batch in engine.batches for c in batch.commands if isinstance(c, Release)]
    assert len(released) == 1


async def test_a_post_is_executed_while_the_writer_drains(engine, mock_clock) -> None:
    """A response that could not be written during the shutdown still gives its messages back."""
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        await writer.execute(send())
        deliveries = await writer.execute(claim())
        slow = SlowCommit(engine)
        Pending(nursery, writer, send())
        await slow.reached()
        writer.stop()
        writer.post(Release("q", receipts(deliveries)))
        slow.go_on()
    assert any(isinstance(c, Release) for batch in engine.batches for c in batch.commands)


async def test_cancelled_in_a_commit_it_finishes_that_commit(tmp_path, mock_clock) -> None:
    engine = ObservedEngine(MemoryEngine(EngineSettings()))
    writer = WriterActor(Store(engine, in_a_thread()), TrioClock(), Counters())
    slow = SlowCommit(engine)
    async with trio.open_nursery() as callers:
        async with trio.open_nursery() as nursery:
            await nursery.start(writer.run)
            await slow.reached()
            slow.go_on()
            await writer.execute(send())
            slow = SlowCommit(engine)
            committing = Pending(callers, writer, send("committed"))
            await slow.reached()
            waiting = Pending(callers, writer, send("refused"))
            parked = Pending(callers, writer, claim(30_000))
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            slow.go_on()
        assert (await committing.finished()).sequence == 2
        assert isinstance(await waiting.finished(), Stopping)
        assert isinstance(await parked.finished(), Stopping)
    assert engine.closes == 1


@pytest.mark.parametrize("hops", [False, True])
async def test_starting_and_stopping_a_hundred_times(hops) -> None:
    """Real clock and real threads: in each round every call has an answer, and the engine is closed once."""
    for _ in range(100):
        engine = ObservedEngine(MemoryEngine(EngineSettings()))
        writer = WriterActor(Store(engine, in_a_thread() if hops else on_the_loop()), TrioClock(), Counters())
        async with trio.open_nursery() as nursery:
            await nursery.start(writer.run)
            calls = [Pending(nursery, writer, send(str(number))) for number in range(5)]
            calls += [Pending(nursery, writer, claim(30_000, most=2)) for _ in range(5)]
            await trio.lowlevel.checkpoint()
            writer.stop()
        answered = [call.outcome for call in calls]
        assert None not in answered
        taken = [
            content for outcome in answered[5:] if isinstance(outcome, tuple) for content in contents(outcome)
        ]
        assert len(taken) == len(set(taken))
        assert engine.closes == 1
