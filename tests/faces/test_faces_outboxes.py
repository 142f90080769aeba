"""Outboxes are relayed in the same way through every face."""

import pytest

from forq_trio import (
    InvalidName,
    NewMessage,
    OutboxPosition,
    OutOfRange,
    ProduceToDeadLetterQueue,
    RelayedMessage,
)

from .face import Face


def of(*ids: int, queue: str = "q", **options: int) -> list[RelayedMessage]:
    return [RelayedMessage(id, queue, NewMessage(f"m{id}", **options)) for id in ids]


async def test_messages_enter_their_queues_once(face: Face) -> None:
    assert await face.methods.outbox_position("o") == OutboxPosition(0)
    messages = [*of(1, 3), *of(4, queue="other")]
    for _ in range(2):
        assert await face.methods.relay_outbox("o", 0, messages) == OutboxPosition(4)
    assert await face.methods.outbox_position("o") == OutboxPosition(4)
    assert [(await face.take()).content for _ in range(2)] == ["m1", "m3"]
    assert (await face.take("other")).content == "m4"
    assert await face.has_nothing()


async def test_what_cannot_be_sent_is_refused_and_what_is_before_it_stored(face: Face) -> None:
    messages = [*of(1), *of(2, priority=5_000), *of(3)]
    outcome = await face.methods.relay_outbox("o", 0, messages)
    assert outcome.refused is not None
    assert (outcome.position, outcome.refused.id) == (1, 2)
    assert outcome.refused.code.startswith("bad_request.")
    assert await face.methods.relay_outbox("o", 1, messages[2:]) == OutboxPosition(3)
    outcome = await face.methods.relay_outbox("o", 3, of(4, queue="q-dlq"))
    assert outcome.refused is not None
    assert (outcome.position, outcome.refused.code) == (3, ProduceToDeadLetterQueue.code)


async def test_ids_grow(face: Face) -> None:
    for after, ids in ((0, (2, 1)), (5, (5, 6)), (0, (1, 1))):
        with pytest.raises(OutOfRange):
            await face.methods.relay_outbox("o", after, of(*ids))
    with pytest.raises(InvalidName):
        await face.methods.outbox_position("no such/name")
    assert await face.has_nothing()


async def test_with_a_file_nothing_is_set_aside_by_the_server(face: Face) -> None:
    assert await face.methods.set_aside() == []
    assert await face.methods.retry_set_aside([1, 2]) == 0
    assert await face.methods.delete_set_aside([]) == 0


async def test_pages_and_ids_of_what_was_set_aside_are_bounded(face: Face) -> None:
    for options in ({"limit": 0}, {"limit": 1_001}, {"after": -1}):
        with pytest.raises(OutOfRange):
            await face.methods.set_aside(**options)
    for ids in ([-1], list(range(1_001))):
        with pytest.raises(OutOfRange):
            await face.methods.retry_set_aside(ids)
        with pytest.raises(OutOfRange):
            await face.methods.delete_set_aside(ids)
