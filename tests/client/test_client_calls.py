"""Every operation of the clients against a real server: what it does there, what comes back, what is raised."""

import inspect
import re
import time
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

from forq_trio import (
    AsyncForqClient,
    Forbidden,
    ForqClient,
    ForqError,
    HistoryFilter,
    InvalidRequest,
    MessageNotFound,
    MessageOptions,
    NewMessage,
    Produced,
    QueueNotFound,
    QueueRules,
    QueueSettings,
    ServiceError,
    SettingsOptions,
    WrongKey,
)
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.model.errors import InvalidSetting, error_of
from forq_trio.model.forq_error import REASONS
from forq_trio.model.queues.settings import SettingsChange
from support.fake_transport import answer_of
from support.settings import EVERYTHING

from .conftest import Call, calls_of

UNKNOWN = "00000000-0000-8000-8000-000000000000"


def contents(found: list[Any]) -> list[str]:
    return [message.content for message in found]


@pytest.fixture(scope="module")
def each(kind: str, url: str) -> Iterator[Call]:
    with calls_of(kind, url) as call:
        yield call


def test_a_message_from_send_to_ack(each: Call, queue: str):
    due = time.time_ns() // 1_000_000
    produced = each("produce", queue, "käse", process_after=due)
    (delivery,) = each("receive", queue, max_messages=5, wait_ms=0, lease_ms=60_000)
    assert (delivery.id, delivery.sequence) == (produced.id, produced.sequence)
    assert (delivery.content, delivery.attempts) == ("käse", 1)
    assert delivery.first_received_at >= delivery.received_at >= due
    message = each("message", queue, produced.id)
    assert (message.status, message.content, message.queue, message.process_after) == (
        "processing",
        "käse",
        queue,
        due,
    )
    assert message.lease_until == delivery.lease_until == message.processing_started_at + 60_000
    (extended,) = each("extend", queue, [delivery.receipt], 120_000)
    assert extended.ok
    assert each("message", queue, produced.id).lease_until == extended.lease_until
    assert delivery.lease_until + 60_000 <= extended.lease_until
    (acked,) = each("ack", queue, [delivery.receipt])
    assert (acked.receipt, acked.ok, acked.code, acked.lease_until) == (delivery.receipt, True, None, None)
    with pytest.raises(ForqError) as caught:
        each("message", queue, produced.id)
    assert caught.value.code == "not_found.message"


def test_nack_and_release_give_a_message_back(call: Call, queue: str):
    call("produce", queue, "a")
    (first,) = call("receive", queue)
    assert call("nack", queue, [first.receipt], delay_ms=0, reason="no paper")[0].ok
    (second,) = call("receive", queue)
    assert second.attempts == 2
    (released,) = call("release", queue, [second.receipt])
    assert released.ok
    (message,) = call("peek", queue, limit=10)
    assert (message.attempts, message.last_error, message.status) == (1, "no paper", "ready")
    (failure,) = message.failures
    assert (failure.attempt, failure.reason) == (1, "no paper")


def test_what_is_not_said_is_left_to_the_queue(call: Call, queue: str):
    call("configure", queue, lease_ms=90_000, delay_ms=0, ttl_ms=50_000, back_off=(7_000,))
    produced = call("produce", queue, "a")

    def look() -> Any:
        return call("message", queue, produced.id)

    assert look().ttl_ms is None
    assert look().expires_after - look().process_after == 50_000
    (delivery,) = call("receive", queue, wait_ms=0)
    assert look().lease_until - look().processing_started_at == 90_000
    call("extend", queue, [delivery.receipt], 1_000_000)
    call("extend", queue, [delivery.receipt])
    assert look().lease_until - look().processing_started_at < 1_000_000
    call("nack", queue, [delivery.receipt])
    assert look().process_after - look().updated_at == 7_000
    assert look().last_error is None


def test_a_message_with_everything(call: Call, queue: str):
    options = {
        "delay_ms": 0,
        "priority": 7,
        "ttl_ms": 60_000,
        "attributes": {"tenant": "a", "käse": ""},
        "deduplication_id": "order-1",
        "deduplication_window_ms": 60_000,
        "group": "g",
        "max_attempts": 3,
        "dead_letter_queue": "",
    }
    produced = call("produce", queue, "a", **options)
    assert produced.duplicate is False
    again = call("produce", queue, "b", **options)
    assert again == Produced(produced.id, produced.sequence, duplicate=True)
    call("produce", queue, "c", priority=6)
    (delivery,) = call("receive", queue, wait_ms=0)
    assert (delivery.content, delivery.priority, delivery.group) == ("a", 7, "g")
    assert delivery.attributes == options["attributes"]
    message = call("message", queue, produced.id)
    assert (message.max_attempts, message.ttl_ms, message.dead_letter_queue) == (3, 60_000, "")
    assert (message.attributes, message.group, message.failures) == (options["attributes"], "g", ())


