"""What only some faces offer: priority (promise 3) and sends that can be repeated safely."""

from support.actors import T0

from .face import NOBODY
from .words import MINUTE, contents, offered

WINDOW = 5 * MINUTE


@offered("priority")
async def test_higher_priorities_first_and_each_in_order(face) -> None:
    for content, priority in [("a", 100), ("b", 0), ("c", 1_000), ("d", 100), ("e", 1_000)]:
        await face.send(content, priority=priority)
    assert contents(await face.peek()) == ["c", "e", "a", "d", "b"]
    assert contents(await face.receive(most=10)) == ["c", "e", "a", "d", "b"]


@offered("priority")
async def test_a_message_that_comes_back_keeps_its_priority(face) -> None:
    await face.send("usual")
    await face.send("high", priority=900)
    await face.nack((await face.take()).receipt, delay_ms=10)
    await face.send("later", priority=900)
    await face.advance(10)
    assert contents(await face.receive(most=3)) == ["high", "later", "usual"]


@offered("deduplication")
async def test_a_send_repeated_within_its_window_is_stored_once(face) -> None:
    first = await face.send("first", deduplication_id="one")
    assert not first.duplicate
    await face.ack((await face.take()).receipt)
    await face.advance(WINDOW - 1)
    again = await face.send("again", deduplication_id="one")
    assert (again.id, again.sequence, again.duplicate) == (first.id, first.sequence, True)
    assert await face.counts() == NOBODY
    await face.advance(1)
    anew = await face.send("anew", deduplication_id="one")
    assert not anew.duplicate
    assert (await face.message(anew.id)).received_at == T0 + WINDOW
    assert (await face.take()).content == "anew"


@offered("deduplication")
async def test_deduplication_is_each_queues_own(face) -> None:
    for queue in ("one", "two"):
        assert not (await face.send(queue, queue, deduplication_id="same")).duplicate
    assert (await face.take("two")).content == "two"
