"""The history over HTTP: pages of lines with their headers, searches, one message, its purge."""

import msgspec
import pytest

from forq_trio.jobs.retention import trim_log
from forq_trio.model import limits
from forq_trio.storage.engine import EngineSettings
from oracle.engine import MemoryEngine
from support.forq_api import START_MS, Api, json_of, open_api


@pytest.fixture
async def api():
    async with open_api(MemoryEngine(EngineSettings(history=True))) as api:
        yield api


async def finish(api: Api, *contents: str, queue: str = "q") -> list[str]:
    """Send, receive and acknowledge; the ids."""
    await api.send(*contents, queue=queue)
    received = [await api.receive(queue) for _ in contents]
    await api.broker.ack(queue, [message["receipt"] for message in received])
    return [message["id"] for message in received]


async def page(api: Api, query: str = "") -> tuple[list[str], tuple[int, int, int]]:
    """The contents of a page, and the numbers in its headers: next, first, last."""
    response = await api.call("GET", f"/api/v1/history{query}")
    assert (response.status, response.content_type) == (200, b"application/x-ndjson")
    headers = dict(response.headers)
    numbers = tuple(int(headers[f"x-forq-{name}".encode()]) for name in ("next", "first", "last"))
    return [msgspec.json.decode(line)["content"] for line in response.body.splitlines()], numbers


async def test_pages(api: Api):
    assert await page(api) == ([], (0, 1, 0))
    await finish(api, "a", "b", "c")
    await finish(api, "d", queue="r")
    assert await page(api) == (["a", "b", "c", "d"], (4, 1, 4))
    assert await page(api, "?after=1&limit=2") == (["b", "c"], (3, 1, 4))
    assert await page(api, "?after=1&until=2") == (["b"], (2, 1, 4))
    assert await page(api, "?queue=r") == (["d"], (4, 1, 4))
    assert await page(api, "?after=4") == ([], (4, 1, 4))
    range_ = json_of(await api.call("GET", "/api/v1/history/range"))
    assert range_ == {"enabled": True, "first": 1, "last": 4}


async def test_a_message_is_a_line(api: Api):
    (message_id,) = await finish(api, "a")
    response = await api.call("GET", "/api/v1/history")
    assert msgspec.json.decode(response.body) == {
        "id": message_id,
        "queue": "q",
        "sequence": 1,
        "receivedAt": START_MS,
        "attempts": 1,
        "priority": 100,
        "historyId": 1,
        "outcome": "acked",
        "finishedAt": START_MS,
        "content": "a",
    }


async def test_what_retention_removed_is_gone(api: Api):
    await finish(api, "a", "b", "c")
    await trim_log(api.writer, "history", 0, 1)
    assert await page(api) == (["c"], (3, 3, 3))
    assert await page(api, "?after=2") == (["c"], (3, 3, 3))
    assert await api.code("GET", "/api/v1/history?after=1") == (410, "forq.history_gone")


async def test_where_it_is_off_and_empty():
    async with open_api() as api:
        assert await api.code("GET", "/api/v1/history") == (409, "forq.history_off")
        range_ = json_of(await api.call("GET", "/api/v1/history/range"))
        assert range_ == {"enabled": False, "first": 1, "last": 0}


async def test_pages_that_cannot_be(api: Api):
    await finish(api, "a")
    for query, code in (
        ("after=-1", "bad_request.out_of_range"),
        ("until=x", "bad_request.out_of_range"),
        (f"limit={limits.LOG_PAGE_MAX + 1}", "bad_request.limit.out_of_range"),
        ("queue=a/b", "bad_request.queue.invalid_name"),
        ("from=1", "bad_request.query.unknown_parameter"),
    ):
        assert await api.code("GET", f"/api/v1/history?{query}") == (400, code), query


async def test_a_search(api: Api):
    await finish(api, "sofa", "chair")
    await api.send("table")
    await api.call("POST", "q/purge")
    found = json_of(await api.call("GET", "q/history?limit=1"))
    assert [message["content"] for message in found["messages"]] == ["table"]
    assert found["messages"][0]["outcome"] == "deleted"
    assert (found["searched"], found["total"], found["nextBefore"]) == (1, 3, 3)
    rest = json_of(await api.call("GET", "q/history?before=3&minAgeMs=0&outcome=acked&text=a"))
    assert [message["content"] for message in rest["messages"]] == ["chair", "sofa"]
    assert rest["nextBefore"] is None
    assert await api.code("GET", "q/history?outcome=lost") == (400, "bad_request.outcome.invalid")
    assert await api.code("GET", "q/history?attribute=k") == (400, "bad_request.attribute.invalid")


async def test_one_message_and_a_purge(api: Api):
    (message_id, _) = await finish(api, "a", "b")
    await finish(api, "c", queue="r")
    shown = json_of(await api.call("GET", f"q/history/{message_id}"))
    assert (shown["content"], shown["outcome"], shown["historyId"]) == ("a", "acked", 1)
    assert json_of(await api.call("DELETE", "q/history")) == {"purged": 2}
    assert await api.code("GET", f"q/history/{message_id}") == (404, "not_found.message")
    assert await page(api) == (["c"], (3, 1, 3))
