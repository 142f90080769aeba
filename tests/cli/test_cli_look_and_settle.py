"""`forq ack`, `nack`, `extend`, `release`, `queues`, `peek`, and how every command that talks to a server fails."""

import json
import re
import socket
import time
from uuid import uuid4

import pytest

from client.fake_time import Clock
from forq_trio import Delivery, ForqClient, NewMessage
from forq_trio.cli import output
from forq_trio.cli.by_id import BY_ID
from forq_trio.cli.connection import RETRY_SECONDS
from forq_trio.model.clock import machine_ms
from support.in_process import in_process_server
from support.proxy import Answer, Proxy

from .conftest import Forq

UNKNOWN = "00000000-0000-8000-8000-000000000000"


@pytest.fixture
def received(client: ForqClient, queue: str) -> Delivery:
    """A received message of `queue`."""
    client.produce(queue, "a")
    (delivery,) = client.receive(queue)
    return delivery


def test_ack(connected: Forq, client: ForqClient, queue: str, received: Delivery):
    outcome = connected("ack", queue, received.receipt)
    assert (outcome.code, outcome.out, outcome.err) == (0, "1 message acknowledged\n", "")
    assert client.queue_stats(queue).total == 0


def test_nack(connected: Forq, client: ForqClient, queue: str, received: Delivery):
    outcome = connected("nack", queue, received.receipt, "--delay", "500ms", "--reason", "no paper")
    assert (outcome.code, outcome.out) == (0, "1 message nacked\n")
    message = client.message(queue, received.id)
    assert (message.process_after - message.updated_at, message.last_error) == (500, "no paper")


def test_a_nack_with_a_bound_of_its_own(connected: Forq, client: ForqClient, queue: str, received: Delivery):
    outcome = connected("nack", queue, received.receipt, "--max-attempts", "2", "--delay", "0")
    assert (outcome.code, outcome.out) == (0, "1 message nacked\n")
    (again,) = client.receive(queue)
    outcome = connected("nack", queue, again.receipt, "--json")
    assert json.loads(outcome.out).items() >= {"ok": True, "failed": True}.items()


def test_a_nack_says_for_how_many_it_was_the_last(connected: Forq, client, queue: str, received: Delivery):
    outcome = connected("nack", queue, received.receipt, "--final")
    assert (outcome.code, outcome.out) == (0, "1 message nacked, 1 for the last time\n")


def test_extend(connected: Forq, client: ForqClient, queue: str, received: Delivery):
    before_ms = time.time_ns() // 1_000_000
    outcome = connected("extend", queue, received.receipt, "--lease", "2h")
    assert (outcome.code, outcome.out, outcome.err) == (0, "1 message extended\n", "")
    lease_until = client.message(queue, received.id).lease_until
    assert 0 <= lease_until - before_ms - 7_200_000 < 60_000
    result = json.loads(connected("extend", queue, received.receipt, "--json").out)
    assert result == {
        "receipt": received.receipt,
        "ok": True,
        "code": None,
        "message": None,
        "failed": False,
        "leaseUntil": client.message(queue, received.id).lease_until,
    }
    assert 0 <= result["leaseUntil"] - before_ms - 300_000 < 60_000


def test_release(connected: Forq, client: ForqClient, queue: str, received: Delivery):
    outcome = connected("release", queue, received.receipt, "--delay", "1.5")
    assert (outcome.code, outcome.out, outcome.err) == (0, "1 message released\n", "")
    message = client.message(queue, received.id)
    assert (message.process_after - message.updated_at, message.attempts) == (1_500, 0)
    assert connected("release", queue, received.receipt).code == 5


def test_receipts_that_are_no_longer_current(connected: Forq, queue: str, received: Delivery):
    outcome = connected("ack", queue, UNKNOWN, received.receipt)
    assert (outcome.code, outcome.out) == (5, "1 message acknowledged\n")
    why = (
        "the receipt is no longer current: its message was settled, removed, changed by its key, or"
        " delivered again (not_found.message)"
    )
    assert outcome.err == f"forq: {UNKNOWN}: {why}\n"
    outcome = connected("nack", queue, UNKNOWN, "nonsense", "--json")
    assert outcome.code == 1
    assert [json.loads(line)["code"] for line in outcome.out.splitlines()] == [
        "not_found.message",
        "bad_request.receipt.invalid",
    ]


@pytest.mark.parametrize("verb", ["ack", "nack", "extend", "release"])
def test_more_receipts_than_a_request_holds(connected: Forq, proxy: Proxy, queue: str, verb: str):
    assert connected(verb, queue, *[UNKNOWN] * 1_001).code == 5
    assert [len(body["receipts"]) for body in proxy.sent(verb)] == [1_000, 1]


