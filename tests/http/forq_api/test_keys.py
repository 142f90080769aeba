"""Keyed messages over HTTP: paths, bodies, answers, ranges and refusals.

What becomes of an offer (contract D) is tested in `tests/conformance` and `tests/faces`.
"""

from typing import Any

import msgspec
import pytest

from forq_trio.model import limits
from support.forq_api import ASKING_FOR_MORE, START_MS, Api, blamed, json_of

PATH = "q/keys/k"
HOUR_MS = 3_600_000


async def offer(api: Api, path: str = PATH, content: str = "m", **members: Any) -> tuple[int, dict[str, Any]]:
    response = await api.call("PUT", path, {"content": content, **members})
    return response.status, json_of(response)


async def results(api: Api, *messages: Any) -> list[dict[str, Any]]:
    response = await api.call("POST", "q/keys", {"messages": list(messages)})
    assert response.status == 200, response.body
    return json_of(response)["results"]


async def shown(api: Api, path: str = PATH) -> dict[str, Any]:
    response = await api.call("GET", path)
    assert response.status == 200, response.body
    return json_of(response)


async def take(api: Api) -> dict[str, Any]:
    (message,) = json_of(await api.call("POST", "q/messages/receive", {}))["messages"]
    return message


async def acked(api: Api, receipt: str) -> bool:
    response = await api.call("POST", "q/messages/ack", {"receipts": [receipt]})
    return json_of(response)["results"][0]["ok"]


async def test_d03_and_d04_an_offer_is_created_then_updated(api: Api):
    status, created = await offer(api, delayMs=HOUR_MS)
    assert (status, created.keys()) == (201, {"outcome", "id", "sequence", "processAfter", "revision"})
    assert (created["outcome"], created["processAfter"]) == ("created", START_MS + HOUR_MS)
    status, updated = await offer(api, content="n", delayMs=HOUR_MS)
    assert (status, updated["outcome"]) == (200, "updated")
    assert (updated["id"], updated["sequence"]) == (created["id"], created["sequence"])
    assert updated["revision"] > created["revision"]
    message = (await shown(api))["message"]
    assert (message["content"], message["status"]) == ("n", "delayed")
    assert message["keyed"] == {
        "key": "k",
        "kind": "",
        "revision": updated["revision"],
        "mode": "createOrUpdate",
        "offers": 2,
        "firstOfferAt": START_MS,
        "lastOfferAt": START_MS,
        "maxWaitUntil": None,
    }


async def test_an_offer_that_changes_nothing_is_answered_too(api: Api):
    assert (await offer(api, mode="createIfAbsent", delayMs=HOUR_MS))[0] == 201
    status, ignored = await offer(api, content="n", mode="createIfAbsent")
    assert (status, ignored["outcome"], ignored["processAfter"]) == (200, "ignored", START_MS + HOUR_MS)
    response = await api.call("PUT", PATH, {"content": "n", "mode": "create"})
    assert (response.status, blamed(json_of(response))) == (409, {"code": "conflict.key_exists"})


async def test_what_waits_is_shown_beside_the_one_in_process(api: Api):
    _, first = await offer(api)
    await take(api)
    status, waits = await offer(api, content="n", mode="onceMore")
    assert (status, waits["outcome"], waits["onceMore"], waits["id"]) == (201, "created", True, first["id"])
    found = await shown(api)
    assert (found["message"]["content"], found["onceMore"]["content"]) == ("m", "n")


@pytest.mark.parametrize("kind", ["", "mail"])
async def test_receives_have_key_and_kind_and_others_have_neither(api: Api, kind: str):
    await offer(api, f"{PATH}?kind={kind}")
    await api.send("without")
    keyed = {"key": "k"} | ({"kind": kind} if kind else {})
    for answer in (
        json_of(await api.call("POST", "q/messages/receive", {"max": 2, "peek": True}))["messages"],
        json_of(await api.call("POST", "q/messages/receive", {"max": 2}))["messages"],
    ):
        found = [{name: each[name] for name in ("key", "kind") if name in each} for each in answer]
        assert found == [keyed, {}]
    await offer(api, "q/keys/l?kind=x")
    full = json_of(await api.call("GET", "q/messages", headers=ASKING_FOR_MORE))
    assert (full["key"], full["kind"]) == ("l", "x")
    await offer(api, "q/keys/n?kind=x")
    assert json_of(await api.call("GET", "q/messages")).keys() == {"id", "content", "receipt"}