def test_options_that_do_not_exist(call: Call, queue: str):
    for name, options in (("produce", {"prio": 1}), ("configure", {"paused": True})):
        with pytest.raises(TypeError, match=next(iter(options))):
            call(name, queue, *(["a"] if name == "produce" else []), **options)
    assert queue not in {each.queue for each in call("queues")}


def test_what_is_no_message_is_refused_in_words(call: Call, queue: str):
    for wrong, kind in ((["a"], "str"), ([NewMessage("a"), {"content": "b"}], "dict"), ("a", "str")):
        with pytest.raises(TypeError, match=f"a message to send is a NewMessage, not {kind}: "):
            call("produce_many", queue, wrong)
    assert queue not in {each.queue for each in call("queues")}


def test_the_name_of_a_queue_is_text(call: Call):
    for given, type_name in ((5, "int"), (None, "NoneType"), (b"orders", "bytes"), (["a"], "list")):
        for name, arguments in (
            ("produce", ["a"]),
            ("receive", []),
            ("queue_stats", []),
            ("message", ["id"]),
        ):
            with pytest.raises(TypeError, match=rf"the name of a queue is text \(str\), not {type_name}"):
                call(name, given, *arguments)


def test_options_are_the_members_of_what_is_sent():
    assert NewMessage.__struct_fields__[1:] == tuple(MessageOptions.__annotations__)
    sent = get_type_hints(NewMessage)
    assert get_type_hints(MessageOptions) == {name: sent[name] for name in NewMessage.__struct_fields__[1:]}
    assert tuple(SettingsOptions.__annotations__) == SettingsChange.__struct_fields__


CHANGES = EVERYTHING | {"delay_ms": 0, "max_messages": 2}


def test_settings(call: Call, queue: str):
    with pytest.raises(QueueNotFound, match=f"no queue called {queue}"):
        call("settings", queue)
    call("produce", queue, "a")
    virtual = call("settings", queue)
    assert virtual.settings == QueueSettings()
    assert (virtual.effective.lease_ms, virtual.effective.dead_letter_queue) == (300_000, f"{queue}-dlq")
    assert virtual.effective.back_off[:2] == (1_000, 5_000)
    changed = call("configure", queue, **CHANGES)
    assert changed == call("settings", queue)
    assert changed.settings == QueueSettings(**CHANGES)
    assert changed.effective == QueueRules(**CHANGES, paused=False)
    changed = call("configure", queue, lease_ms=None, back_off=(5, 7), overflow="reject")
    assert (changed.effective.lease_ms, changed.effective.back_off) == (300_000, (5, 7))
    call("produce", queue, "b")
    with pytest.raises(ForqError) as caught:
        call("produce", queue, "c")
    assert caught.value.code == "forq.queue_full"
    assert call("reset_settings", queue) is None
    assert call("settings", queue) == virtual


def test_a_queue_as_a_whole(call: Call, queue: str):
    call("produce", queue, "a")
    assert call("pause", queue) is None
    assert call("queue_stats", queue).paused
    assert {each.queue: each for each in call("queues")}[queue].paused
    assert call("receive", queue, wait_ms=0) == []
    assert call("resume", queue) is None
    assert not call("queue_stats", queue).paused
    with pytest.raises(ForqError, match="still holds messages") as caught:
        call("delete_queue", queue)
    assert caught.value.code == "conflict.queue_not_empty"
    assert call("purge", queue) == 1
    assert call("delete_queue", queue) is None
    assert queue not in {each.queue for each in call("queues")}
    for name in ("queue_stats", "delete_queue", "pause", "resume", "purge", "reset_settings", "export"):
        with pytest.raises(QueueNotFound):
            call(name, queue)


def test_a_token_that_lacks_a_scope(call: Call, url: str, queue: str):
    made = call("create_token", queue, ["produce"], "q-*")
    with calls_of("sync", url, made.token) as holder:
        assert holder("produce", queue, "a").duplicate is False
        with pytest.raises(Forbidden, match="the scope consume"):
            holder("receive", queue)
    assert {token.name: token for token in call("tokens")}[queue].scopes == ("produce",)
    assert call("revoke_token", queue) is None
    assert queue not in {token.name for token in call("tokens")}


def test_a_wrong_secret(url: str):
    sentence = f"the key is missing or wrong, or its token expired or was revoked, says the server at {url}"
    with ForqClient(url.replace("//", "//me:geheim@"), "wrong") as client, pytest.raises(WrongKey) as caught:
        client.queues()
    assert (caught.value.code, str(caught.value)) == ("unauthorized", sentence)


