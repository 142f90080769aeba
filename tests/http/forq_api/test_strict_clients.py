"""Forq's own four routes as a client meets them that refuses every member it does not know (contract F3, F9).

Forq's Java SDK is one: it knows `id`, `content` and `receipt` of a message, and `code` of an error.
"""

import msgspec
import trio

from forq_trio.http.forq_api.refusals import is_forqs_path
from forq_trio.http.message import Response
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from support.forq_api import ASKING_FOR_MORE, SECRET, START_MS, Api, blamed, json_of, make_request

ID = "0199164b-4dea-78d9-9b4c-c699d5037962"
RECEIPT = "00000000-0001-8000-8000-000000000001"
KEY = {b"x-api-key": SECRET.encode()}


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """All that the SDK knows of a message."""

    id: str
    content: str
    receipt: str


class Error(msgspec.Struct, forbid_unknown_fields=True):
    """All that the SDK knows of an error."""

    code: str


def error_of(response: Response) -> str:
    """The code of an error as the SDK reads it. The headers that say more are fit to be headers."""
    assert response.content_type == b"application/json"
    for name, value in response.headers:
        assert value.isascii()
        assert value.decode().isprintable(), (name, value)
        assert value == value.strip()  # HTTP/2 allows no others
        assert len(value) <= limits.ERROR_HEADER_BYTES_MAX
    return msgspec.json.decode(response.body, type=Error).code


def said(response: Response) -> tuple[str | None, str]:
    """Field and message in the headers."""
    headers = dict(response.headers)
    field = headers.get(b"x-forq-error-field")
    return field and field.decode(), headers[b"x-forq-error-message"].decode()


async def test_which_routes_are_forqs(api: Api):
    assert {(route.method, route.path) for route in api.routes if is_forqs_path(route.path)} == {
        ("POST", "/api/v1/queues/{queue}/messages"),
        ("GET", "/api/v1/queues/{queue}/messages"),
        ("POST", "/api/v1/queues/{queue}/messages/{messageId}/ack"),
        ("POST", "/api/v1/queues/{queue}/messages/{messageId}/nack"),
    }


async def test_a_message_has_three_members(api: Api):
    await api.broker.produce("q", "m", attributes={"k": "v"}, group="g", priority=7)
    response = await api.call("GET", "q/messages")
    message = msgspec.json.decode(response.body, type=Message)
    assert (message.content, len(message.id), len(message.receipt)) == ("m", 36, 36)
    path = f"q/messages/{message.id}/ack"
    headers = KEY | {b"x-forq-receipt": message.receipt.encode()}
    assert (await api.call("POST", path, headers=headers)).status == 204
    assert api.broker.known.counts_of("q").total == 0


async def test_a_message_that_was_peeked_at_has_two(api: Api):
    await api.send("m")
    assert json_of(await api.call("GET", "q/messages?peek=true")).keys() == {"id", "content"}


async def test_whoever_asks_gets_all_members(api: Api):
    await api.send("m", "m")
    one = json_of(await api.call("GET", "q/messages", headers=ASKING_FOR_MORE))
    (other,) = json_of(await api.call("POST", "q/messages/receive", b"{}"))["messages"]
    assert one.keys() == other.keys() > {"id", "content", "receipt"}
    response = await api.call("POST", "q/messages", b"{}", ASKING_FOR_MORE)
    assert blamed(json_of(response)) == {"code": "bad_request.body.invalid", "field": "$.content"}
    assert response.headers == ()


LONG = "x" * (limits.CONTENT_BYTES_MAX + 1)
REFUSALS = [
    ("POST", "q/messages", b"{}", KEY, (400, "bad_request.body.invalid")),
    ("POST", "q/messages", b"content=m", KEY, (400, "bad_request.body.invalid")),
    ("POST", "q/messages", {"content": "m", "group": ""}, KEY, (400, "bad_request.body.group.invalid")),
    ("POST", "q/messages", {"content": LONG}, KEY, (400, "bad_request.body.content.exceeds_limit")),
    ("POST", "q/messages", b" " * limits.BODY_BYTES_MAX, KEY, (413, "bad_request.body.content.exceeds_limit")),
    ("POST", "q/messages", {"content": "m", "processAfter": 1}, KEY, (400, "bad_request.body.processAfter.in_past")),
    ("POST", "a%20b/messages", {"content": "m"}, KEY, (400, "bad_request.queue.invalid_name")),
    ("POST", "q-dlq/messages", {"content": "m"}, KEY, (400, "bad_request.queue.produce_to_dlq")),
    ("POST", "q/messages", b"x", KEY | {b"content-encoding": b"gzip"}, (415, "bad_request.content_encoding.unknown")),
    ("GET", "q/messages?order=lifo", b"", KEY, (400, "bad_request.order.invalid")),
    ("GET", "q/messages?peek=1", b"", KEY, (400, "bad_request.peek.invalid")),
    ("GET", "q/messages?waitMs=30001", b"", KEY, (400, "bad_request.waitMs.out_of_range")),
    ("GET", "a%20b/messages", b"", KEY, (400, "bad_request.queue.invalid_name")),
    ("POST", "q/messages/x/ack", b"", KEY, (400, "bad_request.messageId.invalid")),
    ("POST", f"q/messages/{ID}/nack", b"", KEY | {b"x-forq-receipt": b"x"}, (400, "bad_request.receipt.invalid")),
    ("POST", f"q/messages/{ID}/ack", b"", KEY | {b"x-forq-receipt": RECEIPT.encode()}, (404, "not_found.message")),
    ("PATCH", "q/messages", b"", KEY, (405, "method_not_allowed")),
    ("GET", f"q/messages/{ID}/ack", b"", KEY, (405, "method_not_allowed")),
    *[
        (method, f"q/messages{path}", b"", {b"x-api-key": b"wrong"}, (401, "unauthorized"))
        for method, path in (("GET", ""), ("POST", ""), ("POST", f"/{ID}/ack"), ("POST", f"/{ID}/nack"))
    ],
]  # fmt: skip


