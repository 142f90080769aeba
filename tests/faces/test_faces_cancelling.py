"""A message that waits is cancelled by its id."""

import pytest

from forq_trio import MessageInFlight, MessageNotFound
from forq_trio.model.messages.types import QueueCounts

from .face import NOBODY, NOT_FOUND
from .words import SECOND, code_of, contents


async def test_nobody_receives_it(face) -> None:
    first, second = await face.send("first"), await face.send("second")
    assert await face.methods.cancel("q", first.id) is None
    assert contents(await face.receive(most=5)) == ["second"]
    assert await code_of(face.message(first.id)) == NOT_FOUND
    with pytest.raises(MessageNotFound):
        await face.methods.cancel("q", first.id)
    with pytest.raises(MessageInFlight):
        await face.methods.cancel("q", second.id)


async def test_a_delayed_one_never_comes(face) -> None:
    sent = await face.send(delay_ms=SECOND)
    await face.methods.cancel("q", sent.id.upper())
    assert await face.counts() == NOBODY
    await face.advance(SECOND)
    assert await face.has_nothing()


async def test_in_flight_it_is_refused_and_its_consumer_goes_on(face) -> None:
    sent = await face.send()
    delivery = await face.take()
    assert await code_of(face.methods.cancel("q", sent.id)) == "conflict.message_in_flight"
    assert await face.counts() == QueueCounts(processing=1)
    assert await face.ack(delivery.receipt) == [True]


async def test_once_it_is_back_it_can_be(face) -> None:
    sent = await face.send()
    delivery = await face.take(lease_ms=SECOND)
    await face.advance(SECOND)
    await face.methods.cancel("q", sent.id)
    assert await face.ack(delivery.receipt) == [False]
    assert await face.counts() == NOBODY
