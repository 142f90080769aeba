"""A few words more, for what several tests say."""

from collections.abc import Sequence

import pytest

from forq_trio import Delivery, ForqError, MessageInfo
from forq_trio.model.limits import ATTEMPTS_MAX_DEFAULT

from .face import Face

SECOND = 1_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE


def contents(messages: Sequence[Delivery | MessageInfo]) -> list[str]:
    return [message.content for message in messages]


async def attempt_all_but_one(face: Face, queue: str = "q") -> None:
    """Leave one attempt to the message of `queue`, without letting time pass."""
    for _ in range(ATTEMPTS_MAX_DEFAULT - 1):
        delivery = await face.take(queue)
        assert await face.nack(delivery.receipt, delay_ms=0, queue=queue) == [True]


async def fail(face: Face, queue: str = "q") -> None:
    """Use up the attempts of the message of `queue`."""
    await attempt_all_but_one(face, queue)
    delivery = await face.take(queue)
    assert await face.nack(delivery.receipt, queue=queue) == [True]


async def code_of(call) -> str | None:
    """The code `call` is refused with."""
    with pytest.raises(ForqError) as refusal:
        await call
    return refusal.value.code
