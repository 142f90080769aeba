"""Sends that can be repeated safely: what has the id of a message within its window is not stored."""

from forq_trio import NewMessage
from support.actors import T0

from .face import NOBODY
from .running import open_face
from .words import MINUTE, SECOND

WINDOW = 5 * MINUTE


async def test_a_send_repeated_within_its_window_is_stored_once(face) -> None:
    """Also when the message itself is long gone; and the window ends on time."""
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


async def test_a_repeated_send_does_not_prolong_the_window(face) -> None:
    await face.send(deduplication_id="one")
    await face.advance(WINDOW - 1)
    assert (await face.send(deduplication_id="one", deduplication_window_ms=WINDOW)).duplicate
    await face.advance(1)
    assert not (await face.send(deduplication_id="one")).duplicate


async def test_the_window_of_a_message_and_of_a_queue(face) -> None:
    await face.configure(deduplication_window_ms=2 * SECOND)
    await face.send(deduplication_id="as the queue has it")
    await face.send(deduplication_id="its own", deduplication_window_ms=SECOND)
    await face.advance(SECOND)
    assert not (await face.send(deduplication_id="its own")).duplicate
    await face.advance(SECOND - 1)
    assert (await face.send(deduplication_id="as the queue has it")).duplicate
    await face.advance(1)
    assert not (await face.send(deduplication_id="as the queue has it")).duplicate


async def test_deduplication_is_each_queues_own(face) -> None:
    for queue in ("one", "two"):
        assert not (await face.send(queue, queue, deduplication_id="same")).duplicate
    assert (await face.take("two")).content == "two"


async def test_duplicates_within_a_batch(face) -> None:
    batch = [NewMessage(content, deduplication_id="same") for content in "ab"] + [NewMessage("c")]
    first, second, third = await face.send_many(batch)
    assert [result.duplicate for result in (first, second, third)] == [False, True, False]
    assert (second.id, second.sequence) == (first.id, first.sequence)
    assert (await face.counts()).ready == 2


async def test_ids_outlive_a_purge_and_a_restart(kind, tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'forq.db'}"
    async with open_face(kind, url) as face:
        first = await face.send(deduplication_id="one", deduplication_window_ms=60 * MINUTE)
        assert await face.purge() == 1
    async with open_face(kind, url) as face:
        again = await face.send(deduplication_id="one")
        assert (again.id, again.duplicate) == (first.id, True)


async def test_a_duplicate_is_known_even_where_there_is_no_room(face) -> None:
    await face.configure(max_messages=1)
    first = await face.send(deduplication_id="one")
    assert (await face.send(deduplication_id="one")).id == first.id
