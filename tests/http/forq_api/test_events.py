"""Lifecycle events over HTTP, and that the clients and the broker read the same."""

from collections.abc import AsyncIterator

import msgspec
import pytest
import trio
import trio.testing

from forq_trio import AsyncForqClient, EventRange, EventsGone, EventsOff, MessageNotFound, OutOfRange, Scope
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.http.message import Response
from forq_trio.jobs.retention import trim_log
from forq_trio.model.limits import WAIT_MS_MAX
from forq_trio.model.logs.types import LogLines
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from oracle.engine import MemoryEngine
from support.actors import until
from support.forq_api import START_MS, Api, json_of, open_api

EVENTS = "/api/v1/events"
ID = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
async def api(tmp_path) -> AsyncIterator[Api]:
    async with open_api(SqliteEngine(str(tmp_path / "f.db"), EngineSettings(events=True), "normal")) as api:
        yield api


async def page(api: Api, query: str = "") -> tuple[list[int], tuple[int, int, int]]:
    """The ids of a page, and next, first and last."""
    response = await api.call("GET", EVENTS + query)
    assert (response.status, response.content_type) == (200, b"application/x-ndjson")
    headers = {name.decode(): int(value) for name, value in response.headers}
    ids = [msgspec.json.decode(line)["id"] for line in response.body.splitlines()]
    return ids, (headers["x-forq-next"], headers["x-forq-first"], headers["x-forq-last"])


async def test_a_page_says_where_to_go_on(api: Api) -> None:
    assert await page(api) == ([], (0, 1, 0))
    await api.send("a", "b", "c")
    await api.send("x", queue="other")
    assert await page(api) == ([1, 2, 3, 4], (4, 1, 4))
    assert await page(api, "?limit=2") == ([1, 2], (2, 1, 4))
    assert await page(api, "?after=2&until=3") == ([3], (3, 1, 4))
    assert await page(api, "?queue=other") == ([4], (4, 1, 4))
    assert await page(api, "?queue=nobody") == ([], (4, 1, 4))
    assert json_of(await api.call("GET", f"{EVENTS}/range")) == {"enabled": True, "first": 1, "last": 4}


async def test_what_retention_removed_is_gone_for_those_who_would_miss_it(api: Api) -> None:
    await api.send("a", "b", "c", "d")
    await trim_log(api.writer, "events", START_MS + 1, 10**9)
    assert await page(api) == ([4], (4, 4, 4))
    assert await page(api, "?after=3") == ([4], (4, 4, 4))
    assert await api.code("GET", f"{EVENTS}?after=2") == (410, "forq.events_gone")


async def test_where_none_are_kept_that_is_said() -> None:
    async with open_api() as api:
        assert await api.code("GET", EVENTS) == (409, "forq.events_off")
        answer = json_of(await api.call("GET", f"{EVENTS}/range"))
        assert answer == {"enabled": False, "first": 1, "last": 0}


async def test_parameters_are_checked(api: Api) -> None:
    for query, code in (
        ("?after=-1", "bad_request.out_of_range"),
        ("?until=x", "bad_request.out_of_range"),
        ("?limit=0", "bad_request.limit.out_of_range"),
        ("?limit=10001", "bad_request.limit.out_of_range"),
        ("?waitMs=30001", "bad_request.waitMs.out_of_range"),
        ("?queue=a%20b", "bad_request.queue.invalid_name"),
        ("?follow=1", "bad_request.query.unknown_parameter"),
    ):
        assert await api.code("GET", EVENTS + query) == (400, code), query


async def test_a_token_for_some_queues_names_one(api: Api) -> None:
    await api.send("m", queue="a")
    await api.send("m", queue="b")
    made = await api.broker.create_token("reader", [Scope.BROWSE], "a*")
    key = {b"x-api-key": made.token.encode()}
    assert (await api.call("GET", EVENTS, headers=key)).status == 403
    assert (await api.call("GET", f"{EVENTS}?queue=b", headers=key)).status == 403
    response = await api.call("GET", f"{EVENTS}?queue=a", headers=key)
    assert (response.status, response.body.count(b"\n")) == (200, 1)


async def test_a_token_sees_no_life_of_a_message_in_queues_that_it_does_not_cover(api: Api) -> None:
    sent = {"content": "m", "deadLetterQueue": "a-dead", "maxAttempts": 1}
    assert (await api.call("POST", "secret/messages", sent)).status == 204
    message = await api.receive("secret")
    assert (await api.call("POST", f"secret/messages/{message['id']}/nack")).status == 204
    path = f"a-dead/messages/{message['id']}/events"
    kinds = [event["kind"] for event in json_of(await api.call("GET", path))]
    assert kinds == ["produced", "delivered", "nacked", "dead_lettered"]
    made = await api.broker.create_token("reader", [Scope.BROWSE], "a*")
    key = {b"x-api-key": made.token.encode()}
    assert json_of(await api.call("GET", path, headers=key)) == []
    leased = await api.receive("a-dead")
    assert (await api.call("POST", f"a-dead/messages/{leased['id']}/ack")).status == 204
    seen = json_of(await api.call("GET", path, headers=key))
    assert [(event["kind"], event["queue"]) for event in seen] == [
        ("delivered", "a-dead"),
        ("acked", "a-dead"),
    ]


