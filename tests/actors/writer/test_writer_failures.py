"""What the database refuses, and a commit that fails."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model import limits
from forq_trio.model.commands import Release
from forq_trio.model.errors import OutcomeUnknown, Stopping, StorageUnavailable
from forq_trio.store import CommitFailed
from support.actors import T0, SlowCommit, TrioClock, elapse, in_a_thread, running_writer
from support.words import Pending, ack, claim, contents, send


async def test_a_refused_batch_is_answered_so_and_changed_nothing(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        engine.refusals = 1
        refused = [Pending(nursery, writer, send()) for _ in range(3)]
        outcomes = [await call.finished() for call in refused]
        assert [type(outcome) for outcome in outcomes] == [StorageUnavailable] * 3
        assert len(set(map(id, outcomes))) == 3
        assert str(outcomes[0]) == "disk I/O error"
        assert await writer.execute(claim()) == ()
        assert (await writer.execute(send())).sequence == 1


async def test_due_work_is_tried_again_after_a_refusal(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        await writer.execute(send(process_after=T0 + 5_000))
        await elapse(4.9)
        engine.refusals = 3
        await elapse(0.2)
        assert engine.refusals == 2
        await elapse(3 * limits.STORAGE_RETRY_SECONDS)
        assert engine.refusals == 0
        assert len(await writer.execute(claim())) == 1


class AheadClock(TrioClock):
    """One that somebody sets."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


async def test_when_it_is_tried_again_does_not_depend_on_the_wall_clock(engine, autojump_clock) -> None:
    """Set back after a refusal, it must not put off by as much what is due by any clock."""
    clock = AheadClock()
    async with running_writer(engine, clock=clock) as writer:
        await writer.execute(send(process_after=T0 + 5_000))
        clock.ahead_ms = 7_200_000
        engine.refusals = 1
        with pytest.raises(StorageUnavailable):
            await writer.execute(claim())
        clock.ahead_ms = 3_600_000
        batches = len(engine.batches)
        await elapse(2 * limits.STORAGE_RETRY_SECONDS)
        assert engine.snapshot().counts["q"].ready == 1
        assert len(engine.batches) == batches + 1


async def test_receivers_stay_parked_through_a_refusal(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receiver = Pending(nursery, writer, claim(30_000))
        await wait_all_tasks_blocked()
        engine.refusals = 1
        with pytest.raises(StorageUnavailable):
            await writer.execute(send())
        await writer.execute(send("second try"))
        assert contents(await receiver.finished()) == ["second try"]


async def test_what_a_caller_left_behind_is_released_even_when_that_is_refused_at_first(
    engine, mock_clock
) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        await writer.execute(send())
        slow = SlowCommit(engine)
        claiming = Pending(nursery, writer, claim())
        await slow.reached()
        claiming.cancel()
        await claiming.finished()
        engine.refusals = 2
        slow.go_on()
        while engine.refusals == 2:
            await wait_all_tasks_blocked()
        mock_clock.autojump_threshold = 0
        await elapse(5)
        released = [c for batch in engine.batches for c in batch.commands if isinstance(c, Release)]
        assert len(released) == 3
        mock_clock.autojump_threshold = float("inf")
        (delivery,) = await writer.execute(claim())
        assert delivery.attempts == 1


async def test_a_failed_commit_ends_the_writer_and_nobody_is_told_more_than_is_known(
    engine, autojump_clock
) -> None:
    def fail() -> None:
        raise OSError("no space left on device")

    async with trio.open_nursery() as callers:
        with pytest.RaisesGroup(CommitFailed):
            async with running_writer(engine) as writer:
                receiver = Pending(callers, writer, claim(30_000))
                other = Pending(callers, writer, claim(30_000, queue="other"))
                await wait_all_tasks_blocked()
                engine.before_commit = fail
                calls = [Pending(callers, writer, send()) for _ in range(3)]
                await trio.sleep_forever()
        assert [type(await call.finished()) for call in calls] == [OutcomeUnknown] * 3
        assert type(await receiver.finished()) is OutcomeUnknown
        assert await other.finished() == ()
    with pytest.raises(Stopping):
        await writer.execute(send())
    assert engine.closes == 1


async def test_calls_behind_a_failed_commit_are_refused(engine, mock_clock) -> None:
    async with trio.open_nursery() as callers:
        with pytest.RaisesGroup(CommitFailed):
            async with running_writer(engine, policy=in_a_thread()) as writer:
                slow = SlowCommit(engine)
                unknown = Pending(callers, writer, send())
                await slow.reached()
                behind = [Pending(callers, writer, send()) for _ in range(3)]
                await wait_all_tasks_blocked()
                slow.failure = OSError("no space left on device")
                slow.go_on()
                await trio.sleep_forever()
        assert type(await unknown.finished()) is OutcomeUnknown
        assert [type(await call.finished()) for call in behind] == [Stopping] * 3


async def test_an_error_nobody_foresaw_ends_the_writer_but_leaves_nobody_waiting(
    engine, autojump_clock
) -> None:
    """A bug in an engine must not hang its callers; nothing was committed."""

    def burst(_batch) -> None:
        raise ZeroDivisionError

    async with trio.open_nursery() as callers:
        with pytest.RaisesGroup(ZeroDivisionError):
            async with running_writer(engine) as writer:
                engine.execute_batch = burst
                call = Pending(callers, writer, send())
                await trio.sleep_forever()
        assert isinstance(await call.finished(), StorageUnavailable)
    assert engine.closes == 1


async def test_acknowledging_works_again_after_a_refusal(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        await writer.execute(send())
        (delivery,) = await writer.execute(claim())
        engine.refusals = 1
        with pytest.raises(StorageUnavailable):
            await writer.execute(ack(delivery))
        assert await writer.execute(ack(delivery)) == (True,)
