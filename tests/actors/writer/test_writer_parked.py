"""Parked receivers: batches and commits that they cost, their bound, and what they leave behind."""

import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model.errors import Overloaded
from support.actors import elapse, running_writer
from support.words import Pending, claim, send


async def park(nursery, writer, command) -> Pending:
    """A receiver that is in its line for certain, so that the next one stands behind it."""
    waiting = writer.parked.total
    call = Pending(nursery, writer, command)
    await wait_all_tasks_blocked()
    assert writer.parked.total == waiting + 1
    return call


async def test_a_receiver_is_served_by_the_commit_that_brings_its_message(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receiver = await park(nursery, writer, claim(30_000))
        batches, commits = len(engine.batches), engine.commits
        await writer.execute(send())
        assert len(await receiver.finished()) == 1
        assert (len(engine.batches), engine.commits) == (batches + 1, commits + 1)


async def test_waiting_for_nothing_answers_at_once(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        assert await writer.execute(claim(0)) == ()
        assert trio.current_time() == 0


async def test_past_their_bound_receivers_are_refused(engine, autojump_clock) -> None:
    async with running_writer(engine, parked_max=2) as writer, trio.open_nursery() as nursery:
        parked = [await park(nursery, writer, claim(30_000)) for _ in range(2)]
        refused = Pending(nursery, writer, claim(30_000))
        assert isinstance(await refused.finished(), Overloaded)
        parked[0].cancel()
        await wait_all_tasks_blocked()
        await park(nursery, writer, claim(30_000))
        nursery.cancel_scope.cancel()


async def test_receivers_that_come_and_go_leave_nothing_behind(engine, autojump_clock) -> None:
    """Time-outs of receivers that were served or left are forgotten, so memory stays flat."""
    async with running_writer(engine) as writer:
        for _ in range(1_500):
            with trio.move_on_after(0.001):
                await writer.execute(claim(30_000))
        assert writer.parked.total == 0
        assert len(writer.parked._deadlines) <= 1_001
        await elapse(0)