def test_one_refused_message_raises(call: Call, queue: str):
    with pytest.raises(ForqError) as caught:
        call("produce", queue, "a", process_after=1)
    assert (caught.value.code, caught.value.field) == (
        "bad_request.body.processAfter.in_past",
        "process_after",
    )
    assert re.fullmatch(
        r"process_after lies \d+ ms in the past; at most 10000 are allowed", str(caught.value)
    )
    with pytest.raises(ForqError) as caught:
        call("produce", f"{queue}-dlq", "a")
    assert caught.value.code == "bad_request.queue.produce_to_dlq"


def test_looking(call: Call, queue: str):
    produced = call("produce", queue, "a")
    listed = {each.queue: each for each in call("queues")}[queue]
    assert (listed.is_dlq, listed.ready, listed.waiting, listed.bytes) == (False, 1, 0, 1)
    assert listed.oldest_ready_age_ms is None
    stats = call("queue_stats", queue)
    assert (stats.ready, stats.total) == (1, 1)
    assert 0 <= stats.oldest_ready_age_ms < 60_000
    message = call("message", queue, produced.id)
    assert (message.content, message.queue, message.priority, message.lease_until) == ("a", queue, 100, None)
    assert call("healthcheck") is None
    assert call("peek", f"{queue}-empty") == []


def test_queue_names_reach_the_server_as_they_are(call: Call):
    for queue in ("a/b", "a?b", "grüße", "x" * 65):
        with pytest.raises(ForqError) as caught:
            call("queue_stats", queue)
        assert caught.value.code == "bad_request.queue.invalid_name"


def test_queue_names_that_no_path_can_carry_are_not_sent():
    asked = []

    def answer(request: ClientRequest) -> HttpAnswer:
        asked.append(request)
        return answer_of(500)

    with calls_of("sync", "http://forq", handler=answer) as call:
        for name in ("", ".", ".."):
            with pytest.raises(ForqError) as caught:
                call("queue_stats", name)
            assert caught.value.code == "bad_request.queue.invalid_name"
            with pytest.raises(ForqError) as caught:
                call("revoke_token", name)
            assert caught.value.code == "not_found.token"
    assert asked == []


def test_content_that_utf8_cannot_carry(call: Call, queue: str):
    with pytest.raises(ForqError) as caught:
        call("produce", queue, "\ud800")
    assert caught.value.code == "bad_request.body.invalid"
    assert call("peek", queue) == []


def test_both_clients_have_the_same_methods():
    def methods(client: type) -> dict[str, list[str]]:
        found = inspect.getmembers(client, inspect.isfunction)
        return {name: list(inspect.signature(each).parameters) for name, each in found if name[0] != "_"}

    sync, aio = methods(ForqClient), methods(AsyncForqClient)
    assert sync.pop("close") == aio.pop("aclose")
    assert sync == aio


def test_every_code_of_the_api_is_an_error_of_its_side():
    for code, reason in REASONS.items():
        error = error_of(code, field="$.a.b", message="said")
        assert isinstance(error, ForqError if reason.status < 500 else ServiceError), code
        assert error.message_for_callers is (reason.status < 500), code
        assert (error.code, error.field, error.message) == (code, "a.b", "said")


def test_an_unknown_code_is_kept():
    for code, kind in (
        ("bad_request.new", InvalidRequest),
        ("bad_request.settings.new", InvalidSetting),
        ("new", ServiceError),
    ):
        error = error_of(code)
        assert (error.code, type(error)) == (code, kind)


def test_the_history(either: Call, queue: str):
    sent = either("produce", queue, "größe\0", attributes={"k": "v"})
    (delivery,) = either("receive", queue)
    before = either("history_range").last
    either("ack", queue, [delivery.receipt])
    page = either("history", before, queue=queue)
    (message,) = page.messages
    assert (message.id, message.content, message.outcome) == (sent.id, "größe\0", "acked")
    assert (message.attributes, message.history_id) == ({"k": "v"}, page.next)
    assert either("history_range").enabled
    wanted = HistoryFilter(attributes={"k": "v"}, outcome="acked", text="ö")
    found = either("search_history", queue, wanted, limit=5)
    assert [each.id for each in found.messages] == [sent.id]
    assert found.messages[0] == either("finished_message", queue, sent.id)
    assert either("search_history", queue, HistoryFilter(outcome="expired")).messages == []
    assert either("purge_history", queue) == 1
    with pytest.raises(MessageNotFound):
        either("finished_message", queue, sent.id)


def test_a_compaction(either: Call, queue: str):
    either("produce", queue, "x" * 200_000)
    either("purge", queue)
    assert either("start_compaction").started_by is None
    while (ended := either("compaction_info")).state == "running":
        pass
    assert (ended.state, ended.possible, ended.error) == ("done", True, None)
    assert ended.given_back_bytes >= 196_608
    assert either("pause_compaction").state == either("stop_compaction").state == "done"
