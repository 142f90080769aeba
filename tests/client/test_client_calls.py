"""Every operation of both clients, over real sockets: what is sent, what comes back, what is raised."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import trio

from client.fake_forq import NOW_MS, SECRET, FakeForq, error
from forq_trio.client import (
    AsyncForqClient,
    ExponentialBackOff,
    ForqApiError,
    ForqClient,
    ForqProtocolError,
    NewMessage,
    Produced,
    QueueRules,
    QueueSettings,
    Rejected,
    types,
)
from forq_trio.client.errors import meaning
from forq_trio.client.settings import SettingsChange
from forq_trio.http.forq_api.codes import CODES
from forq_trio.model import limits, queue_settings

Call = Callable[..., Any]


def call_sync(url: str, name: str, *arguments: Any, **options: Any) -> Any:
    with ForqClient(url, SECRET, retry_seconds=0) as client:
        return getattr(client, name)(*arguments, **options)


async def _call_async(url: str, name: str, *arguments: Any, **options: Any) -> Any:
    async with AsyncForqClient(url, SECRET, retry_seconds=0) as client:
        return await getattr(client, name)(*arguments, **options)


def call_trio(url: str, name: str, *arguments: Any, **options: Any) -> Any:
    return trio.run(lambda: _call_async(url, name, *arguments, **options))


def call_asyncio(url: str, name: str, *arguments: Any, **options: Any) -> Any:
    return asyncio.run(_call_async(url, name, *arguments, **options))


@pytest.fixture(params=[call_sync, call_trio, call_asyncio], ids=["sync", "trio", "asyncio"])
def call(request: pytest.FixtureRequest, url: str) -> Call:
    """Makes one call with a client of its own: call(name, ...)."""
    return lambda name, *arguments, **options: request.param(url, name, *arguments, **options)


def test_a_message_from_send_to_ack(call: Call, fake: FakeForq):
    produced = call("produce", "orders", "käse", process_after=NOW_MS)
    assert produced.sequence == 1
    (delivery,) = call("receive", "orders", max_messages=5, wait_ms=0, lease_ms=1_000)
    assert (delivery.id, delivery.content, delivery.attempts) == (produced.id, "käse", 1)
    assert (delivery.received_at, delivery.lease_until) == (NOW_MS, NOW_MS + 300_000)
    (extended,) = call("extend", "orders", [delivery.receipt], 2_000)
    assert (extended.ok, extended.lease_until) == (True, NOW_MS + 2_000)
    (acked,) = call("ack", "orders", [delivery.receipt])
    assert (acked.receipt, acked.ok, acked.code) == (delivery.receipt, True, None)
    assert [members for _, _, members in fake.requests] == [
        {"messages": [{"content": "käse", "processAfter": NOW_MS}]},
        {"max": 5, "waitMs": 0, "leaseMs": 1_000},
        {"receipts": [delivery.receipt], "leaseMs": 2_000},
        {"receipts": [delivery.receipt]},
    ]
    assert fake.queues == {"orders": []}


def test_nack_and_release_give_a_message_back(call: Call, fake: FakeForq):
    call("produce", "orders", "a")
    (first,) = call("receive", "orders")
    (nacked,) = call("nack", "orders", [first.receipt], delay_ms=0, reason="no paper")
    assert nacked.ok
    (second,) = call("receive", "orders")
    assert second.attempts == 2
    (released,) = call("release", "orders", [second.receipt], delay_ms=7)
    assert released.ok
    (message,) = call("peek", "orders", limit=10)
    assert (message.attempts, message.last_error, message.status) == (1, "no paper", "ready")
    sent = [members for _, target, members in fake.requests if target.endswith(("nack", "release"))]
    assert sent == [
        {"receipts": [first.receipt], "delayMs": 0, "reason": "no paper"},
        {"receipts": [second.receipt], "delayMs": 7},
    ]


def test_what_is_not_said_is_left_to_the_queue(call: Call, fake: FakeForq):
    call("produce", "orders", "a")
    (delivery,) = call("receive", "orders", wait_ms=0)
    call("extend", "orders", [delivery.receipt])
    assert [members for _, _, members in fake.requests] == [
        {"messages": [{"content": "a"}]},
        {"max": 1, "waitMs": 0},
        {"receipts": [delivery.receipt]},
    ]


def test_a_message_with_everything(call: Call, fake: FakeForq):
    options = {
        "delay_ms": 0,
        "priority": 7,
        "ttl_ms": 60_000,
        "attributes": {"tenant": "a", "käse": ""},
        "deduplication_id": "order-1",
        "deduplication_window_ms": 1_000,
        "group": "g",
        "max_attempts": 3,
        "dead_letter_queue": "",
    }
    produced = call("produce", "orders", "a", **options)
    assert fake.requests[0][2]["messages"] == [
        {
            "content": "a",
            "delayMs": 0,
            "priority": 7,
            "ttlMs": 60_000,
            "attributes": {"tenant": "a", "käse": ""},
            "deduplicationId": "order-1",
            "deduplicationWindowMs": 1_000,
            "group": "g",
            "maxAttempts": 3,
            "deadLetterQueue": "",
        }
    ]
    assert produced.duplicate is False
    assert call("produce", "orders", "b", deduplication_id="order-1") == Produced(produced.id, 1, True)
    (delivery,) = call("receive", "orders", wait_ms=0)
    assert (delivery.priority, delivery.group, delivery.attributes) == (7, "g", options["attributes"])
    assert delivery.first_received_at == NOW_MS
    message = call("message", "orders", produced.id)
    assert (message.max_attempts, message.ttl_ms, message.dead_letter_queue) == (3, 60_000, "")
    assert (message.attributes, message.group, message.failures) == (options["attributes"], "g", ())


def test_a_plain_message_has_no_attributes_and_no_group(call: Call):
    call("produce", "orders", "a")
    (delivery,) = call("receive", "orders")
    assert (delivery.priority, delivery.attributes, delivery.group) == (100, {}, None)


def test_options_that_do_not_exist(call: Call, fake: FakeForq):
    for name, options in (("produce", {"prio": 1}), ("configure", {"paused": True})):
        with pytest.raises(TypeError, match=next(iter(options))):
            call(name, "orders", *(["a"] if name == "produce" else []), **options)
    assert fake.requests == []
    assert types.NewMessage.__struct_fields__[1:] == tuple(types.MessageOptions.__annotations__)


def test_at_random(call: Call, fake: FakeForq):
    for content in "abc":
        call("produce", "orders", content)
    assert [each.content for each in call("peek", "orders", limit=2, shuffle=True)] == ["c", "b"]
    assert [each.content for each in call("peek", "orders", limit=2)] == ["a", "b"]
    (delivery,) = call("receive", "orders", shuffle=True, wait_ms=0)
    assert delivery.content == "c"
    assert fake.requests[-1][2] == {"max": 1, "waitMs": 0, "order": "shuffle"}


def test_settings(call: Call, fake: FakeForq):
    virtual = call("settings", "orders")
    assert virtual.settings == QueueSettings()
    assert (virtual.effective.lease_ms, virtual.effective.back_off[:2]) == (300_000, (1_000, 5_000))
    formula = ExponentialBackOff(1_000, jitter=0.5)
    changed = call("configure", "orders", lease_ms=1, overflow="drop_oldest", back_off=formula)
    assert changed.settings == QueueSettings(lease_ms=1, overflow="drop_oldest", back_off=formula)
    assert changed.effective.back_off == formula
    assert fake.requests[-1] == (
        "PUT",
        "/api/v1/queues/orders/settings",
        {
            "leaseMs": 1,
            "overflow": "drop_oldest",
            "backOff": {"initialMs": 1_000, "factor": 2.0, "maxMs": 3_600_000, "jitter": 0.5},
        },
    )
    call("configure", "orders", lease_ms=None, back_off=(5, 7))
    assert fake.requests[-1][2] == {"leaseMs": None, "backOff": [5, 7]}
    assert call("settings", "orders").settings == QueueSettings(overflow="drop_oldest", back_off=(5, 7))
    assert call("reset_settings", "orders") is None
    assert call("settings", "orders").settings == QueueSettings()


def test_a_queue_as_a_whole(call: Call, fake: FakeForq):
    call("produce", "orders", "a")
    assert call("pause", "orders") is None
    assert call("queue_stats", "orders").paused
    assert call("receive", "orders", wait_ms=0) == []
    assert call("resume", "orders") is None
    assert not call("queue_stats", "orders").paused
    with pytest.raises(ForqApiError, match="still holds messages") as caught:
        call("delete_queue", "orders")
    assert (caught.value.status, caught.value.code) == (409, "conflict.queue_not_empty")
    assert call("purge", "orders") == 1
    assert call("delete_queue", "orders") is None
    assert fake.requests[-1][:2] == ("DELETE", "/api/v1/queues/orders")
    assert call("queue_stats", "orders").total == 0


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"field": "prio"}, "the server does not know a member of the request: prio (400 x.unknown)"),
        (
            {"field": "prio", "message": "no"},
            "the server does not know a member of the request: no (400 x.unknown)",
        ),
    ],
)
def test_the_member_an_error_is_about_is_told(
    call: Call, fake: FakeForq, more: dict[str, str], sentence: str
):
    fake.answers.append(error(400, "bad_request.body.unknown_field", **more))
    with pytest.raises(ForqApiError) as caught:
        call("queues")
    assert str(caught.value) == sentence.replace("x.unknown", "bad_request.body.unknown_field")


def test_a_token_that_lacks_a_scope(call: Call, fake: FakeForq):
    fake.answers.append(error(403, "forbidden", scope="consume"))
    with pytest.raises(ForqApiError, match="lacks the scope: consume") as caught:
        call("receive", "orders")
    assert (caught.value.status, caught.value.detail) == (403, "consume")


def test_nack_leaves_the_back_off_to_the_server(call: Call, fake: FakeForq):
    call("nack", "orders", ["x"])
    assert fake.requests[-1][2] == {"receipts": ["x"]}


def test_a_batch_is_judged_message_by_message(call: Call):
    results = call("produce_many", "orders", [NewMessage("a"), NewMessage("b", 1), NewMessage("c")])
    assert [type(result) for result in results] == [Produced, Rejected, Produced]
    assert results[1].code == "bad_request.body.processAfter.in_past"
    assert results[0].sequence < results[2].sequence


def test_one_refused_message_raises(call: Call):
    with pytest.raises(ForqApiError) as caught:
        call("produce", "orders", "a", process_after=1)
    assert (caught.value.status, caught.value.code) == (400, "bad_request.body.processAfter.in_past")
    assert str(caught.value) == "processAfter lies in the past (400 bad_request.body.processAfter.in_past)"


def test_receipts_that_are_not_current_are_refused_alone(call: Call):
    call("produce", "orders", "a")
    (delivery,) = call("receive", "orders")
    results = call("ack", "orders", ["nonsense", "00000000-0000-8000-8000-000000000000", delivery.receipt])
    assert [(result.ok, result.code) for result in results] == [
        (False, "bad_request.receipt.invalid"),
        (False, "not_found.message"),
        (True, None),
    ]


def test_looking(call: Call):
    produced = call("produce", "orders", "a")
    (listed,) = call("queues")
    assert (listed.queue, listed.is_dlq, listed.ready, listed.waiting) == ("orders", False, 1, 0)
    assert listed.oldest_ready_age_ms is None
    stats = call("queue_stats", "orders")
    assert (stats.ready, stats.oldest_ready_age_ms) == (1, 5)
    message = call("message", "orders", produced.id)
    assert (message.content, message.queue, message.priority, message.lease_until) == (
        "a",
        "orders",
        100,
        None,
    )
    assert call("healthcheck") is None
    assert call("peek", "nothing") == []


@pytest.mark.parametrize("queue", ["", ".", "..", "a/b", "a?b", "grüße", "x" * 65])
def test_queue_names_reach_the_server_as_they_are_or_not_at_all(call: Call, fake: FakeForq, queue: str):
    with pytest.raises(ForqApiError) as caught:
        call("queue_stats", queue)
    assert caught.value.code == "bad_request.queue.invalid_name"
    assert len(fake.requests) == (0 if queue in ("", ".", "..") else 1)


def test_a_wrong_secret(url: str):
    with (
        ForqClient(url, "wrong") as client,
        pytest.raises(ForqApiError, match="does not accept the secret") as caught,
    ):
        client.queues()
    assert (caught.value.status, caught.value.code) == (401, "unauthorized")


def test_content_that_utf8_cannot_carry(call: Call, fake: FakeForq):
    with pytest.raises(ForqApiError) as caught:
        call("produce", "orders", "\ud800")
    assert caught.value.code == "bad_request.body.invalid"
    assert fake.requests == []


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"queues": 1}', b'{"queues": [{"queue": "a"}]}', b'{"queues": [']
)
def test_an_answer_that_is_not_forqs(call: Call, fake: FakeForq, body: bytes):
    fake.answers.append((200, {}, body))
    with pytest.raises(ForqProtocolError, match="the answer is not one of Forq's"):
        call("queues")


@pytest.mark.parametrize("results", [b"[]", b"[{}]", b'[{"id":"a"}]'])
def test_an_answer_without_a_result_for_the_message(call: Call, fake: FakeForq, results: bytes):
    fake.answers.append((200, {}, b'{"results":' + results + b"}"))
    with pytest.raises(ForqProtocolError):
        call("produce", "orders", "a")


def test_an_error_of_something_before_the_server(call: Call, fake: FakeForq):
    fake.answers.append((502, {}, b"<html>Bad Gateway"))
    with pytest.raises(ForqApiError, match="answered HTTP 502") as caught:
        call("queues")
    assert (caught.value.status, caught.value.code) == (502, None)


def test_a_redirect_is_not_followed(call: Call, fake: FakeForq):
    fake.answers.append((302, {"Location": "/elsewhere"}, b""))
    with pytest.raises(ForqApiError, match="answered HTTP 302"):
        call("queues")


def test_a_new_member_in_an_answer_is_no_error(call: Call, fake: FakeForq):
    fake.answers.append((200, {}, b'{"queues": [], "new": 1}'))
    assert call("queues") == []


def test_connections_are_kept(fake: FakeForq, url: str):
    with ForqClient(url, SECRET) as client:
        client.queues()
        (connection,) = client._http._transport._pool.connections
        client.produce("orders", "a")
        assert client._http._transport._pool.connections == [connection]


def test_both_clients_have_the_same_methods():
    def methods(kind: type) -> dict[str, list[str]]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: list(inspect.signature(each).parameters) for name, each in found if name[0] != "_"}

    sync, aio = methods(ForqClient), methods(AsyncForqClient)
    assert sync.pop("close") == aio.pop("aclose")
    assert sync == aio


def test_the_clients_bounds_are_the_servers():
    for name in (
        "WAIT_MS_MAX",
        "PRIORITY_DEFAULT",
        "PRIORITY_MAX",
        "PRODUCE_BATCH_MAX",
        "PRODUCE_BATCH_BYTES_MAX",
    ):
        assert getattr(types, name) == getattr(limits, name)
    assert (types.RECEIVE_BATCH_MAX, types.RECEIPTS_BATCH_MAX) == (
        limits.RECEIVE_BATCH_MAX,
        limits.RECEIPTS_BATCH_MAX,
    )


def test_the_clients_settings_are_the_servers():
    for ours, theirs in (
        (QueueSettings, queue_settings.QueueSettings),
        (QueueRules, queue_settings.QueueRules),
        (ExponentialBackOff, queue_settings.ExponentialBackOff),
    ):
        assert ours.__struct_encode_fields__ == theirs.__struct_encode_fields__
        assert ours.__struct_defaults__ == theirs.__struct_defaults__
    assert tuple(SettingsChange.__annotations__) == queue_settings.SettingsChange.__struct_fields__


@pytest.mark.parametrize("code", CODES)
def test_every_code_of_the_api_has_words(code: str):
    assert meaning(code) != code


def test_an_unknown_code_is_shown_as_it_is():
    assert str(ForqApiError(400, "bad_request.new")) == "bad_request.new (400)"