PATHS = [
    ("a%2Fb", "a/b"),
    ("%2E%2E", ".."),
    ("..", ".."),
    (".", "."),
    ("%252F", "%2F"),
    ("%25", "%"),
    ("%", "%"),
    ("%zz", "%zz"),
    ("a+b", "a+b"),
    ("%20%22%27%5C%5F", " \"'\\_"),
    ("k%C3%A4se", "käse"),
    ("%F0%9F%98%80", "😀"),
    ("%7F%09%0A", "\x7f\t\n"),
    ("messages", "messages"),
    ("%F0%9F%98%80" * limits.KEY_LENGTH_MAX, "😀" * limits.KEY_LENGTH_MAX),
    ("k" * limits.KEY_LENGTH_MAX, "k" * limits.KEY_LENGTH_MAX),
]


async def test_d08_a_key_in_a_path_is_decoded_once(api: Api):
    for path, key in PATHS:
        assert (await offer(api, f"q/keys/{path}"))[0] == 201, path
        assert (await take(api))["key"] == key
        assert (await shown(api, f"q/keys/{path}"))["message"]["keyed"]["key"] == key
        (result,) = await results(api, {"key": key, "content": "m"})
        assert result["outcome"] == "ignored"
        assert (await api.call("DELETE", f"q/keys/{path}")).status == 204
        assert await api.code("DELETE", f"q/keys/{path}") == (404, "not_found.key")


async def test_d08_a_key_that_is_none_is_refused(api: Api):
    for path in ("", "%00", "a%00b", "k" * (limits.KEY_LENGTH_MAX + 1), "%FF", "%C3", "%ED%A0%80"):
        for method, body in (
            ("PUT", {"content": "m"}),
            ("GET", b""),
            ("PATCH", {"delayMs": 1}),
            ("DELETE", b""),
        ):
            response = await api.call(method, f"q/keys/{path}", body)
            assert response.status == 400, (method, path)
            assert blamed(json_of(response)) == {"code": "bad_request.key.invalid", "field": "key"}
    assert api.broker.known.counts() == {}


async def test_a_kind_that_is_none_is_refused(api: Api):
    refused = {"code": "bad_request.kind.invalid", "field": "kind"}
    for kind in ("x" * (limits.KIND_LENGTH_MAX + 1), "%00", "%FF"):
        for method, path, body in (
            ("PUT", PATH, {"content": "m"}),
            ("GET", PATH, b""),
            ("PATCH", PATH, {"delayMs": 1}),
            ("DELETE", PATH, b""),
            ("GET", "q/keys", b""),
            ("DELETE", "q/keys", b""),
        ):
            response = await api.call(method, f"{path}?kind={kind}", body)
            assert (response.status, blamed(json_of(response))) == (400, refused), method
    assert (await offer(api, f"{PATH}?kind={'x' * limits.KIND_LENGTH_MAX}"))[0] == 201


async def test_a_body_that_is_none_is_refused(api: Api):
    for members, code, field in (
        ({"content": 1}, "bad_request.body.invalid", "$.content"),
        ({"key": "k"}, "bad_request.body.unknown_field", "$.key"),
        ({"kind": "k"}, "bad_request.body.unknown_field", "$.kind"),
        ({"deduplicationId": "d"}, "bad_request.body.unknown_field", "$.deduplicationId"),
        ({"mode": "upsert"}, "bad_request.body.invalid", "$.mode"),
        ({"mode": None}, "bad_request.body.invalid", "$.mode"),
        ({"mode": "debounce"}, "bad_request.body.invalid", "$.delayMs"),
        ({"mode": "debounce", "processAfter": START_MS + 1}, "bad_request.body.invalid", "$.delayMs"),
        ({"maxWaitMs": 1}, "bad_request.body.invalid", "$.maxWaitMs"),
        (
            {"delayMs": 1, "processAfter": START_MS},
            "bad_request.body.processAfter.with_delayMs",
            "$.processAfter",
        ),
        ({"processAfter": START_MS - 10_001}, "bad_request.body.processAfter.in_past", "$.processAfter"),
        (
            {"content": "m" * (limits.CONTENT_BYTES_MAX + 1)},
            "bad_request.body.content.exceeds_limit",
            "$.content",
        ),
        ({"deadLetterQueue": "a b"}, "bad_request.body.deadLetterQueue.invalid", "$.deadLetterQueue"),
    ):
        response = await api.call("PUT", PATH, {"content": "m"} | members)
        assert (response.status, blamed(json_of(response))) == (400, {"code": code, "field": field}), members
        if not {"key", "kind"} & members.keys():  # which a batch has
            (result,) = await results(api, {"key": "k", "content": "m"} | members)
            assert blamed(result) == {"code": code, "field": field}
    assert api.broker.known.counts() == {}


