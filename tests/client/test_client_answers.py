"""Answers that a sound server of today does not give: of newer servers, of something before it, broken ones.

Both clients read them by the same functions, so they are given to the blocking one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from forq_trio import DeadLetterFilter, ExponentialBackOff, ForqError, ForqProtocolError, ForqUnreachable
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from support.fake_transport import answer_of

from .conftest import Call, calls_of


@contextmanager
def answered(status: int, body: bytes, **headers: str) -> Iterator[Call]:
    """Calls of a client that is given this answer to whatever it asks."""
    answer = answer_of(status, content=body, **headers)
    with calls_of("sync", "http://forq", handler=lambda request: answer) as call:
        yield call


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"<html>", b"[]", b'{"queues": 1}', b'{"queues": [{"queue": "a"}]}', b'{"queues": ['),
        pytest.param(b'{"more": ' * 100_000, id="nested deeply"),
    ],
)
def test_an_answer_that_is_not_forqs(body: bytes):
    with (
        answered(200, body) as call,
        pytest.raises(ForqProtocolError, match="the answer is not one of Forq's"),
    ):
        call("queues")


@pytest.mark.parametrize("status", [200, 503])
def test_an_answer_in_a_coding_that_nobody_asked_for(status: int):
    with (
        answered(status, b"plain", Content_Encoding="gzip") as call,
        pytest.raises(ForqProtocolError, match="the answer is not one of Forq's"),
    ):
        call("queues")


def test_an_error_that_is_nested_deeply():
    body = b'{"code": ' * 100_000
    with answered(400, body) as call, pytest.raises(ForqError, match="answered HTTP 400"):
        call("queues")


@pytest.mark.parametrize(
    ("method", "arguments", "code"),
    [
        ("queue_stats", ("\ud800",), "bad_request.queue.invalid_name"),
        ("message", ("orders", "\ud800"), "bad_request.messageId.invalid"),
        ("dead_letter", ("orders-dlq", "\ud800"), "bad_request.messageId.invalid"),
        ("search_dead_letters", ("orders-dlq", DeadLetterFilter(text="\ud800")), "bad_request.body.invalid"),
        ("revoke_token", ("\ud800",), "not_found.token"),
        ("cancel_redrive", ("orders-dlq", "\ud800"), "not_found.redrive"),
    ],
)
def test_text_that_no_request_can_carry_is_refused(method: str, arguments: Any, code: str):
    with answered(200, b"{}") as call, pytest.raises(ForqError) as caught:
        call(method, *arguments)
    assert caught.value.code == code


def test_an_answer_without_a_result_for_the_message():
    for results in (b"[]", b"[{}]", b'[{"id":"a"}]'):
        with answered(200, b'{"results":' + results + b"}") as call, pytest.raises(ForqProtocolError):
            call("produce", "orders", "a")


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_proxy_that_does_not_reach_the_server(status: int):
    """While the server starts again, nginx says this: later is another matter, and a send may be stored."""
    with (
        answered(status, b"<html>Bad Gateway") as call,
        pytest.raises(ForqUnreachable, match=f"answered HTTP {status}") as caught,
    ):
        call("produce", "orders", "a")
    assert caught.value.sent


def test_an_error_of_something_before_the_server():
    with (
        answered(500, b"<html>Internal Server Error") as call,
        pytest.raises(ForqProtocolError, match="answered HTTP 500"),
    ):
        call("queues")


def test_a_redirect_is_not_followed():
    with (
        answered(302, b"", Location="/elsewhere") as call,
        pytest.raises(ForqError, match="answered HTTP 302"),
    ):
        call("queues")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "the body has a member that is not known here; `field` names it"),
        ({"message": "no"}, "no"),
        ({"field": "$.x", "message": "no"}, "no"),
    ],
)
def test_what_is_wrong_with_what_is_told(more: dict[str, str], text: str):
    code = "bad_request.body.unknown_field"
    with (
        answered(400, msgspec.json.encode({"code": code} | more)) as call,
        pytest.raises(ForqError) as caught,
    ):
        call("queues")
    error = caught.value
    assert (str(error), error.message, error.code) == (text, text, code)
    assert error.field == ("x" if "field" in more else None)


RULES = {
    "leaseMs": 1,
    "delayMs": 1,
    "ttlMs": 1,
    "maxAttempts": 1,
    "backOff": {"initialMs": 1_000, "new": 1},
    "deadLetterQueue": "",
    "deduplicationWindowMs": 1,
    "maxMessages": None,
    "maxBytes": None,
    "overflow": "reject",
    "order": "fifo",
    "groupInFlightMax": None,
    "paused": False,
    "new": 1,
}
DELIVERY = {
    **{"id": "a", "content": "b", "receipt": "c", "attempts": 1, "sequence": 1, "receivedAt": 1},
    **{"leaseUntil": 1, "priority": 1, "firstReceivedAt": 1, "new": 1},
}


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("queues", {"queues": [], "new": 1}),
        ("receive", {"messages": [DELIVERY], "new": 1}),
        ("settings", {"settings": RULES, "effective": RULES, "new": 1}),
        ("peek", {"messages": [], "new": 1}),
        ("purge", {"purged": 1, "new": 1}),
        ("search_dead_letters", {"messages": [], "searched": 0, "total": 0, "nextBefore": None, "new": 1}),
        ("redrives", {"redrives": [], "new": 1}),
    ],
)
def test_a_new_member_in_an_answer_is_no_error(name: str, answer: dict[str, Any]):
    with answered(200, msgspec.json.encode(answer)) as call:
        result = call(name, *([] if name == "queues" else ["orders"]))
    if name == "settings":
        assert result.effective.back_off == result.settings.back_off == ExponentialBackOff(1_000)


def test_a_new_member_in_a_result_is_no_error():
    body = msgspec.json.encode({"results": [{"receipt": "a", "id": "a", "ok": True, "new": 1}]})
    for verb in ("ack", "redrive"):
        with answered(200, body) as call:
            (result,) = call(verb, "orders-dlq", ["a"])
        assert (result.ok, result.code) == (True, None), verb


def test_queues_come_page_by_page():
    names = ["a", "b", "c"]
    counts = dict.fromkeys(("ready", "delayed", "processing", "failed", "held", "bytes", "waiting"), 0)

    def page(request: ClientRequest) -> HttpAnswer:
        after = request.path.partition("?after=")[2]
        first, *rest = [name for name in names if name > after]
        summary = {"queue": first, "isDlq": False, "paused": False, **counts}
        return answer_of(json={"queues": [summary], "next": first if rest else None})

    with calls_of("sync", "http://forq", handler=page) as call:
        assert [queue.queue for queue in call("queues")] == names
