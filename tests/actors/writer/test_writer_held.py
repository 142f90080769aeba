"""`held`: a pause between two batches, for the end of a checkpoint."""

import trio
from trio.testing import wait_all_tasks_blocked

from support.actors import SlowCommit, in_a_thread, running_writer
from support.words import Pending, claim, send


async def test_no_batch_runs_inside(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        async with writer.paused():
            batches = len(engine.batches)
            calls = [Pending(nursery, writer, send()) for _ in range(10)]
            await wait_all_tasks_blocked()
            assert len(engine.batches) == batches
            assert [call.outcome for call in calls] == [None] * 10
        for call in calls:
            assert (await call.finished()).sequence > 0
        assert len(engine.batches) == batches + 1


async def test_calls_of_the_batch_before_are_answered_first(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        call = Pending(nursery, writer, send())
        async with writer.paused():
            await wait_all_tasks_blocked()
            before = call.outcome is not None
            inside = engine.commits
        await call.finished()
        assert (before, inside) in ((True, 1), (False, 0))


async def test_a_hold_waits_for_the_commit_under_way(engine, mock_clock) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        slow = SlowCommit(engine)
        call = Pending(nursery, writer, send())
        await slow.reached()
        holding = trio.Event()

        async def hold() -> None:
            async with writer.paused():
                assert call.outcome is not None
                holding.set()

        nursery.start_soon(hold)
        await wait_all_tasks_blocked()
        assert not holding.is_set()
        slow.go_on()
        await holding.wait()


async def test_a_hold_ends_when_it_is_cancelled(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        with trio.move_on_after(1):
            async with writer.paused():
                await trio.sleep_forever()
        assert (await writer.execute(send())).sequence == 1


async def test_a_hold_that_is_cancelled_before_it_begins_holds_nothing(engine, mock_clock) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        slow = SlowCommit(engine)
        Pending(nursery, writer, send())
        await slow.reached()
        with trio.CancelScope() as scope:
            scope.cancel()
            async with writer.paused():
                raise AssertionError("held after all")
        slow.go_on()
        assert (await writer.execute(send())).sequence == 2


async def test_holds_run_one_after_the_other(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        inside = 0
        most = 0

        async def hold() -> None:
            nonlocal inside, most
            async with writer.paused():
                inside += 1
                most = max(most, inside)
                await trio.lowlevel.checkpoint()
                inside -= 1

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(hold)
        assert most == 1


async def test_stopped_while_held_it_finishes_after_the_hold(engine, autojump_clock) -> None:
    async with trio.open_nursery() as nursery:
        async with running_writer(engine) as writer, writer.paused():
            call = Pending(nursery, writer, send())
            await wait_all_tasks_blocked()
            writer.stop()
            await wait_all_tasks_blocked()
            assert (call.outcome, engine.closes) == (None, 0)
        assert (await call.finished()).sequence == 1
        assert engine.closes == 1


async def test_a_receiver_may_leave_while_the_writer_is_held(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receiver = Pending(nursery, writer, claim(30_000))
        await wait_all_tasks_blocked()
        async with writer.paused():
            receiver.cancel()
            await receiver.finished()
            assert writer.parked.total == 0
