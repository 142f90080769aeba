"""What a token may use of the inbox and of the parked receivers: never all of it."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model.commands import Claim, Ping
from forq_trio.model.errors import Overloaded
from forq_trio.model.holders import HOLDER, OWNER, Holder, HolderKind
from support.actors import SlowCommit, in_a_thread, running_writer
from support.words import Pending, send

TOKEN = Holder(HolderKind.TOKEN, "narrow")
OTHER = Holder(HolderKind.TOKEN, "other")
KEYLESS = Holder(HolderKind.ADDRESS, "192.0.2.1")
LET_IN = Holder(HolderKind.OPEN, "127.0.0.1")


class Callers:
    """Calls in tasks of these holders, and what became of them: "waits", "refused" or "served"."""

    def __init__(self, nursery, writer):
        self.nursery = nursery
        self.writer = writer

    async def ask(self, holder, command, count):
        outcomes = ["waits"] * count

        async def one(index):
            HOLDER.set(holder)
            try:
                await self.writer.execute(command)
                outcomes[index] = "served"
            except Overloaded:
                outcomes[index] = "refused"

        for index in range(count):
            self.nursery.start_soon(one, index)
            await wait_all_tasks_blocked()
        return outcomes


@pytest.mark.parametrize("greedy", [TOKEN, LET_IN], ids=["token", "let in"])
async def test_one_client_parks_two_thirds_of_the_receivers_and_others_find_a_place(
    engine, mock_clock, greedy
) -> None:
    parks = Claim("q", 1, None, 30_000)
    async with running_writer(engine, parked_max=12) as writer, trio.open_nursery() as nursery:
        callers = Callers(nursery, writer)
        assert (await callers.ask(greedy, parks, 12)).count("waits") == 8
        assert (await callers.ask(OTHER, parks, 12)).count("waits") == 2
        assert (await callers.ask(OWNER, parks, 1)) == ["waits"]
        assert (await callers.ask(KEYLESS, parks, 12)).count("waits") == 1
        assert writer.parked.budget.refused["token"] > 0
        nursery.cancel_scope.cancel()
    assert writer.parked.budget.used == 0


async def test_health_checks_without_a_key_fill_a_quarter_of_the_inbox(engine, mock_clock) -> None:
    async with (
        running_writer(engine, policy=in_a_thread(), inbox_calls_max=12) as writer,
        trio.open_nursery() as nursery,
    ):
        slow = SlowCommit(engine)
        first = Pending(nursery, writer, send("in the commit"))
        await slow.reached()
        callers = Callers(nursery, writer)
        keyless = await callers.ask(KEYLESS, Ping(), 12)
        assert (keyless.count("waits"), keyless.count("refused")) == (2, 10)
        assert writer.budgets["inbox"].refused == {"address": 10}
        tokens = await callers.ask(TOKEN, send("t"), 6)
        assert tokens == ["waits"] * 6
        slow.go_on()
        await first.finished()
        while "waits" in keyless + tokens:
            await trio.lowlevel.checkpoint()
        assert (keyless.count("served"), tokens) == (2, ["served"] * 6)


async def test_a_token_fills_two_thirds_of_the_inbox_and_is_refused_at_once(engine, mock_clock) -> None:
    async with (
        running_writer(engine, policy=in_a_thread(), inbox_calls_max=12) as writer,
        trio.open_nursery() as nursery,
    ):
        slow = SlowCommit(engine)
        first = Pending(nursery, writer, send("in the commit"))
        await slow.reached()
        callers = Callers(nursery, writer)
        tokens = await callers.ask(TOKEN, send("t"), 12)
        assert (tokens.count("waits"), tokens.count("refused")) == (8, 4)
        owners = await callers.ask(OWNER, send("o"), 2)
        assert owners == ["waits", "waits"]
        slow.go_on()
        await first.finished()
        while "waits" in tokens + owners:
            await trio.lowlevel.checkpoint()
        assert (tokens.count("served"), owners) == (8, ["served", "served"])
        assert writer.budgets["inbox"].used == 0
        again = await callers.ask(TOKEN, send("again"), 1)
        while "waits" in again:
            await trio.lowlevel.checkpoint()
        assert again == ["served"]