async def test_the_timeline_of_a_message_that_has_gone(api: Api) -> None:
    await api.send("m")
    message = await api.receive()
    assert (await api.call("POST", f"q/messages/{message['id']}/ack")).status == 204
    timeline = json_of(await api.call("GET", f"q/messages/{message['id']}/events"))
    assert [event["kind"] for event in timeline] == ["produced", "delivered", "acked"]
    assert await api.code("GET", f"other/messages/{message['id']}/events") == (404, "not_found.message")
    assert await api.code("GET", f"q/messages/{ID}/events") == (404, "not_found.message")


async def test_a_stored_message_without_events_has_an_empty_timeline() -> None:
    async with open_api() as api:
        await api.send("m")
        message = await api.receive()
        assert json_of(await api.call("GET", f"q/messages/{message['id']}/events")) == []


async def waiting(nursery: trio.Nursery, api: Api, query: str) -> list[Response]:
    """Ask, and return what the answer comes into, once the request waits."""
    answers: list[Response] = []

    async def ask() -> None:
        answers.append(await api.call("GET", EVENTS + query))

    nursery.start_soon(ask)
    while not api.writer.announced.events._by_queue:
        await trio.lowlevel.checkpoint()
    assert answers == []
    return answers


async def test_a_wait_ends_with_the_next_event(api: Api) -> None:
    await api.send("a")
    async with trio.open_nursery() as nursery:
        answers = await waiting(nursery, api, f"?after=1&waitMs={WAIT_MS_MAX}")
        await api.send("b")
    assert [msgspec.json.decode(answers[0].body)["id"]] == [2]


async def test_a_wait_for_a_queue_passes_others_by(api: Api) -> None:
    async with trio.open_nursery() as nursery:
        answers = await waiting(nursery, api, f"?queue=b&waitMs={WAIT_MS_MAX}")
        await api.send("m", queue="a")
        await api.send("m", queue="b")
    assert msgspec.json.decode(answers[0].body)["queue"] == "b"


async def test_events_of_other_queues_wake_no_reader(api: Api, monkeypatch) -> None:
    reads = 0
    read = api.broker.lines._read_log

    async def counted(*wanted: object) -> LogLines:
        nonlocal reads
        reads += 1
        return await read(*wanted)

    monkeypatch.setattr(api.broker.lines, "_read_log", counted)
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            answers = await waiting(nursery, api, f"?queue=b&waitMs={WAIT_MS_MAX}")
        for _ in range(20):
            await api.send("m", queue="a")
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert reads <= 3 * 10
        await api.send("m", queue="b")
    assert msgspec.json.decode(answers[0].body)["queue"] == "b"


async def test_waits_end_when_the_server_stops(api: Api) -> None:
    async with trio.open_nursery() as nursery:
        answers = await waiting(nursery, api, f"?waitMs={WAIT_MS_MAX}")
        api.writer.drain_receivers()
    assert (answers[0].status, answers[0].body) == (200, b"")


async def test_a_wait_without_events_ends_in_time(mock_clock) -> None:
    async with open_api(MemoryEngine(EngineSettings(events=True))) as api, trio.open_nursery() as nursery:
        answers = await waiting(nursery, api, "?waitMs=5000")
        mock_clock.jump(4.9)
        await trio.testing.wait_all_tasks_blocked()
        assert answers == []
        mock_clock.jump(0.2)
        await until(lambda: answers != [])
        assert (answers[0].status, answers[0].body) == (200, b"")


class InProcess:
    """Carries a client's requests to the handler."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def exchange(self, request: ClientRequest) -> HttpAnswer:
        headers = {name.lower().encode(): value.encode() for name, value in request.headers}
        answer = await self._api.call(request.method, request.path, request.content, headers)
        named = {name.decode().lower(): value.decode() for name, value in answer.headers}
        return HttpAnswer(answer.status, named, answer.body)

    def close(self) -> None:
        pass


async def test_broker_and_client_read_the_same(api: Api) -> None:
    await api.send("a", "b")
    message = await api.receive()
    async with AsyncForqClient("http://forq", "s" * 32, transport=InProcess(api)) as client:
        for face in (api.broker, client):
            assert await face.event_range() == EventRange(True, 1, 3)
            found = await face.events(1, limit=5)
            assert [(event.id, event.kind) for event in found.events] == [(2, "produced"), (3, "delivered")]
            assert (found.next, found.first, found.last) == (3, 1, 3)
            assert await face.message_events("q", message["id"]) == [
                *(await face.events(limit=1)).events,
                *(await face.events(2, queue="q", until=3)).events,
            ]
            assert await face.events(0, limit=1) == await client.events(0, limit=1)
            with pytest.raises(OutOfRange):
                await face.events(limit=10_001)
            with pytest.raises(MessageNotFound):
                await face.message_events("q", ID)
        await trim_log(api.writer, "events", START_MS + 1, 10**9)
        for face in (api.broker, client):
            with pytest.raises(EventsGone):
                await face.events(1)
    async with open_api() as off, AsyncForqClient("http://x", "s" * 32, transport=InProcess(off)) as client:
        for face in (off.broker, client):
            with pytest.raises(EventsOff):
                await face.events()
