"""Message batches: a token sends to the queues that it covers, and has the batches that it opened."""

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from support.forq_api import Api

from .conftest import Tokens, is_forbidden

AT = "/api/v1/batches"


def message(queue: str, more: str = "") -> str:
    return f'{{"queue": "{queue}", "message": {{"content": "m"{more}}}}}'


def added(*queues: str) -> bytes:
    return f'{{"messages": [{",".join(map(message, queues))}]}}'.encode()


async def test_a_queue_that_the_token_does_not_cover_is_refused(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.PRODUCE, queues="a*")
    for member in ("then", "onDead"):
        await is_forbidden(holder, "produce", "PUT", f"{AT}/b", f'{{"{member}": {message("b1")}}}'.encode())
    own = message("a1", ', "deadLetterQueue": "b1"')
    await is_forbidden(holder, "produce", "PUT", f"{AT}/b", f'{{"then": {own}}}'.encode())
    assert (await holder.ask("PUT", f"{AT}/b", f'{{"then": {message("a1")}}}'.encode()))[0] == 200
    await is_forbidden(holder, "produce", "POST", f"{AT}/b/messages", added("a1", "b1"))
    status, answer = await holder.ask("POST", f"{AT}/b/messages", added("a1", "a2"))
    assert (status, ["code" in each for each in answer["results"]]) == (200, [False, False])


async def test_others_add_to_a_batch_but_neither_see_nor_end_it(api: Api, tokens: Tokens):
    owner, other = [await tokens.holder(Scope.PRODUCE) for _ in range(2)]
    assert (await owner.ask("PUT", f"{AT}/b", b"{}"))[0] == 200
    assert (await other.ask("PUT", f"{AT}/b", b"{}"))[1]["code"] == "conflict.batch_exists"
    assert (await other.ask("POST", f"{AT}/b/messages", added("q")))[0] == 200
    for method, end in (("GET", ""), ("POST", "/close"), ("POST", "/abandon")):
        assert (await other.ask(method, f"{AT}/b{end}"))[1]["code"] == "not_found.batch"
    assert await other.ask("GET", AT) == (200, {"batches": [], "next": None})
    assert (await owner.ask("GET", f"{AT}/b"))[1]["left"] == 1
    assert (await owner.ask("POST", f"{AT}/b/close"))[1]["state"] == "closed"


async def test_a_token_makes_its_share_of_batches_and_no_more(api: Api, tokens: Tokens, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_BATCHES_OF_TOKENS_MAX", 5)
    holder = await tokens.holder(Scope.PRODUCE)
    for number in range(3):
        assert (await holder.ask("PUT", f"{AT}/{number}", b"{}"))[0] == 200
    status, answer = await holder.ask("PUT", f"{AT}/3", b"{}")
    assert (status, answer["code"]) == (409, "conflict.too_many_batches")
    assert (await (await tokens.holder(Scope.PRODUCE)).ask("PUT", f"{AT}/3", b"{}"))[0] == 200


async def test_a_batch_tells_nothing_to_those_who_add_nothing(api: Api, tokens: Tokens):
    owner, other = [await tokens.holder(Scope.PRODUCE) for _ in range(2)]
    assert (await owner.ask("PUT", f"{AT}/ended", b"{}"))[0] == 200
    assert (await owner.ask("POST", f"{AT}/ended/close"))[0] == 200
    for id in ("ended", "none"):
        for body in (b'{"messages": []}', added("q-dlq")):
            assert (await other.ask("POST", f"{AT}/{id}/messages", body))[0] == 200
