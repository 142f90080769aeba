"""Offers through the broker that race with acknowledgements, in the modes that tests/delayed has not; large batches."""

from collections import Counter
from random import Random

import pytest
import trio

from forq_trio.broker.broker import Broker
from forq_trio.model.errors import InvalidKey
from forq_trio.model.keys.types import Offered, Offering
from forq_trio.system import open_broker
from support.effort import count, many_trials
from support.processes import WAIT_SECONDS_MAX
from support.results import oks


@pytest.fixture
async def broker(url):
    async with open_broker(url, durability="normal", disk_reserve_mb=8) as broker:
        yield broker


async def offered(broker: Broker, key: str, content: str, **options) -> Offered:
    with trio.fail_after(WAIT_SECONDS_MAX):
        return await broker.offer("q", key, content, **options)


async def acknowledged(broker: Broker, receipt: str) -> bool:
    with trio.fail_after(WAIT_SECONDS_MAX):
        return oks(await broker.ack("q", [receipt])) == [True]


async def some_checkpoints(rng: Random) -> None:
    for _ in range(rng.randrange(4)):
        await trio.lowlevel.checkpoint()


async def contents(broker: Broker) -> list[str]:
    """Receive and acknowledge all there is."""
    found: list[str] = []
    while deliveries := await broker.receive("q", max_messages=100, wait_ms=0):
        assert all(oks(await broker.ack("q", [each.receipt for each in deliveries])))
        found += [each.content for each in deliveries]
    return found


@many_trials
@pytest.mark.parametrize("mode", ["createIfAbsent", "debounce", "onceMore"])
async def test_d09_an_offer_and_an_ack_of_one_key_at_the_same_time(broker, rng, mode):
    seen: Counter[tuple[str, bool, bool]] = Counter()
    options = {"mode": mode} | ({"delay_ms": 0} if mode == "debounce" else {})
    for number in range(count("offer_races")):
        await offered(broker, "k", f"old {number}")
        (delivery,) = await broker.receive("q", wait_ms=0)
        answers: list[Offered] = []
        acks: list[bool] = []

        async def offer(content: str = f"new {number}", answers: list[Offered] = answers) -> None:
            await some_checkpoints(rng)
            answers.append(await offered(broker, "k", content, **options))

        async def ack(receipt: str = delivery.receipt, acks: list[bool] = acks) -> None:
            await some_checkpoints(rng)
            acks.append(await acknowledged(broker, receipt))

        async with trio.open_nursery() as nursery:
            for call in rng.sample((offer, ack), 2):
                nursery.start_soon(call)
        (answer,), (acked,) = answers, acks
        outcome, waits = answer.outcome, answer.once_more
        seen[outcome, waits, acked] += 1
        # What was not acknowledged is what the offer changed, and what the offer stored is there, once.
        stored = [] if outcome == "ignored" else [f"new {number}"]
        assert acked == (outcome != "updated")
        assert await contents(broker) == stored
        assert not await broker.contains_key("q", "k")
    second = ("ignored", False, True) if mode == "createIfAbsent" else ("created", True, True)
    assert seen.keys() == {("created", False, True), second}


async def test_offers_that_replace_many_bytes_are_answered_together_in_their_order(broker, monkeypatch):
    keys = [f"{number}" for number in range(10)]
    await broker.offer_many("q", [Offering("x" * 100, key=key) for key in keys])
    monkeypatch.setattr("forq_trio.model.limits.REWRITE_BYTES_MAX", 250)
    batch = [Offering("new", key=key) for key in keys]
    found = await broker.offer_many("q", [*batch[:5], Offering("", key=""), *batch[5:]])
    assert [each.outcome for each in found if isinstance(each, Offered)] == ["updated"] * 10
    assert isinstance(found[5], InvalidKey)
    assert [each.sequence for each in found if isinstance(each, Offered)] == list(range(1, 11))
