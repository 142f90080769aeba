"""Workers: a token reports for the queues that it covers, and sees the others' workers in these alone."""

import msgspec

from forq_trio.model.access.types import Scope
from forq_trio.model.workers.bodies import WorkerState
from support.forq_api import Api
from support.workers import part, report, worker_id

from .conftest import Tokens

LIST = "/api/v1/workers"
AT = f"{LIST}/{worker_id(1)}"


def body(*queues: str) -> bytes:
    return msgspec.json.encode(WorkerState.of(report(1, *map(part, queues))))


async def test_a_report_needs_consume_for_each_of_its_queues(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.CONSUME, queues="a*")
    assert (await holder.ask("PUT", AT, body("a1", "b1")))[0] == 403
    assert (await holder.ask("PUT", AT, body("a1", "a2")))[0] == 204
    browser = await tokens.holder(Scope.BROWSE, queues="*")
    assert (await browser.ask("PUT", AT, body("a1")))[0] == 403


async def test_a_list_has_what_the_token_covers(api: Api, tokens: Tokens):
    await api.broker.report_worker(report(1, part("a1"), part("b1")))
    await api.broker.report_worker(report(2, part("b1")))
    holder = await tokens.holder(Scope.BROWSE, queues="a*")
    status, answer = await holder.ask("GET", LIST)
    assert status == 200
    assert [each["report"]["queues"][0]["queue"] for each in answer["workers"]] == ["a1"]
    assert [len(each["report"]["queues"]) for each in answer["workers"]] == [1]
    assert await holder.ask("GET", f"{LIST}?queue=b1") == (200, {"workers": []})


async def test_another_token_neither_overwrites_nor_forgets(api: Api, tokens: Tokens):
    one = await tokens.holder(Scope.CONSUME, queues="*")
    assert (await one.ask("PUT", AT, body("a1")))[0] == 204
    other = await tokens.holder(Scope.CONSUME, queues="*")
    assert (await other.ask("PUT", AT, body("a1")))[0] == 403
    assert (await other.ask("DELETE", AT))[0] == 403
    assert (await one.ask("DELETE", AT))[0] == 204
    assert await api.broker.workers() == []


async def test_a_token_hears_of_withdrawn_messages_in_its_queues(api: Api, tokens: Tokens):
    for queue in ("a1", "b1"):
        await api.send("m", queue=queue)
        await api.broker.receive(queue)
        await api.broker.purge(queue)
    after = api.broker.known_workers.began_at - 1
    path, both = "/api/v1/withdrawn", b'{"queues": ["a1", "b1"], "after": %d}' % after
    holder = await tokens.holder(Scope.CONSUME, queues="a*")
    assert (await holder.ask("POST", path, both))[0] == 403
    status, answer = await holder.ask("POST", path, b'{"queues": ["a1"], "after": %d}' % after)
    assert (status, [(each["queue"], each["how"]) for each in answer["messages"]]) == (
        200,
        [("a1", "deleted")],
    )
    browser = await tokens.holder(Scope.BROWSE, queues="*")
    assert (await browser.ask("POST", path, both))[0] == 403
