"""Parked receivers: first come first served, and one message wakes one of them."""

import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model.errors import Overloaded
from support.actors import elapse, running_writer
from support.words import Pending, ack, claim, contents, send


async def park(nursery, writer, command) -> Pending:
    """A receiver that is in its line for certain, so that the next one stands behind it."""
    waiting = writer.parked.total
    call = Pending(nursery, writer, command)
    await wait_all_tasks_blocked()
    assert writer.parked.total == waiting + 1
    return call


async def test_f3_the_longest_waiting_receiver_is_served_first(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receivers = [await park(nursery, writer, claim(30_000)) for _ in range(5)]
        for number in range(5):
            await writer.execute(send(str(number)))
        assert [contents(await receiver.finished()) for receiver in receivers] == [[str(n)] for n in range(5)]


async def test_a_message_wakes_exactly_one_receiver(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receivers = [await park(nursery, writer, claim(30_000, most=10)) for _ in range(10)]
        await writer.execute(send())
        await wait_all_tasks_blocked()
        assert [receiver.outcome is not None for receiver in receivers] == [True] + [False] * 9
        assert writer.parked.count("q") == 9
        nursery.cancel_scope.cancel()


async def test_a_receiver_is_served_by_the_commit_that_brings_its_message(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receiver = await park(nursery, writer, claim(30_000))
        batches, commits = len(engine.batches), engine.commits
        await writer.execute(send())
        assert len(await receiver.finished()) == 1
        assert (len(engine.batches), engine.commits) == (batches + 1, commits + 1)


async def test_several_messages_of_one_batch_serve_as_many_receivers(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receivers = [await park(nursery, writer, claim(30_000)) for _ in range(4)]
        commits = engine.commits
        for number in range(3):
            Pending(nursery, writer, send(str(number)))
        await wait_all_tasks_blocked()
        assert [receiver.outcome is not None for receiver in receivers] == [True, True, True, False]
        assert engine.commits == commits + 1
        nursery.cancel_scope.cancel()


async def test_a_parked_receiver_goes_before_a_new_one(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        parked = await park(nursery, writer, claim(30_000))
        late = Pending(nursery, writer, claim(0))
        Pending(nursery, writer, send())
        assert len(await parked.finished()) == 1
        assert await late.finished() == ()


async def test_receivers_wait_on_their_own_queue_only(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        of_a = await park(nursery, writer, claim(30_000, queue="a"))
        of_b = await park(nursery, writer, claim(30_000, queue="b"))
        await writer.execute(send("for b", queue="b"))
        assert contents(await of_b.finished()) == ["for b"]
        assert of_a.outcome is None
        assert (writer.parked.count("a"), writer.parked.count("b"), writer.parked.total) == (1, 0, 1)
        of_a.cancel()


async def test_f3_waiting_ends_exactly_on_time(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        started = trio.current_time()
        waits_ms = (1, 2, 999, 1_000, 12_345, 30_000)
        receivers = [Pending(nursery, writer, claim(wait_ms)) for wait_ms in waits_ms]
        for receiver, wait_ms in zip(receivers, waits_ms, strict=True):
            assert await receiver.finished() == ()
            assert abs(receiver.at - started - wait_ms / 1_000) < 1e-6
        assert writer.parked.total == 0


async def test_a_receiver_whose_time_is_over_takes_no_message(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        assert await writer.execute(claim(100)) == ()
        await writer.execute(send())
        assert len(await writer.execute(claim())) == 1


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


async def test_a_message_whose_lease_ends_serves_a_parked_receiver(engine, autojump_clock) -> None:
    """F6: the end of a lease wakes a receiver at that moment."""
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        await writer.execute(send())
        await writer.execute(claim(lease_ms=20_000))
        receiver = await park(nursery, writer, claim(30_000))
        (delivery,) = await receiver.finished()
        assert delivery.attempts == 2
        assert abs(receiver.at - 20) < 1e-6
        assert await writer.execute(ack(delivery)) == (True,)


async def test_receivers_that_come_and_go_leave_nothing_behind(engine, autojump_clock) -> None:
    """Time-outs of receivers that were served or left are forgotten, so memory stays flat."""
    async with running_writer(engine) as writer:
        for _ in range(1_500):
            with trio.move_on_after(0.001):
                await writer.execute(claim(30_000))
        assert writer.parked.total == 0
        assert len(writer.parked._deadlines) <= 1_001
        await elapse(0)
