"""Calls that wait together share one transaction and one commit."""

import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.access.types import Key
from forq_trio.model.commands import OfferMany, PauseSchedule, ProduceMany, RelayMessages
from forq_trio.model.errors import CommandRefused, InvalidContent
from forq_trio.model.keys.types import Offering
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.outboxes.types import RelayedMessage
from support.actors import SlowCommit, in_a_thread, running_writer
from support.words import Pending, claim, contents, send


async def test_calls_that_wait_together_share_one_commit(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        calls = [Pending(nursery, writer, send(str(number))) for number in range(100)]
        sequences = [(await call.finished()).sequence for call in calls]
        assert len(set(sequences)) == 100
        assert engine.commits == 1


async def test_a_caller_alone_gets_a_commit_each_time(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        for count in range(1, 6):
            await writer.execute(send())
            assert engine.commits == count


async def test_while_a_batch_is_made_durable_the_next_one_gathers(engine, mock_clock) -> None:
    async with running_writer(engine, policy=in_a_thread()) as writer, trio.open_nursery() as nursery:
        slow = SlowCommit(engine)
        first = Pending(nursery, writer, send("first"))
        await slow.reached()
        rest = [Pending(nursery, writer, send("later")) for _ in range(50)]
        await trio.testing.wait_all_tasks_blocked()
        slow.go_on()
        assert (await first.finished()).sequence == 1
        assert sorted([(await call.finished()).sequence for call in rest]) == list(range(2, 52))
        assert engine.commits == 2


async def test_one_commit_takes_no_more_calls_than_its_cap(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        for _ in range(2 * limits.COMMIT_CALLS_MAX + 1):
            Pending(nursery, writer, send())
        await trio.testing.wait_all_tasks_blocked()
        sizes = [len(batch.commands) for batch in engine.batches if batch.commands]
        assert sizes == [limits.COMMIT_CALLS_MAX, limits.COMMIT_CALLS_MAX, 1]


async def test_one_commit_takes_no_more_messages_than_its_cap(engine, autojump_clock) -> None:
    many = ProduceMany("q", (NewMessage("x"),) * limits.PRODUCE_BATCH_MAX)
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        for _ in range(10):
            Pending(nursery, writer, many)
        await trio.testing.wait_all_tasks_blocked()
        assert [len(batch.commands) for batch in engine.batches if batch.commands] == [4, 3, 3]


_OFFERS = (Offering("x", key="k"),) * (limits.OFFER_BATCH_MAX // 2 + 100)
_RELAYED = tuple(
    RelayedMessage(number, "q", NewMessage("x")) for number in range(1, limits.OUTBOX_PAGE_MAX // 2 + 100)
)


@pytest.mark.parametrize(
    ("command", "sizes"),
    [
        (OfferMany("q", _OFFERS), [1, 1, 1]),
        (RelayMessages("o", 0, _RELAYED, Key()), [1, 1, 1]),
        (PauseSchedule("s", True), [16, 12, 12]),
    ],
)
async def test_what_takes_longer_than_sends_shares_a_commit_with_fewer(
    engine, autojump_clock, command, sizes
) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        for _ in range(sum(sizes)):
            Pending(nursery, writer, command)
        await trio.testing.wait_all_tasks_blocked()
        assert [len(batch.commands) for batch in engine.batches if batch.commands] == sizes


async def test_a_bad_command_fails_alone_and_its_neighbours_commit(engine, autojump_clock) -> None:
    """A lone surrogate is refused by the broker; below it, only its own command may suffer."""
    async with running_writer(engine) as writer:
        async with trio.open_nursery() as nursery:
            calls = [Pending(nursery, writer, send(content)) for content in ("a", "\ud800", "b")]
        good, bad, also_good = (call.outcome for call in calls)
        assert isinstance(bad, CommandRefused | InvalidContent)
        assert {good.sequence, also_good.sequence} == {1, 2}
        assert sorted(contents(await writer.execute(claim(most=9)))) == ["a", "b"]
        assert engine.commits == 2
