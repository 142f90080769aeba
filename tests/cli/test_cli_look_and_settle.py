"""`forq ack`, `nack`, `extend`, `release`, `queues`, `peek`, and how every command that talks to a server fails."""

import json
import socket

import pytest

from client.fake_forq import FakeForq, error
from client.fake_time import Clock
from forq_trio.cli.options import RETRY_SECONDS

from .conftest import Forq

UNKNOWN = "00000000-0000-8000-8000-000000000000"


@pytest.fixture
def receipt(connected: Forq, fake: FakeForq) -> str:
    """The receipt of a received message of `orders`."""
    connected("send", "orders", "a")
    connected("receive", "orders")
    receipt = fake.queues["orders"][0].receipt
    assert receipt is not None
    return receipt


def test_ack(connected: Forq, fake: FakeForq, receipt: str):
    outcome = connected("ack", "orders", receipt)
    assert (outcome.code, outcome.out, outcome.err) == (0, "1 message acknowledged\n", "")
    assert fake.queues["orders"] == []


def test_nack(connected: Forq, fake: FakeForq, receipt: str):
    outcome = connected("nack", "orders", receipt, "--delay", "500ms", "--reason", "no paper")
    assert (outcome.code, outcome.out) == (0, "1 message given back\n")
    assert fake.requests[-1][2] == {"receipts": [receipt], "delayMs": 500, "reason": "no paper"}


def test_extend(connected: Forq, fake: FakeForq, receipt: str):
    outcome = connected("extend", "orders", receipt, "--lease", "2m")
    assert (outcome.code, outcome.out, outcome.err) == (0, "1 message extended\n", "")
    assert fake.requests[-1][1:] == (
        "/api/v1/queues/orders/messages/extend",
        {"receipts": [receipt], "leaseMs": 120_000},
    )
    assert json.loads(connected("extend", "orders", receipt, "--json").out)["leaseUntil"] is not None
    assert fake.requests[-1][2] == {"receipts": [receipt]}


def test_release(connected: Forq, fake: FakeForq, receipt: str):
    outcome = connected("release", "orders", receipt, "--delay", "1.5")
    assert (outcome.code, outcome.out, outcome.err) == (0, "1 message released\n", "")
    assert fake.requests[-1][2] == {"receipts": [receipt], "delayMs": 1_500}
    assert fake.queues["orders"][0].attempts == 0
    assert connected("release", "orders", receipt).code == 5


def test_receipts_that_are_no_longer_current(connected: Forq, receipt: str):
    outcome = connected("ack", "orders", UNKNOWN, receipt)
    assert (outcome.code, outcome.out) == (5, "1 message acknowledged\n")
    assert outcome.err.startswith(f"forq: {UNKNOWN}: there is no such message, or the receipt is no longer")
    outcome = connected("nack", "orders", UNKNOWN, "nonsense", "--json")
    assert outcome.code == 1
    assert [json.loads(line)["code"] for line in outcome.out.splitlines()] == [
        "not_found.message",
        "bad_request.receipt.invalid",
    ]


def test_more_receipts_than_a_request_holds(connected: Forq, fake: FakeForq):
    for verb in ("ack", "nack", "extend", "release"):
        fake.requests.clear()
        assert connected(verb, "orders", *[UNKNOWN] * 1_001).code == 5
        assert [len(members["receipts"]) for _, _, members in fake.requests] == [1_000, 1]


def test_queues_into_a_pipe(connected: Forq, receipt: str):
    assert connected("queues").out == (
        "queue\tready\tdelayed\tprocessing\theld\tfailed\twaiting\tpaused\norders\t0\t0\t1\t0\t0\t0\tno\n"
    )
    connected("queue", "pause", "orders")
    assert connected("queues").out.endswith("\tyes\n")


def test_queues_on_a_terminal(connected: Forq, receipt: str):
    outcome = connected("queues", terminal=True)
    assert "processing" in outcome.out
    assert "\t" not in outcome.out


def test_queues_as_json(connected: Forq, receipt: str):
    (line,) = connected("queues", "--json").out.splitlines()
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
    }


def test_no_queue_yet(connected: Forq):
    outcome = connected("queues")
    assert (outcome.code, outcome.out) == (0, "")
    assert "no queue yet" in outcome.err


def test_peek(connected: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("time.time_ns", lambda: (1_700_000_000_000 + 7_300_000) * 1_000_000)
    connected("send", "orders", "two\nlines and " + "x" * 100)
    outcome = connected("peek", "orders", "-n", "5")
    header, row = outcome.out.splitlines()
    assert header.split("\t") == ["sequence", "id", "priority", "age", "attempts", "content"]
    assert row.split("\t") == [
        "1",
        fake.queues["orders"][0].id,
        "100",
        "2 h",
        "0",
        "two lines and " + "x" * 45 + "…",
    ]
    assert json.loads(connected("peek", "orders", "--json").out)["content"].startswith("two\nlines")


def test_peek_at_random(connected: Forq):
    connected("send", "orders", stdin=b"a\nb\n")
    assert connected("peek", "orders", "--shuffle").out.endswith("\tb\n")


def test_peek_at_nothing(connected: Forq):
    outcome = connected("peek", "orders")
    assert (outcome.code, outcome.out, outcome.err) == (5, "", "No message of orders is ready.\n")


COMMANDS = [
    ("send", "q", "x"),
    ("receive", "q"),
    ("ack", "q", UNKNOWN),
    ("nack", "q", UNKNOWN),
    ("extend", "q", UNKNOWN),
    ("release", "q", UNKNOWN),
    ("queues",),
    ("peek", "q"),
    ("queue", "show", "q"),
    ("queue", "set", "q", "--lease", "1"),
    ("queue", "purge", "q", "--yes"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_failures(
    connected: Forq, fake: FakeForq, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    fake.answers.append(error(500, "internal"))
    outcome = connected(*arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "forq: the server met an error of its own; its log tells more (500 internal)\n"

    fake.answers.append(error(429, "too_many_requests"))
    assert connected(*arguments).code == 4

    fake.answers.append(error(403, "forbidden", scope="consume"))
    outcome = connected(*arguments)
    assert outcome.code == 4
    assert "it lacks the scope: consume (403 forbidden)" in outcome.err

    fake.answers.append((200, {}, b"<html>"))
    outcome = connected(*arguments)
    assert outcome.code == 1
    assert outcome.err.startswith("forq: the answer is not one of Forq's")

    monkeypatch.setenv("FORQ_AUTH_SECRET", "wrong")
    outcome = connected(*arguments)
    assert (outcome.code, outcome.err) == (
        4,
        "forq: the server does not accept the secret (401 unauthorized)\n",
    )

    for secret, sentence in (("", "FORQ_AUTH_SECRET is not set"), ("é", "that an HTTP header cannot carry")):
        monkeypatch.setenv("FORQ_AUTH_SECRET", secret)
        outcome = connected(*arguments)
        assert outcome.code == 2
        assert sentence in outcome.err


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "http://", "http://[", "http://a:b"])
def test_what_is_no_url(forq: Forq, url: str):
    outcome = forq("queues", "--url", url)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"forq: {url!r} is not the URL of a server")


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
