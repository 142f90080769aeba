"""Receivers that wait for a rate are served in the very millisecond in which its next token is there."""

import trio

from forq_trio.model import limits
from forq_trio.model.commands import Configure
from forq_trio.model.queues.setting_values import Rate, RatePer
from forq_trio.model.queues.settings import SettingsChange
from support.actors import running_writer
from support.words import claim, contents, send


async def deliveries(writer, count: int) -> list[tuple[str, int]]:
    """The next deliveries to one waiting receiver, each with its time in ms of simulated time."""
    found = []
    while len(found) < count:
        for content in contents(await writer.execute(claim(limits.WAIT_MS_MAX))):
            found.append((content, round(trio.current_time() * 1_000)))
    return found


async def test_a_receiver_gets_one_for_every_token(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        await writer.execute(Configure("q", SettingsChange(rate=Rate(2, 30_000))))
        for name in "abcd":
            await writer.execute(send(name))
        assert await deliveries(writer, 4) == [("a", 0), ("b", 0), ("c", 15_000), ("d", 30_000)]


async def test_a_receiver_gets_one_of_a_group_for_every_token(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        await writer.execute(Configure("q", SettingsChange(rate=Rate(1, 1_234, RatePer.GROUP))))
        for name in ("a1", "a2", "b1", "a3"):
            await writer.execute(send(name, group=name[0]))
        assert await deliveries(writer, 4) == [("a1", 0), ("b1", 0), ("a2", 1_234), ("a3", 2_468)]


async def test_a_wait_for_a_token_runs_two_batches(engine, autojump_clock) -> None:
    """The one that finds no token, and the one that has it 20 s later."""
    async with running_writer(engine) as writer:
        await writer.execute(Configure("q", SettingsChange(rate=Rate(1, 20_000))))
        await writer.execute(send("a"))
        await writer.execute(send("b"))
        await deliveries(writer, 1)
        before = len(engine.batches)
        assert contents(await writer.execute(claim(limits.WAIT_MS_MAX))) == ["b"]
        assert round(trio.current_time() * 1_000) == 20_000
        assert len(engine.batches) - before == 2
