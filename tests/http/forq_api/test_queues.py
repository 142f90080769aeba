"""Looking at queues and messages: our additions beside contract F. None of it changes anything."""

from uuid import UUID

import trio
import trio.testing

from forq_trio.http.pages import page_of
from forq_trio.model import limits
from forq_trio.model.access.types import EVERYBODY, Principal, Scope
from support.access import access_token
from support.actors import all_idle
from support.forq_api import START_MS, Api, json_of

UNKNOWN_ID = "0199164b-4dea-78d9-9b4c-c699d5037962"


async def test_the_list_of_queues(api: Api):
    assert json_of(await api.call("GET", "/api/v1/queues")) == {"queues": [], "next": None}
    await api.send("1", "2", "3", queue="b")
    await api.send("1", queue="a")
    await api.call("POST", "b/messages", {"content": "later", "processAfter": START_MS + 1})
    await api.receive("b")
    await api.broker.pause("a")
    empty = {
        "isDlq": False,
        "ready": 0,
        "delayed": 0,
        "processing": 0,
        "failed": 0,
        "held": 0,
        "waiting": 0,
        "paused": False,
        "oldestReadyAgeMs": None,
        "level": "fine",
        "verdict": "Healthy",
        "sendsRefused": None,
        "table": None,
    }
    assert json_of(await api.call("GET", "/api/v1/queues")) == {
        "queues": [
            {"queue": "a", **empty, "ready": 1, "bytes": 1, "paused": True},
            {"queue": "b", **empty, "ready": 2, "delayed": 1, "processing": 1, "bytes": 8},
        ],
        "next": None,
    }


async def test_a_dead_letter_queue_says_so(api: Api):
    await api.send("m", queue="a")
    assert json_of(await api.call("GET", "a-dlq"))["isDlq"] is True


async def test_one_queue(api: Api):
    await api.send("1", "2")
    api.clock.ms += 1_234
    assert json_of(await api.call("GET", "q")) == {
        "queue": "q",
        "isDlq": False,
        "ready": 2,
        "delayed": 0,
        "processing": 0,
        "failed": 0,
        "held": 0,
        "bytes": 2,
        "waiting": 0,
        "paused": False,
        "oldestReadyAgeMs": 1_234,
        "level": "fine",
        "verdict": "Healthy",
        "sendsRefused": None,
        "table": None,
    }
    await api.broker.pause("q")
    assert json_of(await api.call("GET", "q"))["paused"] is True


async def test_a_queue_nobody_used_is_not_found(api: Api):
    for method, path in (
        *(("GET", path) for path in ("", "/health", "/settings", "/export", "/export/partitions")),
        *(("DELETE", path) for path in ("", "/settings")),
        *(("POST", path) for path in ("/pause", "/resume", "/purge")),
    ):
        answer = await api.call(method, f"typo{path}")
        assert answer.status == 404, (method, path)
        assert json_of(answer) == {
            "code": "not_found.queue",
            "field": "queue",
            "message": "there is no queue called typo",
        }
    assert api.broker.known.counts() == api.broker.known.settings() == {}


async def test_so_is_a_dead_letter_queue_of_none(api: Api):
    asked = [("GET", "", b""), ("POST", "/redrives", b'{"filter": {}}')]
    for method, path, body in asked:
        assert await api.code(method, f"typo-dlq/dead-letters{path}", body) == (404, "not_found.queue")
    await api.send("m", queue="typo")
    for method, path, body in asked:
        assert (await api.call(method, f"typo-dlq/dead-letters{path}", body)).status < 300


async def test_receivers_find_a_queue_nobody_used_empty(api: Api):
    """A consumer may start before the first producer (F3)."""
    assert (await api.call("GET", "q/messages?waitMs=0")).status == 204
    assert json_of(await api.call("POST", "q/messages/receive", b"{}")) == {"messages": []}
    assert json_of(await api.call("GET", "q/peek")) == {"messages": []}
    assert api.broker.known.counts() == {}


async def test_a_clock_that_was_set_back_makes_no_negative_age(api: Api):
    await api.send("m")
    api.clock.ms -= 5_000
    assert json_of(await api.call("GET", "q"))["oldestReadyAgeMs"] == 0


async def test_waiting_consumers_are_counted(api: Api):
    async with trio.open_nursery() as nursery:
        for queue in ("q", "q", "other"):
            nursery.start_soon(api.call, "GET", f"{queue}/messages")
        await all_idle()
        assert json_of(await api.call("GET", "q"))["waiting"] == 2
        nursery.cancel_scope.cancel()
    assert await api.code("GET", "q") == (404, "not_found.queue")


async def test_a_ready_message(api: Api):
    await api.send("Grüße")
    (message,) = json_of(await api.call("GET", "q/peek"))["messages"]
    assert UUID(message.pop("id")).version == 7
    assert (
        message.items()
        >= {
            "queue": "q",
            "sequence": 1,
            "status": "ready",
            "content": "Grüße",
            "attempts": 0,
            "priority": limits.PRIORITY_DEFAULT,
            "receivedAt": START_MS,
            "processAfter": START_MS,
            "updatedAt": START_MS,
            "expiresAfter": START_MS + limits.QUEUE_TTL_HOURS_DEFAULT * limits.HOUR_MS,
            "processingStartedAt": None,
            "leaseUntil": None,
            "failureReason": None,
            "sourceQueue": None,
            "lastError": None,
            "attributes": {},
            "group": None,
            "firstReceivedAt": None,
            "maxAttempts": None,
            "ttlMs": None,
            "deadLetterQueue": None,
            "deadLetteredAt": None,
            "sourceAttempts": None,
            "failures": [],
            "bytes": 7,
        }.items()
    )