@pytest.mark.parametrize(
    ("member", "low", "high"),
    [
        ("maxWaitMs", 1, limits.MAX_WAIT_MS_MAX),
        ("delayMs", 0, limits.DELAY_MS_MAX),
        ("priority", limits.PRIORITY_MIN, limits.PRIORITY_MAX),
        ("ttlMs", 1, limits.TTL_MS_MAX),
        ("maxAttempts", 1, limits.MAX_ATTEMPTS_MAX),
    ],
)
async def test_ranges(api: Api, member: str, low: int, high: int):
    others = {"content": "m", "mode": "debounce", "delayMs": 0}
    for value in (low, low + 1, high - 1, high):
        response = await api.call("PUT", PATH, others | {member: value})
        assert response.status in (200, 201), response.body
    for value in (low - 1, high + 1, -(2**63), 2**63 - 1):
        response = await api.call("PUT", PATH, others | {member: value})
        refused = {"code": f"bad_request.{member}.out_of_range", "field": f"$.{member}"}
        assert (response.status, blamed(json_of(response))) == (400, refused)
        (result,) = await results(api, {"key": "k"} | others | {member: value})
        assert blamed(result) == refused
    for value in (2**63, 2**64):  # no integer that could be stored
        assert (await api.call("PUT", PATH, others | {member: value})).status == 400
    for text in (b'"1"', b"1.5", b"true", b"[]"):
        body = msgspec.json.encode(others)[:-1] + b',"%b":%b}' % (member.encode(), text)
        assert await api.code("PUT", PATH, body) == (400, "bad_request.body.invalid")


async def test_a_body_that_is_too_long_is_refused(api: Api):
    body = b'{"content":"m"' + b" " * limits.SEND_BODY_BYTES_MAX + b"}"
    assert await api.code("PUT", PATH, body) == (413, "bad_request.body.content.exceeds_limit")
    assert api.broker.known.counts() == {}


@pytest.mark.parametrize("count", [0, limits.OFFER_BATCH_MAX])
async def test_d10_to_d14_sizes_of_a_batch(api_on_sqlite: Api, count: int):
    api = api_on_sqlite
    stored = await results(api, *({"key": str(n), "content": "m"} for n in range(count)))
    assert [each["outcome"] for each in stored] == ["created"] * count
    assert [each["sequence"] for each in stored] == sorted({each["sequence"] for each in stored})
    body = {"messages": [{"key": "k", "content": "m"}] * (limits.OFFER_BATCH_MAX + 1)}
    assert await api.code("POST", "q/keys", body) == (400, "bad_request.body.too_many_messages")


