"""The inbox is bounded: past its bound a caller waits shortly, then hears Overloaded, and nothing happens for it."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model import limits
from forq_trio.model.commands import Produce
from forq_trio.model.errors import Overloaded, Stopping
from support.actors import SlowCommit, elapse, in_a_thread, running_writer
from support.words import Pending, claim, contents, send


async def fill(nursery, engine, writer, calls: int) -> tuple[SlowCommit, list[Pending]]:
    """Stop the writer in a commit and fill its inbox of `calls` places."""
    slow = SlowCommit(engine)
    waiting = [Pending(nursery, writer, send("in the commit"))]
    await slow.reached()
    waiting += [Pending(nursery, writer, send("in the inbox")) for _ in range(calls)]
    await wait_all_tasks_blocked()
    return slow, waiting


async def test_a_full_inbox_refuses_after_its_wait_and_executes_nothing(engine, mock_clock) -> None:
    policy = in_a_thread()
    async with (
        running_writer(engine, policy=policy, inbox_calls_max=3) as writer,
        trio.open_nursery() as nursery,
    ):
        slow, accepted = await fill(nursery, engine, writer, 3)
        refused = Pending(nursery, writer, send("too much"))
        await wait_all_tasks_blocked()
        mock_clock.jump(limits.INBOX_FULL_WAIT_SECONDS - 0.001)
        await wait_all_tasks_blocked()
        assert refused.outcome is None
        mock_clock.jump(0.002)
        assert isinstance(await refused.finished(), Overloaded)
        slow.go_on()
        for call in accepted:
            assert (await call.finished()).sequence > 0
        stored = contents(await writer.execute(claim(most=100)))
        assert sorted(stored) == ["in the commit"] + ["in the inbox"] * 3


async def test_room_that_comes_in_time_is_used(engine, mock_clock) -> None:
    policy = in_a_thread()
    async with (
        running_writer(engine, policy=policy, inbox_calls_max=2) as writer,
        trio.open_nursery() as nursery,
    ):
        slow, _ = await fill(nursery, engine, writer, 2)
        late = Pending(nursery, writer, send("just in time"))
        await wait_all_tasks_blocked()
        slow.go_on()
        assert (await late.finished()).sequence == 4


async def test_a_caller_that_leaves_while_it_waits_for_room_sent_nothing(engine, mock_clock) -> None:
    policy = in_a_thread()
    async with (
        running_writer(engine, policy=policy, inbox_calls_max=1) as writer,
        trio.open_nursery() as nursery,
    ):
        slow, _ = await fill(nursery, engine, writer, 1)
        leaving = Pending(nursery, writer, send("never"))
        await wait_all_tasks_blocked()
        leaving.cancel()
        await leaving.finished()
        slow.go_on()
        assert leaving.left
        assert "never" not in contents(await writer.execute(claim(most=100)))


async def test_who_waits_for_room_when_the_writer_stops_is_refused(engine, mock_clock) -> None:
    policy = in_a_thread()
    async with (
        running_writer(engine, policy=policy, inbox_calls_max=1) as writer,
        trio.open_nursery() as nursery,
    ):
        slow, accepted = await fill(nursery, engine, writer, 1)
        waiting = Pending(nursery, writer, send("refused"))
        await wait_all_tasks_blocked()
        writer.stop()
        assert isinstance(await waiting.finished(), Stopping)
        slow.go_on()
        for call in accepted:
            assert (await call.finished()).sequence > 0


async def test_a_post_is_executed_even_when_the_inbox_is_full(engine, mock_clock) -> None:
    policy = in_a_thread()
    async with (
        running_writer(engine, policy=policy, inbox_calls_max=1) as writer,
        trio.open_nursery() as nursery,
    ):
        slow, _ = await fill(nursery, engine, writer, 1)
        for number in range(5):
            writer.post(send(f"post {number}"))
        slow.go_on()
        stored = contents(await writer.execute(claim(most=100)))
        assert {f"post {number}" for number in range(5)} <= set(stored)


async def test_posts_alone_need_nobody_to_wake_the_writer(engine, autojump_clock) -> None:
    async with running_writer(engine, inbox_calls_max=1) as writer:
        for number in range(4):
            writer.post(send(str(number)))
        await elapse(0.001)
        posted = [c for batch in engine.batches for c in batch.commands if isinstance(c, Produce)]
        assert len(posted) == 4


async def test_under_overload_the_inbox_stays_at_its_bound(engine, mock_clock) -> None:
    """Memory is flat: whoever is not in the inbox waits in its own task, or is refused."""
    policy = in_a_thread()
    async with (
        running_writer(engine, policy=policy, inbox_calls_max=8) as writer,
        trio.open_nursery() as nursery,
    ):
        slow, _ = await fill(nursery, engine, writer, 8)
        extra = [Pending(nursery, writer, send("extra")) for _ in range(200)]
        await wait_all_tasks_blocked()
        mock_clock.jump(1)
        outcomes = [await call.finished() for call in extra]
        assert all(isinstance(outcome, Overloaded) for outcome in outcomes)
        slow.go_on()


async def test_after_overload_the_writer_serves_again(engine, mock_clock) -> None:
    policy = in_a_thread()
    async with (
        running_writer(engine, policy=policy, inbox_calls_max=1) as writer,
        trio.open_nursery() as nursery,
    ):
        slow, _ = await fill(nursery, engine, writer, 1)
        refused = Pending(nursery, writer, send("refused"))
        await wait_all_tasks_blocked()
        mock_clock.jump(1)
        with pytest.raises(Overloaded):
            raise await refused.finished()
        slow.go_on()
        assert (await writer.execute(send("accepted"))).sequence == 3