async def test_a_message_in_process(api: Api):
    await api.send("m")
    message_id = (await api.receive())["id"]
    message = json_of(await api.call("GET", f"q/messages/{message_id.upper()}"))
    assert (message["id"], message["status"], message["attempts"]) == (message_id, "processing", 1)
    assert (message["processingStartedAt"], message["leaseUntil"]) == (
        START_MS,
        START_MS + limits.LEASE_MS_DEFAULT,
    )


async def test_messages_that_are_not_there(api: Api):
    await api.send("m")
    (message,) = json_of(await api.call("GET", "q/peek"))["messages"]
    not_found = (404, "not_found.message")
    assert await api.code("GET", f"q/messages/{UNKNOWN_ID}") == not_found
    assert await api.code("GET", f"other/messages/{message['id']}") == not_found
    assert await api.code("GET", "q/messages/x") == (400, "bad_request.messageId.invalid")
    assert await api.code("GET", f"a%20b/messages/{UNKNOWN_ID}") == (400, "bad_request.queue.invalid_name")


async def test_peek_shows_the_next_messages_and_touches_nothing(api: Api):
    await api.send(*map(str, range(limits.PEEK_DEFAULT + 1)))
    for path, count in (
        ("q/peek", limits.PEEK_DEFAULT),
        ("q/peek?limit=2", 2),
        ("q/peek?order=fifo&limit=3", 3),
    ):
        messages = json_of(await api.call("GET", path))["messages"]
        assert [message["content"] for message in messages] == list(map(str, range(count)))
    assert (await api.receive())["content"] == "0"


async def test_limits_of_peek(api: Api):
    """What else is no number is tested with the reader of queries."""
    for limit in ("1", "100"):
        assert (await api.call("GET", f"q/peek?limit={limit}")).status == 200
    for limit in ("0", "101", "x", "9" * 5_000, "%FF"):
        assert await api.code("GET", f"q/peek?limit={limit}") == (400, "bad_request.limit.out_of_range")


async def test_peek_at_random(api: Api):
    await api.send("1", "2")
    seen = json_of(await api.call("GET", "q/peek?order=shuffle&limit=40"))["messages"]
    assert sorted(message["content"] for message in seen) == ["1", "2"]
    assert await api.code("GET", "q/peek?order=lifo") == (400, "bad_request.order.invalid")


async def test_queue_names_are_checked(api: Api):
    for path in ("", "/peek"):
        assert await api.code("GET", f"a%20b{path}") == (400, "bad_request.queue.invalid_name")


async def test_a_stopped_server_says_so(api: Api):
    await api.send("m")
    api.readers.close()
    assert await api.code("GET", "q") == (503, "forq.stopping")


async def test_the_list_has_pages(api: Api):
    names = [f"queue-{number:04}" for number in range(20)]
    for name in reversed(names):
        await api.send("m", queue=name)
    pages = [
        json_of(await api.call("GET", f"/api/v1/queues?{query}"))
        for query in ("limit=10", "after=queue-0009")
    ]
    assert [[queue["queue"] for queue in page["queues"]] for page in pages] == [names[:10], names[10:]]
    assert [page["next"] for page in pages] == ["queue-0009", None]
    small = json_of(await api.call("GET", "/api/v1/queues?after=queue-0009a&limit=2"))
    assert [queue["queue"] for queue in small["queues"]] == ["queue-0010", "queue-0011"]
    assert small["next"] == "queue-0011"
    for limit in ("0", "1001", "x"):
        assert await api.code("GET", f"/api/v1/queues?limit={limit}") == (
            400,
            "bad_request.limit.out_of_range",
        )


def test_a_page_looks_at_a_bounded_number_of_names(monkeypatch):
    monkeypatch.setattr(limits, "QUEUES_LOOKED_AT_MAX", 3)
    token = access_token("t", "", (Scope.BROWSE,), "*-mine", START_MS)
    names = ["a", "b-mine", "c", "d", "e", "f", "g-mine"]
    assert page_of(names, Principal(token), "", 9) == (["b-mine"], "c")
    assert page_of(names, Principal(token), "c", 9) == ([], "f")
    assert page_of(names, Principal(token), "f", 9) == (["g-mine"], None)
    assert page_of(names, EVERYBODY, "b", 2) == (["b-mine", "c"], "c")
    assert page_of(names, EVERYBODY, "d", 3) == (["e", "f", "g-mine"], None)
    assert page_of([], EVERYBODY, "d", 3) == ([], None)


async def test_the_health_of_a_queue(api: Api):
    healthy = {
        "level": "fine",
        "verdict": "Healthy",
        "explanation": "",
        "remedy": None,
        "remedyValue": None,
        "since": None,
        "sendsRefused": None,
    }
    await api.send("1")
    assert json_of(await api.call("GET", "q/health")) == healthy
    await api.broker.pause("q")
    for _ in range(20):
        api.seconds.value += 1
        api.monitor.sample()
    found = json_of(await api.call("GET", "q/health"))
    assert found == healthy | {
        "level": "paused",
        "verdict": "Paused",
        "explanation": "1 message can be received once it is resumed. It takes messages and delivers none.",
        "remedy": "resume",
    }
    (listed,) = json_of(await api.call("GET", "/api/v1/queues"))["queues"]
    assert (listed["level"], listed["verdict"]) == ("paused", "Paused")
    assert (await api.code("GET", "not%20a%20name/health"))[0] == 400
