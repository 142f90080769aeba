"""Stages, publications and exports over HTTP."""

from typing import Any

import msgspec
import trio

from forq_trio.model import limits
from forq_trio.model.publishing.types import Stage
from support.forq_api import START_MS, Api, blamed, json_of


def lines(*messages: Any) -> bytes:
    return b"".join(
        msgspec.json.encode(each if isinstance(each, dict) else {"content": each}) + b"\n"
        for each in messages
    )


async def stage(api: Api, *messages: Any, name: str = "s", page: int = 0, queue: str = "q") -> dict[str, int]:
    response = await api.call("POST", f"{queue}/stages/{name}/pages/{page}", lines(*messages))
    assert response.status == 200, response.body
    return json_of(response)


async def publish(api: Api, *stages: tuple[str, str, int], app: str = "app", version: int = 1):
    named = [{"queue": queue, "stage": name, "pages": pages} for queue, name, pages in stages]
    response = await api.call(
        "POST", "/api/v1/publications", {"app": app, "version": version, "stages": named}
    )
    return response.status, json_of(response)


async def exported(api: Api, query: str = "", queue: str = "q") -> tuple[list[dict[str, Any]], str | None]:
    response = await api.call("GET", f"{queue}/export{query}")
    assert (response.status, response.content_type) == (200, b"application/x-ndjson")
    following = dict(response.headers).get(b"x-forq-next")
    found = [msgspec.json.decode(line) for line in response.body.splitlines()]
    return found, None if following is None else following.decode()


async def contents(api: Api, queue: str = "q") -> list[str]:
    return [message["content"] for message in (await exported(api, queue=queue))[0]]


async def test_pages_are_in_their_queues_when_the_publication_is_answered(api: Api):
    many = [f"{number}" for number in range(600)]
    assert await stage(api, *many[300:], page=1) == {"messages": 300, "bytes": 900}
    assert await stage(api, *many[:300]) == {"messages": 300, "bytes": 790}
    assert await stage(api, "twice", page=0) == {"messages": 300, "bytes": 790}
    assert await stage(api, {"content": "ö", "priority": 3, "delayMs": 5}, queue="p") == {
        "messages": 1,
        "bytes": 2,
    }
    assert await publish(api, ("p", "s", 1), ("q", "s", 2)) == (200, {"published": True, "messages": 601})
    assert await contents(api) == many
    assert await contents(api, "p") == ["ö"]
    assert await publish(api, ("q", "s", 2)) == (200, {"published": False})
    shown = await api.call("GET", "/api/v1/publications/app")
    app = {
        "app": "app",
        "version": 1,
        "publishedAt": START_MS,
        "once": False,
        "madeBy": "",
        "queues": ["p", "q"],
    }
    assert json_of(shown) == app
    assert json_of(await api.call("GET", "/api/v1/publications?limit=1")) == {"apps": [app], "next": 1}
    assert json_of(await api.call("GET", "/api/v1/publications?after=1")) == {"apps": [], "next": None}
    assert (await api.call("DELETE", "/api/v1/publications/app")).status == 204
    assert await api.code("DELETE", "/api/v1/publications/app") == (404, "not_found.publication")
    assert await api.code("GET", "/api/v1/publications?limit=0") == (400, "bad_request.limit.out_of_range")


async def test_nothing_is_published_of_a_stage_that_is_missing(api: Api):
    await stage(api, "a")
    status, answer = await publish(api, ("q", "s", 1), ("q", "t", 1))
    assert (status, blamed(answer)) == (409, {"code": "forq.stage_missing"})
    assert (await api.call("DELETE", "q/stages/s")).status == 204
    assert (await api.call("DELETE", "q/stages/s")).status == 204
    assert (await publish(api, ("q", "s", 1)))[0] == 409
    assert await api.code("GET", "/api/v1/publications/app") == (404, "not_found.publication")


async def test_one_wrong_line_refuses_the_page(api: Api):
    for bad, code, field in (
        (b'{"content": 1}', "bad_request.body.invalid", "$.lines[2].content"),
        (b'{"content": "x"', "bad_request.body.invalid", "$.lines[2]"),
        (b"", "bad_request.body.invalid", "$.lines[2]"),
        (b'{"content": "x", "priorty": 3}', "bad_request.body.unknown_field", "$.lines[2].priorty"),
        (b'{"content": "x", "priority": 1001}', "bad_request.priority.out_of_range", "$.lines[2].priority"),
        (
            b'{"content": "x", "processAfter": 5}',
            "bad_request.body.processAfter.in_past",
            "$.lines[2].processAfter",
        ),
        (b'{"content": "\\ud800"}', "bad_request.body.invalid", "$.lines[2]"),
    ):
        body = lines("a", "b") + bad + b"\n" + lines("c")
        response = await api.call("POST", "q/stages/s/pages/0", body)
        assert response.status == 400, bad
        assert blamed(json_of(response)) == {"code": code, "field": field}
    assert (await publish(api, ("q", "s", 1)))[0] == 409


