"""Forq's own endpoints as its published clients use them: what they take and answer (contract F1 to F6).

What it means is tested in `tests/conformance`, and in `tests/faces`, which call these endpoints, too.
"""

import pytest

from forq_trio.model import limits
from support.forq_api import SECRET, START_MS, Api, json_of

UNKNOWN_ID = "0199164b-4dea-78d9-9b4c-c699d5037962"
UNKNOWN_RECEIPT = "00000000-0001-8000-8000-000000000001"


def with_receipt(receipt: str) -> dict[bytes, bytes]:
    return {b"x-api-key": SECRET.encode(), b"x-forq-receipt": receipt.encode()}


async def settle(
    api: Api, verb: str, message_id: str, receipt: str | None = None, queue: str = "q"
) -> tuple[int, str]:
    """Status and code ("" without one) of an ack or nack."""
    headers = None if receipt is None else with_receipt(receipt)
    response = await api.call("POST", f"{queue}/messages/{message_id}/{verb}", b"", headers)
    return response.status, json_of(response)["code"] if response.body else ""


async def test_f1_f3_a_sent_message_is_received(api: Api):
    response = await api.call("POST", "q/messages", {"content": "Grüße\n\u0000"})
    assert (response.status, response.body) == (204, b"")
    message = await api.receive()
    assert message.keys() >= {"id", "content", "receipt"}
    assert message["content"] == "Grüße\n\u0000"


async def test_f1_a_delayed_message_comes_when_it_is_due(api: Api):
    due = START_MS + 5_000
    await api.call("POST", "q/messages", {"content": "later", "processAfter": due})
    await api.send("now")
    assert (await api.receive())["content"] == "now"
    api.clock.ms = due
    assert (await api.receive())["content"] == "later"


async def test_f1_range_of_process_after(api: Api):
    earliest, latest = -limits.PROCESS_AFTER_GRACE_MS, limits.PROCESS_AFTER_AHEAD_MS_MAX
    for offset_ms, answer in (
        (earliest - 1, (400, "bad_request.body.processAfter.in_past")),
        (earliest, (204, "")),
        (latest, (204, "")),
        (latest + 1, (400, "bad_request.body.processAfter.too_far")),
    ):
        body = {"content": "m", "processAfter": START_MS + offset_ms}
        response = await api.call("POST", "q/messages", body)
        assert (response.status, json_of(response)["code"] if response.body else "") == answer


async def test_f1_other_values_of_process_after(api: Api):
    for value, code in (
        (b"-1", "bad_request.body.processAfter.in_past"),
        (b"0", "bad_request.body.processAfter.in_past"),
        (b"9223372036854775808", "bad_request.body.processAfter.too_far"),
        (b"1" + b"0" * 300, "bad_request.body.processAfter.too_far"),
        (b"1" + b"0" * 5_000, "bad_request.body.invalid"),
        (b"1.5", "bad_request.body.invalid"),
        (b"1e400", "bad_request.body.invalid"),
        (b"true", "bad_request.body.invalid"),
        (b'"1700000000000"', "bad_request.body.invalid"),
        (b"[]", "bad_request.body.invalid"),
        (b"NaN", "bad_request.body.invalid"),
    ):
        body = b'{"content":"m","processAfter":' + value + b"}"
        assert await api.code("POST", "q/messages", body) == (400, code), value[:20]
    assert api.broker.known.counts() == {}


async def test_f1_process_after_null_is_none(api: Api):
    assert (await api.call("POST", "q/messages", {"content": "m", "processAfter": None})).status == 204
    assert (await api.receive())["content"] == "m"


@pytest.mark.parametrize("letter", ["x", "😀"])
async def test_f1_content_is_measured_in_utf8_bytes(api: Api, letter: str):
    most = limits.CONTENT_BYTES_MAX // len(letter.encode()) * letter
    assert (await api.call("POST", "q/messages", {"content": most})).status == 204
    assert await api.code("POST", "q/messages", {"content": most + letter}) == (
        400,
        "bad_request.body.content.exceeds_limit",
    )
    assert (await api.receive())["content"] == most


async def test_f1_the_largest_content_passes_however_it_is_escaped(api: Api):
    body = b'{"content":"' + b"\\u0001" * limits.CONTENT_BYTES_MAX + b'"}'
    assert (await api.call("POST", "q/messages", body)).status == 204


async def test_f1_a_body_far_past_the_limit_is_413(api: Api):
    body = b'{"content":"m"}'
    padded = body + b" " * (limits.SEND_BODY_BYTES_MAX - len(body))
    assert (await api.call("POST", "q/messages", padded)).status == 204
    assert await api.code("POST", "q/messages", padded + b" ") == (
        413,
        "bad_request.body.content.exceeds_limit",
    )


