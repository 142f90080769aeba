"""Many messages in one request: every range at and past its ends, and that each has a result of its own (Q3)."""

from typing import Any

import msgspec
import pytest

from forq_trio.model import limits
from support.forq_api import START_MS, Api, blamed, json_of

VERBS = ("ack", "nack", "extend", "release")
UNKNOWN_RECEIPT = "00000000-0001-8000-8000-000000000001"
DAY_PAST_MS = START_MS - limits.DAY_MS

MALFORMED = {
    "code": "bad_request.receipt.invalid",
    "message": "the receipt does not have the form of a receipt",
}
GONE = {
    "code": "not_found.message",
    "message": "the receipt is no longer current: its message was settled, removed, changed by its key,"
    " or delivered again",
}


async def results(api: Api, path: str, body: Any) -> list[dict[str, Any]]:
    response = await api.call("POST", path, body)
    assert response.status == 200, response.body
    return json_of(response)["results"]


async def receive(api: Api, **wanted: int) -> list[dict[str, Any]]:
    return json_of(await api.call("POST", "q/messages/receive", wanted))["messages"]


async def test_send_batch_stores_in_order(api: Api):
    stored = await results(api, "q/messages/batch", {"messages": [{"content": str(n)} for n in range(5)]})
    messages = await receive(api, max=10)
    assert [message["content"] for message in messages] == ["0", "1", "2", "3", "4"]
    assert stored == [{"id": message["id"], "sequence": message["sequence"]} for message in messages]


async def test_send_batch_validates_each_alone(api: Api):
    codes = {
        b'{"content":1}': "bad_request.body.invalid",
        b"{}": "bad_request.body.invalid",
        b"null": "bad_request.body.invalid",
        b"[]": "bad_request.body.invalid",
        b'{"content":"m","processAfter":1.5}': "bad_request.body.invalid",
        b'{"content":"m","processAfter":%d}' % DAY_PAST_MS: "bad_request.body.processAfter.in_past",
        b'{"content":"m","processAfter":%d}' % (10 * START_MS): "bad_request.body.processAfter.too_far",
        msgspec.json.encode(
            {"content": "m" * (limits.CONTENT_BYTES_MAX + 1)}
        ): "bad_request.body.content.exceeds_limit",
    }
    good = b'{"content":"good"}'
    body = b'{"messages":[' + good + b"," + b",".join(codes) + b"," + good + b"]}"
    first, *refused, last = await results(api, "q/messages/batch", body)
    assert [blamed(result)["code"] for result in refused] == list(codes.values())
    assert [message["id"] for message in await receive(api, max=10)] == [first["id"], last["id"]]


async def test_send_batch_of_nothing_but_bad_messages_stores_nothing(api: Api):
    assert await results(api, "q/messages/batch", {"messages": [{}]}) == [
        {"code": "bad_request.body.invalid", "field": "$.content", "message": "content is missing"}
    ]
    assert api.broker.known.counts() == {}


@pytest.mark.parametrize("count", [0, limits.PRODUCE_BATCH_MAX])
async def test_send_batch_sizes(api: Api, count: int):
    assert len(await results(api, "q/messages/batch", {"messages": [{"content": "m"}] * count})) == count
    assert sum(counts.ready for counts in api.broker.known.counts().values()) == count


async def test_send_batch_of_too_many(api: Api):
    body = {"messages": [{"content": "m"}] * (limits.PRODUCE_BATCH_MAX + 1)}
    assert await api.code("POST", "q/messages/batch", body) == (400, "bad_request.body.too_many_messages")
    assert api.broker.known.counts() == {}


