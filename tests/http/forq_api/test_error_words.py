"""Every refusal says which part of the request is wrong, what was expected there and what was found."""

from typing import Any

from support.forq_api import ASKING_FOR_MORE, START_MS, Api, blamed, json_of, make_request

INVALID = "bad_request.body.invalid"
UNKNOWN = "bad_request.body.unknown_field"
MANY = [""] * 1_001

BODIES: list[tuple[str, bytes | dict[str, Any], str, str | None, str]] = [
    ("messages", b"", INVALID, None, "the body is empty; it must be JSON"),
    ("messages", b"content=m&a=b", INVALID, None, "the body is form data; it must be JSON"),
    ("messages", b"<a>", INVALID, None, "the body is not JSON: invalid character (byte 0)"),
    ("messages", b'{"content":"m",}', INVALID, None, "the body is not JSON: trailing comma in object (byte 15)"),
    ("messages", b'{"content":"m"', INVALID, None, "the body is not JSON: it ends too early, or has half of a "
        "surrogate pair (\\ud800 to \\udfff)"),
    ("messages", b'{"content":"\xe4"}', INVALID, None, "the body is not UTF-8 (at byte 12)"),
    ("messages", b"[" * 100_000, INVALID, None, "the body must be an object, not a list"),
    ("messages/batch", b'{"messages":[' + b'{"a":' * 100_000, INVALID, None, "the body is nested too deeply"),
    ("messages", b"[]", INVALID, None, "the body must be an object, not a list"),
    ("messages", b"{}", INVALID, "$.content", "content is missing"),
    ("messages", {"content": 1}, INVALID, "$.content", "content must be text, not an integer"),
    ("messages", {"content": "m", "priority": 1.5}, INVALID, "$.priority",
        "priority must be an integer, not a number with a fraction or an exponent"),
    ("messages", {"content": "m", "priority": True}, INVALID, "$.priority",
        "priority must be an integer, not a truth value"),
    ("messages", {"content": "m", "group": 1}, INVALID, "$.group", "group must be text or null, not an integer"),
    ("messages", {"content": "m", "group": "g", "prioritty": 1}, UNKNOWN, "$.prioritty",
        "there is no member 'prioritty' here; did you mean priority?"),
    ("messages", {"content": "m", "group": "g", "qwxyz": 1}, UNKNOWN, "$.qwxyz", "there is no member 'qwxyz' here"),
    ("messages", {"content": "m", "priority": 5_000}, "bad_request.priority.out_of_range", "$.priority",
        "priority must be between 0 and 1000, not 5000"),
    ("messages", {"content": "m", "attributes": {"k": 1}}, INVALID, "$.attributes",
        "every value of attributes must be text, not an integer"),
    ("messages", {"content": "m", "attributes": {"": "v"}}, "bad_request.body.attributes.invalid", "$.attributes",
        "attribute keys have 1 to 64 characters, not 0"),
    ("messages", {"content": "x" * 262_145}, "bad_request.body.content.exceeds_limit", "$.content",
        "the content has 262145 bytes of UTF-8; at most 262144 are allowed"),
    ("messages", {"content": "m", "processAfter": START_MS // 1_000}, "bad_request.body.processAfter.in_past",
        "$.processAfter", "processAfter lies 1698300000000 ms in the past; at most 10000 are allowed"),
    ("messages", {"content": "m", "deadLetterQueue": "a b"}, "bad_request.body.deadLetterQueue.invalid",
        "$.deadLetterQueue", "the queue name is not 1-64 characters of A-Z a-z 0-9 . _ -"),
    ("messages/batch", {"messages": {}}, INVALID, "$.messages", "messages must be a list, not an object"),
    ("messages/batch", {"messages": [{"content": ""}] * 1_001}, "bad_request.body.too_many_messages", "$.messages",
        "messages has at most 1000 entries, not 1001"),
    ("messages/receive", {"order": "lifo"}, INVALID, "$.order", "order must be one of fifo, shuffle, not 'lifo'"),
    ("messages/receive", {"order": "\x1b" * 500}, INVALID, "$.order",
        "order must be one of fifo, shuffle, not '" + "\\x1b" * 24 + "\\x1…'"),
    ("messages/receive", {"max": 101}, "bad_request.max.out_of_range", "$.max",
        "max must be between 1 and 100, not 101"),
    ("messages/ack", {"receipts": MANY}, "bad_request.receipts.out_of_range", "$.receipts",
        "number of receipts must be between 0 and 1000, not 1001"),
    ("messages/nack", {"receipts": [], "reason": "x" * 1_025}, "bad_request.reason.out_of_range", "$.reason",
        "reason has at most 1024 characters, not 1025"),
    ("messages/extend", {"receipts": [], "leaseMs": -1}, "bad_request.leaseMs.out_of_range", "$.leaseMs",
        "leaseMs must be between 0 and 43200000, not -1"),
    ("messages/release", {"receipts": [1]}, INVALID, "$.receipts[0]", "receipts[0] must be text, not an integer"),
]  # fmt: skip


async def test_bodies(api: Api):
    for path, body, code, field, message in BODIES:
        answer = json_of(await api.call("POST", f"q/{path}", body, ASKING_FOR_MORE))
        assert answer == {"code": code, "message": message} | ({} if field is None else {"field": field})


ID = "0199164b-4dea-78d9-9b4c-c699d5037962"
DEAD = "/api/v1/queues/q-dlq/dead-letters"
TOKENS = "/api/v1/tokens"
SETTINGS = "/api/v1/queues/q/settings"
OTHERS: list[tuple[str, str, Any, str, str | None, str]] = [
    ("PUT", SETTINGS, {"order": "filo"}, INVALID, "$.order", "order must be one of fifo, lifo, due, not 'filo'"),
    ("PUT", SETTINGS, {"backOff": {"initialMs": 1, "factr": 2}}, UNKNOWN, "$.backOff.factr",
        "there is no member 'factr' here; did you mean factor?"),
    ("PUT", SETTINGS, {"backOff": "x"}, INVALID, "$.backOff",
        "backOff must be an object or a list or null, not text"),
    ("POST", TOKENS, {"name": "t", "scopes": ["consum"]}, INVALID, "$.scopes[0]",
        "scopes[0] must be one of produce, consume, browse, redrive, cancel, schedule, admin, not 'consum'"),
    ("POST", f"{DEAD}/redrive", {"ids": [ID], "target": "a b"}, "bad_request.queue.invalid_name", "$.target",
        "the queue name is not 1-64 characters of A-Z a-z 0-9 . _ -"),
    ("POST", f"{DEAD}/redrives", {"filter": {"minAgeMs": -1}}, "bad_request.out_of_range", "$.filter.minAgeMs",
        "minAgeMs must be between 0 and 316224000000, not -1"),
    ("POST", f"{DEAD}/redrives", {"filter": {"reason": "x" * 1_025}}, "bad_request.out_of_range", "$.filter.reason",
        "reason has at most 1024 characters, not 1025"),
    ("POST", f"{DEAD}/redrives", {"filter": {"attributes": {"": "v"}}}, "bad_request.body.attributes.invalid",
        "$.filter.attributes", "attribute keys have 1 to 64 characters, not 0"),
    ("GET", f"{DEAD}?reason={'x' * 1_025}", b"", "bad_request.out_of_range", "reason",
        "reason has at most 1024 characters, not 1025"),
    ("GET", f"{DEAD}?limit=many", b"", "bad_request.limit.out_of_range", "limit",
        "limit must be between 1 and 100, not 'many'"),
    ("GET", f"{DEAD}?attribute=x", b"", "bad_request.attribute.invalid", "attribute",
        "an attribute to look for is not written key:value"),
    ("GET", "/api/v1/queues/q/peek?order=lifo", b"", "bad_request.order.invalid", "order",
        "order must be one of fifo, shuffle, not 'lifo'"),
    ("GET", "/api/v1/queues/q/dead-letters", b"", "bad_request.dlq_only_operation", "queue",
        "only the messages of a dead-letter queue can be redriven, edited or deleted"),
    ("GET", "/api/v1/queues/a%20b", b"", "bad_request.queue.invalid_name", "queue",
        "the queue name is not 1-64 characters of A-Z a-z 0-9 . _ -"),
    ("GET", "/api/v1/queues/q/messages/x", b"", "bad_request.messageId.invalid", "messageId",
        "the message id is not a UUID"),
    ("GET", "/api/v1/nothing", b"", "not_found.path", None, "nothing is served at /api/v1/nothing"),
    ("PATCH", "/api/v1/queues", b"", "method_not_allowed", None, "this path takes GET, HEAD, OPTIONS, not PATCH"),
    ("POST", "/api/v1/queues/q/pause?forever", b"", "bad_request.query.unknown_parameter", "forever",
        "there is no parameter 'forever' here"),
]  # fmt: skip


async def test_other_requests(api: Api):
    for method, path, body, code, field, message in OTHERS:
        answer = json_of(await api.call(method, path, body))
        assert answer == {"code": code, "message": message} | ({} if field is None else {"field": field})


async def test_a_request_without_a_key_is_told_which_one(api: Api):
    told = "the request has no key: send FORQ_AUTH_SECRET, or an access token, as X-API-Key"
    for headers, message in (
        ({}, told),
        ({b"authorization": b"Bearer "}, told),
        ({b"x-api-key": b"wrong"}, "the key is missing or wrong, or its token expired or was revoked"),
    ):
        answer = json_of(await api.handler(make_request("GET", "/api/v1/queues", headers=headers)))
        assert answer == {"code": "unauthorized", "message": message}


async def test_no_answer_repeats_a_key(api: Api):
    wrong = "a-secret-that-is-wrong"
    response = await api.handler(
        make_request("GET", "/api/v1/queues", headers={b"x-api-key": wrong.encode()})
    )
    assert response.status == 401
    assert wrong.encode() not in response.body + repr(response.headers).encode()


async def test_results_of_a_batch_say_it_too(api: Api):
    messages = [
        {"content": "m"},
        {"content": "m", "priority": -1},
        {"content": "m", "prio": 1},
        {"content": []},
    ]
    response = await api.call("POST", "q/messages/batch", {"messages": messages})
    stored, *refused = json_of(response)["results"]
    assert stored.keys() == {"id", "sequence"}
    assert [blamed(each)["field"] for each in refused] == ["$.priority", "$.prio", "$.content"]
    assert refused[0]["message"] == "priority must be between 0 and 1000, not -1"


async def test_every_route_of_ours_refuses_unknown_parameters(api: Api):
    ours = [route for route in api.routes if route.parameters is not None]
    forqs = {
        "/api/v1/queues/{queue}/messages",
        "/api/v1/queues/{queue}/messages/{messageId}/ack",
        "/api/v1/queues/{queue}/messages/{messageId}/nack",
    }
    assert {route.path for route in api.routes} - {route.path for route in ours} == (
        forqs | {"/healthcheck", "/metrics"}
    )
    for route in ours:
        path = (
            route.path.replace("{queue}", "q-dlq")
            .replace("{messageId}", "x")
            .replace("{", "")
            .replace("}", "")
        )
        response = await api.call(route.method, f"{path}?waitms=1")
        assert response.status == 400, path
        answer = json_of(response)
        assert (answer["code"], answer["field"]) == ("bad_request.query.unknown_parameter", "waitms")


async def test_compressed_bodies_are_refused(api: Api):
    for encoding in (b"gzip", b"br", b"identity, gzip", b"GZIP", b"x"):
        headers = ASKING_FOR_MORE | {b"content-encoding": encoding}
        for path in ("q/messages", "q/messages/batch", "q/settings"):
            method = "PUT" if "set" in path else "POST"
            response = await api.call(method, path, b'{"content":"m"}', headers)
            assert (response.status, blamed(json_of(response))["field"]) == (415, "Content-Encoding")
            assert (b"accept-encoding", b"identity") in response.headers
    await api.send("m")
    assert (await api.call("GET", "q", headers=headers)).status == 200


async def test_a_body_may_say_that_it_is_not_compressed(api: Api):
    headers = ASKING_FOR_MORE | {b"content-encoding": b"Identity"}
    assert (await api.call("POST", "q/messages", {"content": "m"}, headers)).status == 204
