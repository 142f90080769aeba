"""What cancelling a call does, case by case (waiters.py)."""

import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model.commands import Produce
from support.actors import SlowCommit, in_a_thread, running_writer, until
from support.words import Pending, ack, claim, contents, nack, send


async def test_cancelled_before_it_is_taken_nothing_happens(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        with trio.CancelScope() as scope:
            scope.cancel()
            await writer.execute(send())
        assert scope.cancelled_caught
        assert await writer.execute(claim()) == ()
        assert not any(isinstance(command, Produce) for batch in engine.batches for command in batch.commands)


async def test_cancelled_while_a_batch_runs_ahead_of_it_nothing_happens(engine, mock_clock) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        slow = SlowCommit(engine)
        Pending(nursery, writer, send("first"))
        await slow.reached()
        waiting = Pending(nursery, writer, send("withdrawn"))
        await wait_all_tasks_blocked()
        waiting.cancel()
        await waiting.finished()
        slow.go_on()
        assert waiting.left
        assert contents(await writer.execute(claim(most=9))) == ["first"]


async def test_cancelled_while_parked_it_is_forgotten_at_once(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receiver = Pending(nursery, writer, claim(30_000))
        await wait_all_tasks_blocked()
        assert writer.parked.total == 1
        batches = len(engine.batches)
        receiver.cancel()
        await receiver.finished()
        assert (receiver.left, writer.parked.total) == (True, 0)
        await wait_all_tasks_blocked()
        assert len(engine.batches) == batches
        await writer.execute(send())
        (delivery,) = await writer.execute(claim())
        assert delivery.attempts == 1


async def test_a_claim_whose_caller_left_during_the_commit_is_released_uncounted(engine, mock_clock) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        await writer.execute(send())
        slow = SlowCommit(engine)
        claiming = Pending(nursery, writer, claim())
        await slow.reached()
        claiming.cancel()
        await claiming.finished()
        slow.go_on()
        await wait_all_tasks_blocked()
        (delivery,) = await writer.execute(claim())
        assert claiming.left
        assert delivery.attempts == 1


async def test_what_a_caller_left_behind_goes_to_the_next_parked_receiver(engine, mock_clock) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        first = Pending(nursery, writer, claim(30_000))
        await until(lambda: writer.parked.total == 1)
        second = Pending(nursery, writer, claim(30_000))
        await until(lambda: writer.parked.total == 2)
        slow = SlowCommit(engine)
        Pending(nursery, writer, send("once"))
        await slow.reached()
        first.cancel()
        await first.finished()
        slow.go_on()
        (delivery,) = await second.finished()
        assert first.left
        assert (delivery.content, delivery.attempts) == ("once", 1)
        assert await writer.execute(ack(delivery)) == (True,)


async def test_only_the_receiver_that_was_offered_the_message_is_answered_with_it(engine, mock_clock) -> None:
    """Others may leave the line while the commit runs: the i-th of the engine's answer is still the same one."""
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        receivers = []
        for number in range(1, 5):
            receivers.append(Pending(nursery, writer, claim(30_000)))
            await until(lambda parked=number: writer.parked.total == parked)
        slow = SlowCommit(engine)
        for content in ("a", "b", "c"):
            writer.post(send(content))
        await slow.reached()
        receivers[0].cancel()
        await receivers[0].finished()
        slow.go_on()
        outcomes = [contents(await receiver.finished()) for receiver in receivers[1:]]
        assert sorted(outcomes) == [["a"], ["b"], ["c"]]
        assert outcomes[:2] == [["b"], ["c"]]


async def test_a_send_cancelled_during_its_commit_is_stored_all_the_same(engine, mock_clock) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        slow = SlowCommit(engine)
        sending = Pending(nursery, writer, send("kept"))
        await slow.reached()
        sending.cancel()
        await sending.finished()
        slow.go_on()
        assert sending.left
        assert contents(await writer.execute(claim())) == ["kept"]


async def test_an_ack_cancelled_during_its_commit_happens_all_the_same(engine, mock_clock) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        await writer.execute(send())
        (delivery,) = await writer.execute(claim())
        slow = SlowCommit(engine)
        acking = Pending(nursery, writer, ack(delivery))
        await slow.reached()
        acking.cancel()
        await acking.finished()
        slow.go_on()
        assert await writer.execute(ack(delivery)) == (False,)
        assert writer.snapshot().counts["q"].total == 0


async def test_a_call_that_is_resolved_and_cancelled_in_the_same_tick_has_its_outcome(
    engine, mock_clock
) -> None:
    """The message is in the caller's hands then, so it is the caller's, and nothing is released."""
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receiver = Pending(nursery, writer, claim(30_000))
        await wait_all_tasks_blocked()
        engine.after_answers = receiver.cancel
        await writer.execute(send())
        (delivery,) = await receiver.finished()
        assert receiver.scope.cancel_called
        assert not receiver.left
        assert await writer.execute(nack(delivery, delay_ms=0)) == (True,)
