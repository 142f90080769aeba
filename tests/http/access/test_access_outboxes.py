"""Outboxes: a token sends to the queues that it covers, and a message for another one is refused alone."""

from forq_trio.model.access.types import Scope
from support.forq_api import Api

from .conftest import Tokens

AT = "/api/v1/outboxes/o/messages"


def body(after: int, *queues: str) -> bytes:
    each = ",".join(
        f'{{"id": {after + index}, "queue": "{queue}", "message": {{"content": "m"}}}}'
        for index, queue in enumerate(queues, 1)
    )
    return f'{{"after": {after}, "messages": [{each}]}}'.encode()


async def test_a_message_for_a_queue_that_the_token_does_not_cover_is_refused(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.PRODUCE, queues="a*")
    status, answer = await holder.ask("POST", AT, body(0, "a1", "b1", "a2"))
    assert (status, answer["position"]) == (200, 1)
    assert (answer["refused"]["id"], answer["refused"]["code"]) == (2, "forbidden")
    assert await holder.ask("POST", AT, body(1, "a2")) == (200, {"position": 2})


async def test_who_may_send_nowhere_may_not_relay(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.CONSUME, queues="*")
    assert (await holder.ask("POST", AT, body(0, "a1")))[0] == 403
    assert (await holder.ask("GET", "/api/v1/outboxes/o"))[0] == 403


async def test_an_outbox_belongs_to_the_token_that_relayed_it_first(api: Api, tokens: Tokens):
    owner = await tokens.holder(Scope.PRODUCE, queues="*")
    other = await tokens.holder(Scope.PRODUCE, queues="*")
    assert await owner.ask("POST", AT, body(0, "a1")) == (200, {"position": 1})
    assert (await other.ask("POST", AT, body(1, "b1")))[0] == 403
    assert (await other.ask("GET", "/api/v1/outboxes/o"))[0] == 403
    assert await owner.ask("GET", "/api/v1/outboxes/o") == (200, {"position": 1})