def test_queues(alone: Forq):
    """Of a server without any; then of one whose only message is received."""
    outcome = alone("queues")
    assert (outcome.code, outcome.out) == (0, "")
    assert "no queue yet" in outcome.err
    alone("send", "orders", "a")
    alone("receive", "orders")
    assert alone("queues").out == (
        "queue\tready\tdelayed\tprocessing\theld\tfailed\twaiting\tpaused\thealth\norders\t0\t0\t1\t0\t0\t0\tno\tHealthy\n"
    )
    (line,) = alone("queues", "--json").out.splitlines()
    assert json.loads(line) == {
        "queue": "orders",
        "isDlq": False,
        "ready": 0,
        "delayed": 0,
        "processing": 1,
        "failed": 0,
        "waiting": 0,
        "oldestReadyAgeMs": None,
        "held": 0,
        "bytes": 1,
        "paused": False,
        "level": "fine",
        "verdict": "Healthy",
        "sendsRefused": None,
        "table": None,
    }
    on_a_terminal = alone("queues", terminal=True).out
    assert "processing" in on_a_terminal
    assert "\t" not in on_a_terminal
    alone("queue", "pause", "orders")
    assert alone("queues").out.splitlines()[1].split("\t")[7] == "yes"


def test_peek(connected: Forq, client: ForqClient, queue: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(output, "machine_ms", lambda: machine_ms() + 7_300_000)
    produced = client.produce(queue, "two\nlines and " + "x" * 100)
    outcome = connected("peek", queue, "-n", "5")
    header, row = outcome.out.splitlines()
    assert header.split("\t") == ["sequence", "id", "priority", "age", "attempts", "content"]
    assert row.split("\t") == [
        str(produced.sequence),
        produced.id,
        "100",
        "2 h",
        "0",
        "two lines and " + "x" * 45 + "…",
    ]
    assert json.loads(connected("peek", queue, "--json").out)["content"].startswith("two\nlines")


def test_peek_at_random(connected: Forq, client: ForqClient, queue: str):
    sent = [f"{number:02}" for number in range(20)]
    client.produce_many(queue, [NewMessage(content) for content in sent])
    rows = connected("peek", queue, "-n", "20", "--shuffle").out.splitlines()[1:]
    seen = [row.rpartition("\t")[2] for row in rows]
    assert seen != sent
    assert sorted(seen) == sent


def test_peek_at_nothing(connected: Forq, queue: str):
    outcome = connected("peek", queue)
    assert (outcome.code, outcome.out, outcome.err) == (5, "", f"No message of {queue} is ready.\n")


def test_cancel(connected: Forq, client: ForqClient, queue: str):
    waiting = client.produce(queue, "a")
    delayed = client.produce(queue, "b", delay_ms=60_000)
    outcome = connected("cancel", queue, waiting.id, delayed.id)
    assert (outcome.code, outcome.out, outcome.err) == (0, "2 messages cancelled\n", "")
    assert client.queue_stats(queue).total == 0
    outcome = connected("cancel", queue, waiting.id)
    assert (outcome.code, outcome.out) == (5, "0 messages cancelled\n")
    assert re.fullmatch(
        rf"forq: {waiting.id}: it has ended .+ ago: cancelled \(not_found\.message\)\n", outcome.err
    )
    outcome = connected("cancel", queue, UNKNOWN)
    assert outcome.err == f"forq: {UNKNOWN}: there is no such message (not_found.message)\n"


def test_cancel_of_messages_in_process(connected: Forq, client: ForqClient, queue: str, received: Delivery):
    waiting = client.produce(queue, "b")
    outcome = connected("cancel", queue, received.id)
    assert (outcome.code, outcome.out) == (1, "0 messages cancelled\n")
    assert "with --running it is cancelled (conflict.message_in_flight)" in outcome.err
    outcome = connected("cancel", queue, received.id, waiting.id, "--running", "--reason", "called off")
    assert (outcome.code, outcome.out, outcome.err) == (0, "2 messages cancelled\n", "")
    assert client.queue_stats(queue).total == 0
    assert not client.ack(queue, [received.receipt])[0].ok
    (told,) = client.withdrawn([queue], received.received_at - 1, wait_ms=0).messages
    assert (told.message_id, told.how, told.reason) == (received.id, "cancelled", "called off")


def test_a_reason_that_nobody_is_told_is_refused(connected: Forq, client: ForqClient, queue: str):
    waiting = client.produce(queue, "b")
    outcome = connected("cancel", queue, waiting.id, "--reason", "called off")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--reason needs --running" in outcome.err
    assert client.queue_stats(queue).ready == 1


@pytest.mark.parametrize("name", BY_ID)
def test_a_command_on_ids_says_what_is_refused(name: str, connected: Forq, queue: str):
    outcome = connected(name, queue, UNKNOWN, "nonsense", "--json")
    results = [json.loads(line) for line in outcome.out.splitlines()]
    assert [(each["id"], each["code"]) for each in results] == [
        (UNKNOWN, "not_found.message"),
        ("nonsense", "bad_request.messageId.invalid"),
    ]
    assert outcome.code == 1
    assert connected(name, queue, UNKNOWN).out == f"0 messages {BY_ID[name].done}\n"


COMMANDS = {
    ("send", "q", "x"): "produce",
    ("receive", "q"): "consume",
    ("ack", "q", UNKNOWN): "consume",
    ("queues",): "browse",
    ("queue", "purge", "q", "--yes"): "admin",
}
"""A command of each kind, and the scope that it needs. Every scope of a route is in tests/http/access."""
EVERY_KIND = pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)


