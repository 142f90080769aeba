"""Receive by attributes through the Broker, waits and bad conditions included."""

import pytest
import trio
import trio.testing

from forq_trio.model.errors import InvalidRequest
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.where import NotEqual


async def test_a_waiting_receiver_gets_what_matches_it_and_another_the_rest(broker):
    got = {}

    async def wait_for(name, where):
        (delivery,) = await broker.receive("q", where=where)
        got[name] = delivery.content

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for, "eu", {"region": "eu"})
        nursery.start_soon(wait_for, "other", {"region": NotEqual("eu")})
        await trio.testing.wait_all_tasks_blocked()
        messages = [NewMessage(region, attributes={"region": region}) for region in ("us", "eu")]
        await broker.produce_many("q", messages)
    assert got == {"eu": "eu", "other": "us"}


BAD = (
    {"region": {"like": "e%"}},
    {"region": 5},
    {"region": {"not": None}},
    {"region": {"orAbsent": True}},
    {"": "x"},
    {"k" * 65: "x"},
    {"region": "x" * 1_025},
    {str(number): "x" for number in range(11)},
    {"a": "x" * 1_024, "b": "x" * 1_023},
    ["region"],
)


async def test_bad_conditions_are_refused_and_nothing_is_lost(broker):
    await broker.produce("q", "x")
    for where in BAD:
        with pytest.raises(InvalidRequest, match="where"):
            await broker.receive("q", wait_ms=0, where=where)
    (delivery,) = await broker.receive("q", wait_ms=0)
    assert delivery.attempts == 1


async def test_conditions_with_a_random_order_are_refused(broker):
    with pytest.raises(InvalidRequest, match="random"):
        await broker.receive("q", wait_ms=0, where={"region": "eu"}, shuffle=True)