async def test_an_error_has_one_member(api: Api):
    """And what our own routes answer beside it is in headers."""
    for method, path, body, headers, answer in REFUSALS:
        response = await api.call(method, path, body, headers)
        assert (response.status, error_of(response)) == answer, (method, path)
        full = json_of(await api.call(method, path, body, {**headers, b"x-forq-answer": b"full"}))
        assert said(response) == (full.get("field"), full["message"])
        api.seconds.value += limits.AUTH_WINDOW_SECONDS  # or wrong keys would lock us out


async def test_more_errors_that_have_one_member(api: Api):
    token = await api.broker.create_token("t", [Scope.BROWSE])
    forbidden = await api.call("GET", "q/messages", headers={b"x-api-key": token.token.encode()})
    assert (forbidden.status, error_of(forbidden)) == (403, "forbidden")
    for _ in range(limits.AUTH_FAILURES_MAX + 1):
        locked = await api.call("GET", "q/messages", headers={b"x-api-key": b"wrong"})
    assert (locked.status, error_of(locked)) == (429, "too_many_requests")
    assert dict(locked.headers)[b"retry-after"] == b"60"
    api.serve(require_receipt=True)
    missing = await api.call("POST", f"q/messages/{ID}/ack")
    assert (missing.status, error_of(missing)) == (400, "bad_request.receipt.missing")
    api.writer.stop()
    stopping = await api.call("POST", "q/messages", {"content": "m"})
    assert (stopping.status, error_of(stopping)) == (503, "forq.stopping")
    assert dict(stopping.headers)[b"retry-after"] == b"1"


async def test_what_a_client_made_up_cannot_break_a_header(api: Api):
    for name in (
        "\r\nSet-Cookie: a=b",
        "\x00\x7f\x1b[31m",
        "größe",
        "\u2028\u202e",
        "😀" * 1_000,
        "x" * 100_000,
        "x ",
    ):
        response = await api.call("POST", "q/messages", {"content": "m", "group": "g", name: 1})
        assert error_of(response) == "bad_request.body.unknown_field", name[:20]
        assert said(response)[1].startswith("there is no member ")
        assert set(dict(response.headers)) == {b"x-forq-error-field", b"x-forq-error-message"}


async def test_forqs_routes_ignore_parameters_that_nobody_knows(api: Api):
    assert (await api.call("POST", "q/messages?x=1", {"content": "m"})).status == 204
    message = json_of(await api.call("GET", "q/messages?x=1"))
    assert (await api.call("POST", f"q/messages/{message['id']}/ack?x=1")).status == 204


async def test_the_wait_can_be_shortened(api: Api, autojump_clock):
    start = trio.current_time()
    assert (await api.call("GET", "q/messages?waitMs=0")).status == 204
    assert trio.current_time() == start
    assert (await api.call("GET", "q/messages?waitMs=1500")).status == 204
    assert trio.current_time() == start + 1.5
    assert (await api.call("GET", "q/messages")).status == 204
    assert trio.current_time() == start + 1.5 + limits.WAIT_MS_MAX / 1_000


async def test_an_unknown_header_value_asks_for_nothing(api: Api):
    await api.send("m")
    headers = KEY | {b"x-forq-answer": b"all"}
    assert json_of(await api.call("GET", "q/messages", headers=headers)).keys() == {
        "id",
        "content",
        "receipt",
    }


async def test_a_delayed_message_is_sent_as_forq_has_it(api: Api):
    body = {"content": "m", "processAfter": START_MS + 10}
    response = await api.handler(make_request("POST", "/api/v1/queues/q/messages", msgspec.json.encode(body)))
    assert (response.status, response.body, response.headers) == (204, b"", ())
