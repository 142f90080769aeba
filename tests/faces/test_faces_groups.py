"""Groups keep their order and take turns; how many of one are in process at once can be bounded."""

import trio

from forq_trio import NewMessage
from forq_trio.model.messages.types import QueueCounts

from .face import NOBODY
from .waiter import park
from .words import SECOND, contents


async def send_groups(face, *names: str) -> None:
    """A message per name: its first letter is the group; "-" for none."""
    await face.send_many([NewMessage(name, group=None if name[0] == "-" else name[0]) for name in names])


async def test_groups_take_turns(face) -> None:
    await send_groups(face, "a1", "a2", "a3", "a4", "b1", "b2", "c1")
    assert contents(await face.receive(most=10)) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


async def test_a_group_that_comes_late_waits_for_one_round_only(face) -> None:
    await send_groups(face, *[f"a{number}" for number in range(50)])
    assert contents(await face.receive(most=3)) == ["a0", "a1", "a2"]
    await send_groups(face, "b1", "b2")
    got = contents(await face.receive(most=6))
    assert got.index("b1") <= 2
    assert got.index("b2") <= 4


async def test_messages_without_a_group_take_turns_as_if_they_were_one(face) -> None:
    await send_groups(face, "-1", "-2", "-3", "a1", "a2")
    got = contents(await face.receive(most=10))
    assert got.index("a1") < 4
    assert [each for each in got if each[0] == "-"] == ["-1", "-2", "-3"]
    assert [each for each in got if each[0] == "a"] == ["a1", "a2"]


async def test_a_group_keeps_its_order_whatever_comes_back(face) -> None:
    await send_groups(face, "a1", "a2", "b1")
    first = await face.take()
    await face.release(first.receipt)
    got = contents(await face.receive(most=3))
    assert got.index("a1") < got.index("a2")


async def test_no_more_of_a_group_than_may_be(face) -> None:
    await face.configure(group_in_flight_max=1)
    await send_groups(face, "a1", "a2", "b1", "-1", "-2")
    got = await face.receive(most=10)
    assert sorted(contents(got)) == ["-1", "-2", "a1", "b1"]
    assert await face.counts() == QueueCounts(processing=4, held=1)
    (a1,) = (delivery for delivery in got if delivery.content == "a1")
    await face.ack(a1.receipt)
    assert contents(await face.receive(most=10)) == ["a2"]


async def test_the_next_of_a_group_wakes_who_waits(face) -> None:
    await face.configure(group_in_flight_max=1)
    await send_groups(face, "a1", "a2", "a3")
    first = await face.take()
    async with trio.open_nursery() as nursery:
        waiter = await park(face, nursery)
        await face.ack(first.receipt)
        assert await waiter.contents() == ["a2"]
    assert await face.counts() == QueueCounts(processing=1, held=1)


async def test_a_lease_that_ends_lets_the_next_go(face) -> None:
    """The one that came back is the first of its group again."""
    await face.configure(group_in_flight_max=1)
    await send_groups(face, "a1", "a2")
    await face.receive(most=2, lease_ms=SECOND)
    await face.advance(SECOND)
    assert contents(await face.receive(most=2)) == ["a1"]


async def test_without_the_bound_all_are_let_go(face) -> None:
    await face.configure(group_in_flight_max=1)
    await send_groups(face, "a1", "a2", "a3")
    assert contents(await face.receive(most=3)) == ["a1"]
    await face.configure(group_in_flight_max=None)
    await face.advance(0)
    assert contents(await face.receive(most=3)) == ["a2", "a3"]


async def test_held_messages_expire_and_can_be_purged(face) -> None:
    await face.configure(group_in_flight_max=1)
    for content, ttl_ms in [("a1", None), ("a2", SECOND), ("a3", None)]:
        await face.send(content, group="a", ttl_ms=ttl_ms)
    await face.receive(most=3)
    assert await face.counts() == QueueCounts(processing=1, held=2)
    await face.advance(SECOND)
    assert await face.counts() == QueueCounts(processing=1, held=1)
    assert await face.purge() == 2
    assert await face.counts() == NOBODY