async def test_a_batch_of_too_much_content(api: Api):
    content = "ü" * (limits.CONTENT_BYTES_MAX // 2)
    count = limits.PRODUCE_BATCH_BYTES_MAX // limits.CONTENT_BYTES_MAX
    most = [{"key": str(n), "content": content} for n in range(count)]
    answer = (413, "bad_request.body.content.exceeds_limit")
    assert await api.code("POST", "q/keys", {"messages": [*most, {"key": "k", "content": "m"}]}) == answer
    assert api.broker.known.counts() == {}
    assert len(await results(api, *most)) == count


async def test_each_of_a_batch_has_its_result(api: Api):
    told = await results(
        api,
        {"key": "a", "content": "1"},
        {"key": "a", "content": "1"},
        {"key": "a", "content": "3", "mode": "create"},
        {"key": "a", "content": "3", "kind": "other"},
        {"key": "", "content": "x"},
        {"content": "x"},
        {"key": "a", "content": "x", "unknown": 1},
        {"key": "a", "content": "x", "kind": "x" * (limits.KIND_LENGTH_MAX + 1)},
    )
    assert [each.get("outcome") or each["code"] for each in told] == [
        "created",
        "ignored",
        "conflict.key_exists",
        "created",
        "bad_request.key.invalid",
        "bad_request.body.invalid",
        "bad_request.body.unknown_field",
        "bad_request.kind.invalid",
    ]
    assert [each.get("field") for each in told[4:]] == ["$.key", "$.key", "$.unknown", "$.kind"]


async def test_a_batch_that_is_none(api: Api):
    for messages in (None, {}):
        assert await api.code("POST", "q/keys", {"messages": messages}) == (400, "bad_request.body.invalid")
    assert [each["code"] for each in await results(api, 1, "m", None)] == ["bad_request.body.invalid"] * 3
    assert await api.code("POST", "q/keys", {"messages": [], "more": 1}) == (
        400,
        "bad_request.body.unknown_field",
    )


async def test_d32_a_key_is_shown_while_its_message_is_there(api: Api):
    assert await api.code("GET", PATH) == (404, "not_found.key")
    await offer(api)
    receipt = (await take(api))["receipt"]
    assert (await shown(api))["message"]["status"] == "processing"
    assert await acked(api, receipt)
    assert await api.code("GET", PATH) == (404, "not_found.key")


async def test_d33_a_revision_is_removed_only_if_it_is_the_latest(api: Api):
    _, first = await offer(api)
    await take(api)
    _, second = await offer(api, content="n")
    missing = (404, "not_found.key")
    assert await api.code("DELETE", f"{PATH}?revision={first['revision']}") == missing
    assert await api.code("DELETE", f"{PATH}?revision={second['revision']}&kind=x") == missing
    assert (await api.call("DELETE", f"{PATH}?revision={second['revision']}")).status == 204
    for revision in ("0", "-1", "x", "", str(limits.SEQUENCE_MAX + 1), "9" * 5_000):
        assert await api.code("DELETE", f"{PATH}?revision={revision}") == (400, "bad_request.out_of_range")
    assert await api.code("DELETE", f"{PATH}?revision={limits.SEQUENCE_MAX}") == missing


async def test_d34_a_key_is_dropped_in_process_too(api: Api):
    await offer(api)
    await take(api)
    await offer(api, content="n", mode="onceMore")
    assert (await api.call("DELETE", f"{PATH}?onceMore=true")).status == 204
    assert (await shown(api))["onceMore"] is None
    assert await api.code("DELETE", f"{PATH}?onceMore=true") == (404, "not_found.key")
    assert (await api.call("DELETE", PATH)).status == 204
    for query in ("onceMore=yes", "onceMore=", "revision=1&onceMore=true"):
        assert await api.code("DELETE", f"{PATH}?{query}") == (400, "bad_request.onceMore.invalid")


async def test_d35_all_of_a_kind_are_dropped_with_the_phrase_alone(api: Api):
    await results(
        api, *({"key": str(n), "kind": kind, "content": "m"} for n in range(3) for kind in ("", "a"))
    )
    await api.send("without a key")
    for query in (
        "kind=a",
        "kind=a&confirm=",
        "kind=a&confirm=Q",
        "kind=a&confirm=%FF",
        "kind=a&confirm=q%20",
    ):
        assert await api.code("DELETE", f"q/keys?{query}") == (400, "bad_request.confirm.invalid")
    assert api.broker.known.counts_of("q").total == 7
    assert json_of(await api.call("DELETE", "q/keys?kind=a&confirm=q")) == {"dropped": 3}
    assert json_of(await api.call("DELETE", "q/keys?kind=a&confirm=q")) == {"dropped": 0}
    assert api.broker.known.counts_of("q").total == 4
    assert await api.code("DELETE", "nobody/keys?confirm=nobody") == (404, "not_found.queue")


async def test_a_due_time_is_changed_and_nothing_else(api: Api):
    _, created = await offer(api, delayMs=HOUR_MS, priority=7)
    response = await api.call("PATCH", PATH, {"delayMs": 5})
    moved = json_of(response)
    assert (response.status, moved["outcome"], moved["processAfter"]) == (200, "updated", START_MS + 5)
    message = (await shown(api))["message"]
    assert (message["content"], message["priority"], message["id"]) == ("m", 7, created["id"])
    assert json_of(await api.call("PATCH", PATH, {"processAfter": START_MS}))["processAfter"] == START_MS
    await take(api)
    assert await api.code("PATCH", PATH, {"delayMs": 5}) == (409, "conflict.message_in_flight")
    assert await api.code("PATCH", PATH, {"delayMs": 5, "onceMore": True}) == (404, "not_found.key")
    assert await api.code("PATCH", "q/keys/other", {"delayMs": 5}) == (404, "not_found.key")


async def test_a_due_time_that_is_none(api: Api):
    await offer(api, delayMs=HOUR_MS)
    for body, code in (
        ({}, "bad_request.body.invalid"),
        ({"content": "m"}, "bad_request.body.unknown_field"),
        ({"delayMs": 1, "processAfter": START_MS}, "bad_request.body.processAfter.with_delayMs"),
        ({"delayMs": -1}, "bad_request.delayMs.out_of_range"),
        ({"delayMs": limits.DELAY_MS_MAX + 1}, "bad_request.delayMs.out_of_range"),
        ({"processAfter": START_MS - 10_001}, "bad_request.body.processAfter.in_past"),
        ({"delayMs": 1, "onceMore": 1}, "bad_request.body.invalid"),
    ):
        assert await api.code("PATCH", PATH, body) == (400, code), body
    assert (await shown(api))["message"]["processAfter"] == START_MS + HOUR_MS


async def test_keys_are_listed_page_by_page(api: Api):
    await results(api, *({"key": f"b/{n}", "content": "m"} for n in range(5)), {"key": "a", "content": "m"})
    await offer(api, "q/keys/b%2F9?kind=z")
    await api.send("without a key")

    async def listed(query: str = "") -> tuple[list[str], str | None]:
        page = json_of(await api.call("GET", f"q/keys{query}"))
        return [each["keyed"]["key"] for each in page["messages"]], page["next"]

    assert (await listed())[0] == ["a", *(f"b/{n}" for n in range(5)), "b/9"]
    first, after = await listed("?prefix=b%2F&limit=3")
    assert first == ["b/0", "b/1", "b/2"]
    assert after is not None
    assert await listed(f"?prefix=b%2F&after={after.replace(' ', '%20')}") == (["b/3", "b/4", "b/9"], None)
    assert await listed("?kind=z") == (["b/9"], None)
    assert await listed("?prefix=%25") == ([], None)
    for query, code in (
        ("limit=0", "bad_request.limit.out_of_range"),
        ("limit=101", "bad_request.limit.out_of_range"),
        ("after=x", "bad_request.out_of_range"),
        ("after=%FF", "bad_request.out_of_range"),
        ("prefix=%FF", "bad_request.key.invalid"),
        (f"prefix={'k' * (limits.KEY_LENGTH_MAX + 1)}", "bad_request.key.invalid"),
        ("prefx=a", "bad_request.query.unknown_parameter"),
    ):
        assert await api.code("GET", f"q/keys?{query}") == (400, code), query


async def test_offers_to_queues_that_take_none(api: Api):
    assert await api.code("PUT", "q-dlq/keys/k", {"content": "m"}) == (
        400,
        "bad_request.queue.produce_to_dlq",
    )
    assert await api.code("PUT", "a b/keys/k".replace(" ", "%20"), {"content": "m"}) == (
        400,
        "bad_request.queue.invalid_name",
    )
    assert (await api.call("PUT", "q/settings", {"maxMessages": 1})).status == 200
    assert (await offer(api))[0] == 201
    assert await api.code("PUT", "q/keys/l", {"content": "m"}) == (503, "forq.queue_full")
    assert (await offer(api, content="n"))[1]["outcome"] == "updated"
    (result,) = await results(api, {"key": "l", "content": "m"})
    assert result["code"] == "forq.queue_full"
    assert await api.code("POST", "q-dlq/keys", {"messages": []}) == (400, "bad_request.queue.produce_to_dlq")


async def test_unknown_parameters_are_refused(api: Api):
    for method, path in (("PUT", PATH), ("GET", PATH), ("PATCH", PATH), ("DELETE", PATH), ("POST", "q/keys")):
        code = (400, "bad_request.query.unknown_parameter")
        assert await api.code(method, f"{path}?kinds=x", {"content": "m"}) == code
    allowed = dict((await api.call("OPTIONS", PATH)).headers)[b"allow"]
    assert allowed == b"DELETE, GET, HEAD, OPTIONS, PATCH, PUT"
    assert (await api.call("POST", PATH, {"content": "m"})).status == 405


async def test_a_message_without_a_key_says_so(api: Api):
    await api.send("m")
    (message,) = json_of(await api.call("GET", "q/peek"))["messages"]
    assert message["keyed"] is None