async def test_send_batch_of_too_much_content(api: Api):
    content = "ü" * (limits.CONTENT_BYTES_MAX // 2)
    most = [{"content": content}] * (limits.PRODUCE_BATCH_BYTES_MAX // limits.CONTENT_BYTES_MAX)
    answer = (413, "bad_request.body.content.exceeds_limit")
    assert await api.code("POST", "q/messages/batch", {"messages": [*most, {"content": "m"}]}) == answer
    assert api.broker.known.counts() == {}
    assert len(await results(api, "q/messages/batch", {"messages": most})) == len(most)


RANGES = [
    ("receive", "max", 1, limits.RECEIVE_BATCH_MAX),
    ("receive", "waitMs", 0, limits.WAIT_MS_MAX),
    ("receive", "leaseMs", 0, limits.LEASE_MS_MAX),
    ("nack", "delayMs", 0, limits.NACK_DELAY_MS_MAX),
    ("nack", "maxAttempts", 1, limits.MAX_ATTEMPTS_MAX),
    ("extend", "leaseMs", 0, limits.LEASE_MS_MAX),
    ("release", "delayMs", 0, limits.NACK_DELAY_MS_MAX),
]


@pytest.mark.parametrize(("verb", "member", "low", "high"), RANGES)
async def test_ranges(api: Api, verb: str, member: str, low: int, high: int):
    others = {} if verb == "receive" else {"receipts": []}
    begin = b"" if verb == "receive" else b'"receipts":[],'
    for value in (low, low + 1, high - 1, high):
        await api.send("so that nobody waits")
        assert (await api.call("POST", f"q/messages/{verb}", {**others, member: value})).status == 200
    for value in (low - 1, high + 1, -(2**63), 2**63, 2**64, 10**300):
        body = b'{%b"%b":%d}' % (begin, member.encode(), value)
        assert await api.code("POST", f"q/messages/{verb}", body) == (
            400,
            f"bad_request.{member}.out_of_range",
        )
    for text in (b'"1"', b"1.5", b"1.0", b"1e1", b"true", b"[1]", b"{}", b"1" + b"0" * 5_000, b"-", b"01"):
        body = b'{%b"%b":%b}' % (begin, member.encode(), text)
        assert await api.code("POST", f"q/messages/{verb}", body) == (400, "bad_request.body.invalid")


async def test_range_of_reason(api: Api):
    for length in (0, 1, limits.REASON_LENGTH_MAX):
        assert await results(api, "q/messages/nack", {"receipts": [], "reason": "ü" * length}) == []
    body = {"receipts": [], "reason": "r" * (limits.REASON_LENGTH_MAX + 1)}
    assert await api.code("POST", "q/messages/nack", body) == (400, "bad_request.reason.out_of_range")
    assert await api.code("POST", "q/messages/nack", {"receipts": [], "reason": 1}) == (
        400,
        "bad_request.body.invalid",
    )


@pytest.mark.parametrize("verb", VERBS)
async def test_number_of_receipts(api: Api, verb: str):
    for count in (0, 1, limits.RECEIPTS_BATCH_MAX):
        assert len(await results(api, f"q/messages/{verb}", {"receipts": [UNKNOWN_RECEIPT] * count})) == count
    body = {"receipts": [UNKNOWN_RECEIPT] * (limits.RECEIPTS_BATCH_MAX + 1)}
    assert await api.code("POST", f"q/messages/{verb}", body) == (400, "bad_request.receipts.out_of_range")


@pytest.mark.parametrize("verb", VERBS)
async def test_each_receipt_has_its_own_result(api: Api, verb: str):
    await api.send("1", "2")
    good = [message["receipt"] for message in await receive(api, max=2)]
    settled = await results(
        api, f"q/messages/{verb}", {"receipts": [good[0], "no receipt", UNKNOWN_RECEIPT, "", good[1]]}
    )
    more = {"leaseUntil": START_MS + limits.LEASE_MS_DEFAULT} if verb == "extend" else {}
    assert settled == [
        {"receipt": good[0], "ok": True, **more},
        {"receipt": "no receipt", "ok": False, **MALFORMED},
        {"receipt": UNKNOWN_RECEIPT, "ok": False, **GONE},
        {"receipt": "", "ok": False, **MALFORMED},
        {"receipt": good[1], "ok": True, **more},
    ]


async def test_what_a_settlement_says_arrives(api: Api):
    await api.send("m")
    (message,) = await receive(api, leaseMs=1_500)
    assert message["leaseUntil"] == START_MS + 1_500
    body = {"receipts": [message["receipt"]], "leaseMs": limits.LEASE_MS_MAX}
    (extended,) = await results(api, "q/messages/extend", body)
    assert extended["leaseUntil"] == START_MS + limits.LEASE_MS_MAX
    body = {"receipts": [message["receipt"]], "delayMs": 7, "reason": "no ink"}
    await results(api, "q/messages/nack", body)
    info = json_of(await api.call("GET", f"q/messages/{message['id']}"))
    assert (info["status"], info["processAfter"], info["lastError"]) == ("delayed", START_MS + 7, "no ink")
    api.clock.ms += 7
    (again,) = await receive(api)
    await results(api, "q/messages/release", {"receipts": [again["receipt"]], "delayMs": 5})
    info = json_of(await api.call("GET", f"q/messages/{message['id']}"))
    assert (info["attempts"], info["processAfter"]) == (1, START_MS + 12)


async def test_the_answer_of_a_nack_says_what_became_of_the_message(api: Api):
    await api.send("m")
    for bound, failed in ((2, {}), (None, {"failed": True})):
        (message,) = await receive(api)
        body = {"receipts": [message["receipt"]], "delayMs": 0, "maxAttempts": bound}
        assert await results(api, "q/messages/nack", body) == [
            {"receipt": message["receipt"], "ok": True, **failed}
        ]


async def test_queue_names_are_checked_even_if_there_is_nothing_to_do(api: Api):
    bodies: dict[str, Any] = {"batch": {"messages": []}, "receive": {}}
    for verb in ("batch", "receive", *VERBS):
        body = bodies.get(verb, {"receipts": []})
        answer = await api.code("POST", f"a%20b/messages/{verb}", body)
        assert answer == (400, "bad_request.queue.invalid_name"), verb


async def test_receipts_of_the_wrong_type(api: Api):
    for verb in VERBS:
        for receipts in (b"null", b'"x"', b"[1]", b"[null]", b"{}", b"0"):
            body = b'{"receipts":' + receipts + b"}"
            answer = await api.code("POST", f"q/messages/{verb}", body)
            assert answer == (400, "bad_request.body.invalid"), (verb, receipts)