async def test_f1_empty_content_is_content(api: Api):
    await api.send("")
    assert (await api.receive())["content"] == ""


async def test_f1_unknown_and_repeated_members(api: Api):
    body = b'{"content":"a","headers":{"x":[1,null]},"content":"b"}'
    assert (await api.call("POST", "q/messages", body)).status == 204
    assert (await api.receive())["content"] == "b"


NO_NAMES = (
    *("", ".", "..", "%2E%2E", "a" * 65, "a b", "a%2Fb", "%00", "%FF", "%C3%BC", "a%0A", "a+b", "a,b"),
    *("ü", "%", "a" * 65 + "-dlq"),
)


async def test_f2_invalid_queue_names(api: Api):
    answer = (400, "bad_request.queue.invalid_name")
    for name in NO_NAMES:
        assert await api.code("POST", f"/api/v1/queues/{name}/messages", {"content": "m"}) == answer
        assert await api.code("GET", f"/api/v1/queues/{name}/messages") == answer
        assert await api.code("POST", f"/api/v1/queues/{name}/messages/{UNKNOWN_ID}/ack") == answer
        assert await api.code("POST", f"/api/v1/queues/{name}/messages/{UNKNOWN_ID}/nack") == answer
    assert api.broker.known.counts() == {}


async def test_f2_valid_queue_names(api: Api):
    for name in ("a", "a" * 64, "A.b_c-9", "...", "-", "a%2Eb"):
        await api.send("m", queue=name)
        assert (await api.receive(name.replace("%2E", ".")))["content"] == "m"


async def test_f2_nobody_sends_to_a_dead_letter_queue(api: Api):
    answer = (400, "bad_request.queue.produce_to_dlq")
    for name in ("q-dlq", "-dlq", "a" * 64 + "-dlq", "q%2Ddlq"):
        assert await api.code("POST", f"{name}/messages", {"content": "m"}) == answer
        assert await api.code("POST", f"{name}/messages/batch", {"messages": []}) == answer


@pytest.mark.parametrize("receipt", [False, True])
async def test_f4_ack_removes_the_message(api: Api, receipt: bool):
    await api.send("m")
    message = await api.receive()
    assert await settle(api, "ack", message["id"], message["receipt"] if receipt else None) == (204, "")
    assert await api.code("GET", f"q/messages/{message['id']}") == (404, "not_found.message")


@pytest.mark.parametrize("verb", ["ack", "nack"])
async def test_f4_f5_without_a_receipt_it_is_idempotent(api: Api, verb: str):
    assert await settle(api, verb, UNKNOWN_ID) == (204, "")


@pytest.mark.parametrize("verb", ["ack", "nack"])
async def test_f4_f5_fencing(api: Api, verb: str):
    """Ids and receipts in capitals are the same; what else is not current is told apart in tests/faces."""
    await api.send("m")
    message = await api.receive()
    not_found = (404, "not_found.message")
    assert await settle(api, verb, message["id"], UNKNOWN_RECEIPT) == not_found
    assert await settle(api, verb, message["id"], message["receipt"], queue="other") == not_found
    assert await settle(api, verb, message["id"].upper(), message["receipt"].upper()) == (204, "")


@pytest.mark.parametrize("verb", ["ack", "nack"])
async def test_f4_malformed_receipts(api: Api, verb: str):
    for receipt in ("", "x", "é" * 36, UNKNOWN_ID[:-1], UNKNOWN_ID.replace("-", ""), "g" + UNKNOWN_ID[1:]):
        assert await settle(api, verb, UNKNOWN_ID, receipt) == (400, "bad_request.receipt.invalid")


@pytest.mark.parametrize("verb", ["ack", "nack"])
async def test_f4_ids_that_are_no_uuids(api: Api, verb: str):
    cut, bare, braced = UNKNOWN_ID[:-1], UNKNOWN_ID.replace("-", ""), f"%7B{UNKNOWN_ID}%7D"
    for message_id in ("x", "ack", "batch", "0", cut, braced, bare, "%FF"):
        for receipt in (None, UNKNOWN_RECEIPT):
            answer = await settle(api, verb, message_id, receipt)
            assert answer == (400, "bad_request.messageId.invalid")


@pytest.mark.parametrize("verb", ["ack", "nack"])
async def test_f4_receipts_can_be_demanded(api: Api, verb: str):
    api.serve(require_receipt=True)
    await api.send("m")
    message = await api.receive()
    assert await settle(api, verb, message["id"]) == (400, "bad_request.receipt.missing")
    assert await settle(api, verb, message["id"], message["receipt"]) == (204, "")


async def test_bodies_of_ack_and_nack_are_ignored(api: Api):
    await api.send("m")
    message = await api.receive()
    assert (await api.call("POST", f"q/messages/{message['id']}/ack", b"\xff{")).status == 204
