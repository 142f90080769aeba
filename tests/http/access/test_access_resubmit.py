"""An edited copy of a dead letter is a send: it needs a right on the queue that it goes to, named or not."""

import pytest

from forq_trio.model.access.types import Scope
from support.forq_api import Api

from .conftest import Tokens, missing

DEAD = "orders-dlq"


@pytest.fixture
async def dead_letter(api: Api) -> str:
    """The id of a message that failed in `orders`."""
    await api.broker.produce("orders", "original", max_attempts=1)
    (delivery,) = await api.broker.receive("orders", wait_ms=0)
    await api.broker.nack("orders", [delivery.receipt])
    return delivery.id


async def test_without_a_right_on_the_queue_it_came_from_it_is_refused(
    api: Api, tokens: Tokens, dead_letter: str
):
    holder = await tokens.holder(Scope.REDRIVE, queues=DEAD)
    status, answer = await holder.ask(
        "POST", f"{DEAD}/dead-letters/{dead_letter}/resubmit", b'{"content": "forged"}'
    )
    assert (status, answer["code"], missing(answer)) == (403, "forbidden", "produce")
    assert api.broker.known.counts_of("orders").total == 0


@pytest.mark.parametrize("scope", [Scope.REDRIVE, Scope.PRODUCE])
async def test_with_a_right_there_it_is_sent(api: Api, tokens: Tokens, dead_letter: str, scope: Scope):
    holder = await tokens.holder(Scope.REDRIVE, scope, queues="orders*")
    status, _ = await holder.ask(
        "POST", f"{DEAD}/dead-letters/{dead_letter}/resubmit", b'{"content": "edited"}'
    )
    assert status == 200
    (delivery,) = await api.broker.receive("orders", wait_ms=0)
    assert delivery.content == "edited"


async def test_as_it_is_it_goes_back_with_the_right_on_the_dead_letters_alone(
    api: Api, tokens: Tokens, dead_letter: str
):
    holder = await tokens.holder(Scope.REDRIVE, queues=DEAD)
    status, answer = await holder.ask(
        "POST", f"{DEAD}/dead-letters/redrive", b'{"ids": ["%s"]}' % dead_letter.encode()
    )
    assert (status, answer["results"][0]["ok"]) == (200, True)