@EVERY_KIND
def test_a_server_that_fails(connected: Forq, proxy: Proxy, arguments: tuple[str, ...]):
    proxy.spoiled += [Answer.error("internal"), Answer(200, b"<html>")]
    outcome = connected(*arguments)
    assert (outcome.code, outcome.out) == (1, "")
    told = "forq: an error of the server; whether the change was made is not known (internal)\n"
    unknown = "forq: whether the message is stored is not known\n" if arguments[0] == "send" else ""
    assert outcome.err == unknown + told
    outcome = connected(*arguments)
    assert outcome.code == 1
    assert outcome.err.startswith(f"{unknown}forq: the answer is not one of Forq's")


def test_a_wrong_secret(connected: Forq, url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORQ_AUTH_SECRET", "wrong")
    outcome = connected("queues")
    assert (outcome.code, outcome.err) == (
        4,
        "forq: the key is missing or wrong, or its token expired or was revoked,"
        f" says the server at {url} (unauthorized);"
        " FORQ_AUTH_SECRET has to hold the server's secret or an access token\n",
    )
    for secret, sentence in (
        ("", "FORQ_AUTH_SECRET is not set"),
        ("é", "FORQ_AUTH_SECRET has characters that are not ASCII"),
        ("a\n", "FORQ_AUTH_SECRET ends with a line end"),
        ("a ", "FORQ_AUTH_SECRET has blanks at an end"),
        ('"a"', "FORQ_AUTH_SECRET has quotes around it"),
    ):
        monkeypatch.setenv("FORQ_AUTH_SECRET", secret)
        outcome = connected("queues")
        assert outcome.code == 2
        assert sentence in outcome.err


@pytest.fixture(scope="module")
def useless_token(client: ForqClient) -> str:
    """It allows what none of these commands does, on a queue that none of them names."""
    return client.create_token(f"t-{uuid4().hex}", ["redrive"], "nothing").token


@EVERY_KIND
def test_a_token_that_does_not_allow_it(
    connected: Forq, useless_token: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORQ_AUTH_SECRET", useless_token)
    outcome = connected(*arguments)
    assert outcome.code == 4
    assert f"has not the scope {COMMANDS[arguments]} for this queue (forbidden)" in outcome.err


def test_after_too_many_wrong_secrets(forq: Forq, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORQ_AUTH_SECRET", "wrong")
    with in_process_server(lock_out=True) as url:
        for _ in range(5):
            assert "(unauthorized)" in forq("queues", "--url", url).err
        outcome = forq("queues", "--url", url)
    assert outcome.code == 4
    assert "(too_many_requests)" in outcome.err


@pytest.mark.parametrize("url", ["localhost:8080", "http://[", "http://a:b"])
def test_what_is_no_url(forq: Forq, url: str):
    outcome = forq("queues", "--url", url)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"forq: {url!r} is not the URL of a server, such as http://localhost:8080")


def test_the_password_of_a_url_that_is_none_is_not_told(forq: Forq):
    outcome = forq("queues", "--url", "http://me:geheim@forq:0")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("forq: 'http://forq:0' is not the URL of a server")


def test_nobody_listens(forq: Forq, monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        outcome = forq("queues", "--url", url)
    assert (outcome.code, outcome.err) == (
        3,
        f"forq: no server can be reached at {url} (Connection refused)\n",
    )
    assert 0 < sum(clock.slept) <= RETRY_SECONDS