async def test_paths_that_cannot_be(api: Api):
    for path, code in (
        ("q-dlq/stages/s/pages/0", "bad_request.queue.produce_to_dlq"),
        ("q/stages/%20/pages/0", "bad_request.name.invalid"),
        ("q/stages/s/pages/10000", "bad_request.out_of_range"),
        ("q/stages/s/pages/x", "bad_request.out_of_range"),
    ):
        assert await api.code("POST", path, lines("a")) == (400, code), path


async def test_a_page_is_bounded(api: Api, monkeypatch):
    monkeypatch.setattr(limits, "STAGE_PAGE_MESSAGES_MAX", 3)
    monkeypatch.setattr(limits, "STAGE_PAGE_BYTES_MAX", 100)
    monkeypatch.setattr(limits, "STAGED_BYTES_MAX", 5)
    assert await api.code("POST", "q/stages/s/pages/0", lines(*"abcd")) == (
        400,
        "bad_request.body.too_many_messages",
    )
    assert await api.code("POST", "q/stages/s/pages/0", lines("a" * 100)) == (
        413,
        "bad_request.body.content.exceeds_limit",
    )
    assert await api.code("POST", "q/stages/s/pages/0", lines("a" * 6)) == (503, "forq.staging_full")
    assert await stage(api) == {"messages": 0, "bytes": 0}


async def test_what_cannot_be_published(api: Api, monkeypatch):
    monkeypatch.setattr(limits, "PUBLISH_STAGES_MAX", 1)
    await stage(api, "a", "b")
    assert (await publish(api, ("q", "s", 1), ("q", "t", 1)))[1]["code"] == "bad_request.out_of_range"
    assert (await publish(api, ("q", "s", 0)))[1]["code"] == "bad_request.out_of_range"
    assert (await publish(api, ("q", "s", 1), version=-1))[1]["code"] == "bad_request.out_of_range"
    assert (await publish(api, ("q", "s", 1), app="a b"))[1]["code"] == "bad_request.name.invalid"
    assert (await publish(api, ("q-dlq", "s", 1)))[1]["code"] == "bad_request.queue.produce_to_dlq"
    assert (await api.call("PUT", "q/settings", {"maxMessages": 1})).status == 200
    assert (await publish(api, ("q", "s", 1)))[1]["code"] == "forq.queue_full"


async def test_while_the_disk_is_full_published_messages_wait(api: Api):
    """The publication is durable; its answer comes when there is space again."""
    await api.broker.configure("q", lease_ms=7_000)
    await stage(api, "a")
    answered = trio.Event()

    async def publish_it() -> None:
        published = await api.broker.publish("app", 1, [Stage("q", "s", 1)])
        assert published.messages == 1
        answered.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(publish_it)
        while api.writer.snapshot().staging.first_entry is None:
            await trio.lowlevel.checkpoint()
        api.writer.storage.sends_refused = True
        assert await api.code("POST", "q/stages/t/pages/0", lines("b")) == (503, "forq.storage_full")
        assert await contents(api) in ([], ["a"])
        api.writer.storage.sends_refused = False
        api.clock.ms += limits.DUE_RETRY_MS
        await api.send("z")
        await answered.wait()
    assert sorted(await contents(api)) == ["a", "z"]


async def test_exports_are_pages(api: Api):
    await api.send("a", "b", "c")
    await api.receive()
    first, after = await exported(api, "?limit=2")
    assert [(each["content"], each["state"], each["attempts"]) for each in first] == [
        ("a", "processing", 1),
        ("b", "ready", 0),
    ]
    rest, end = await exported(api, f"?limit=2&after={after}")
    assert ([each["content"] for each in rest], end) == (["c"], None)
    assert await exported(api, f"?until={after}&after={after}") == ([], None)
    partitions = json_of(await api.call("GET", "q/export/partitions?count=2"))
    assert partitions == {"bounds": [{"after": 0, "until": 2}, {"after": 2, "until": 3}], "messages": 3}
    assert await api.code("GET", "q/export?limit=10001") == (400, "bad_request.limit.out_of_range")
    assert await api.code("GET", "q/export?after=-1") == (400, "bad_request.out_of_range")
    assert await api.code("GET", "q/export/partitions?count=0") == (400, "bad_request.out_of_range")
