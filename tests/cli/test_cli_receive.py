"""`forq receive`: what is printed, what is acknowledged, what is given back."""

import io
import json
import sys

import pytest

from client.fake_forq import FakeForq, error
from client.fake_time import Clock
from forq_trio.cli import run

from .conftest import Forq, Stream


@pytest.fixture
def three(connected: Forq, fake: FakeForq) -> Forq:
    """A server with three messages in `orders`."""
    connected("send", "orders", stdin=b"a\nb\nc\n")
    fake.requests.clear()
    return connected


def test_one_message_with_its_receipt(three: Forq, fake: FakeForq):
    outcome = three("receive", "orders")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{fake.queues['orders'][0].receipt}\ta\n", "")
    assert fake.requests == [("POST", "/api/v1/queues/orders/messages/receive", {"max": 1, "waitMs": 0})]


def test_acknowledged_messages_are_printed_without_receipts(three: Forq, fake: FakeForq):
    outcome = three("receive", "orders", "--max", "2", "--ack")
    assert (outcome.code, outcome.out) == (0, "a\nb\n")
    assert [message.content for message in fake.queues["orders"]] == ["c"]


def test_json_is_one_object_a_line(three: Forq, fake: FakeForq):
    outcome = three("receive", "orders", "--max", "10", "--json")
    received = [json.loads(line) for line in outcome.out.splitlines()]
    assert [each["content"] for each in received] == ["a", "b", "c"]
    assert received[0]["receipt"] == fake.queues["orders"][0].receipt
    assert {"id", "attempts", "sequence", "receivedAt", "leaseUntil"} < received[0].keys()


def test_all_that_a_message_has(connected: Forq):
    labels = ("--priority", "7", "--group", "g", "--attribute", "colour=\x1bred")
    connected("send", "orders", "a", *labels)
    shown = connected("receive", "orders", "--peek", terminal=True).out
    assert "0 attempts" in shown
    assert "receipt" not in shown
    shown = connected("receive", "orders", terminal=True).out
    assert [line.partition("\x1b[0m")[0].removeprefix("\x1b[2m") for line in shown.splitlines()[2:5]] == [
        "priority 7",
        "group g",
        "colour=\\x1bred",
    ]
    connected("send", "orders", "b", *labels)
    received = json.loads(connected("receive", "orders", "--json").out)
    assert (received["priority"], received["group"]) == (7, "g")
    assert received["attributes"] == {"colour": "\x1bred"}


def test_at_random(three: Forq, fake: FakeForq):
    assert three("receive", "orders", "--shuffle", "--ack").out == "c\n"
    assert fake.requests[0][2] == {"max": 1, "waitMs": 0, "order": "shuffle"}


def test_only_looking(three: Forq, fake: FakeForq):
    assert three("receive", "orders", "--peek").out == "a\n"
    assert three("receive", "orders", "--peek", "--shuffle", "--max", "2").out == "c\nb\n"
    assert json.loads(three("receive", "orders", "--peek", "--json").out)["status"] == "ready"
    assert [(each.receipt, each.attempts) for each in fake.queues["orders"]] == [(None, 0)] * 3
    assert three("receive", "nothing", "--peek").code == 5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--ack",), "--peek takes nothing"),
        (("--follow",), "--peek takes nothing"),
        (("--wait", "1"), "--peek takes nothing"),
        (("--lease", "0"), "--peek takes nothing"),
        (("--max", "101"), "--peek shows at most 100 messages"),
    ],
)
def test_what_does_not_go_with_looking(
    connected: Forq, fake: FakeForq, arguments: tuple[str, ...], sentence: str
):
    outcome = connected("receive", "orders", "--peek", *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err
    assert fake.requests == []


def test_nothing_to_receive(connected: Forq, fake: FakeForq):
    outcome = connected("receive", "orders")
    assert (outcome.code, outcome.out, outcome.err) == (5, "", "")
    assert len(fake.requests) == 1


def test_waiting_and_lease(connected: Forq, fake: FakeForq):
    assert connected("receive", "orders", "--wait", "50ms", "--lease", "2m").code == 5
    assert fake.requests[0][2] == {"max": 1, "waitMs": 50, "leaseMs": 120_000}


def test_more_than_a_request_holds(connected: Forq, fake: FakeForq):
    connected("send", "orders", stdin=b"x\n" * 250)
    fake.requests.clear()
    outcome = connected("receive", "orders", "--max", "220", "--wait", "30", "--ack")
    assert len(outcome.out.splitlines()) == 220
    wanted = [
        (members["max"], members["waitMs"]) for _, target, members in fake.requests if "receive" in target
    ]
    assert wanted == [(100, 30_000), (100, 0), (20, 0)]


def test_on_a_terminal_contents_cannot_command_it(connected: Forq):
    connected("send", "orders", "a\x1b[31mb\x9b\tc")
    outcome = connected("receive", "orders", terminal=True)
    assert "a\\x1b[31mb\\x9b\tc" in outcome.out
    assert "attempt 1" in outcome.out
    assert "receipt " in outcome.out


def test_following_until_as_many_have_come(three: Forq, fake: FakeForq):
    outcome = three("receive", "orders", "--follow", "--max", "3", "--ack")
    assert (outcome.code, outcome.out) == (0, "a\nb\nc\n")
    assert fake.requests[0][2]["waitMs"] == 30_000


def test_following_outlives_a_poll_that_breaks_off(
    three: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch
):
    Clock(monkeypatch)
    fake.answers.append((200, {"Content-Length": "999", "Connection": "close"}, b"{"))
    outcome = three("receive", "orders", "--follow", "--max", "1", "--ack")
    assert (outcome.code, outcome.out) == (0, "a\n")


def test_following_a_server_that_breaks_off_every_poll_comes_to_an_end(
    three: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(monkeypatch)
    fake.answers.extend([(200, {"Content-Length": "999", "Connection": "close"}, b"{")] * 20)
    outcome = three("receive", "orders", "--follow")
    assert outcome.code == 3
    assert clock.slept[:3] == [0.1, 0.2, 0.4]
    assert 20 < sum(clock.slept) <= 30
    assert "did not answer" in outcome.err


def test_an_acknowledgement_that_broke_off_is_repeated(
    three: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch
):
    """The first try settled the message, only its answer was lost: the second finds nothing, and that is no error."""
    clock = Clock(monkeypatch)
    settle = FakeForq.settle

    def settle_and_break_off(
        self: FakeForq, queue: str, verb: str, receipt: str, members: dict[str, object]
    ) -> dict[str, object]:
        monkeypatch.setattr(FakeForq, "settle", settle)
        settle(self, queue, verb, receipt, members)
        raise ConnectionAbortedError

    monkeypatch.setattr(FakeForq, "settle", settle_and_break_off)
    outcome = three("receive", "orders", "--ack")
    assert (outcome.code, outcome.out, outcome.err) == (0, "a\n", "")
    assert [target.rpartition("/")[2] for _, target, _ in fake.requests] == ["receive", "ack", "ack"]
    assert clock.slept == [0.1]


def test_a_lease_that_ended_before_the_ack_is_told(
    three: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch
):
    settle = FakeForq.settle

    def lose(
        self: FakeForq, queue: str, verb: str, receipt: str, members: dict[str, object]
    ) -> dict[str, object]:
        return settle(self, queue, verb, "00000000-0000-8000-8000-000000000000", members)

    monkeypatch.setattr(FakeForq, "settle", lose)
    outcome = three("receive", "orders", "--ack")
    assert (outcome.code, outcome.out) == (1, "a\n")
    assert "forq: 1 message printed above could not be acknowledged" in outcome.err


class ClosingPipe(io.BytesIO):
    """A reader that goes away after the first line."""

    def write(self, data: bytes) -> int:  # type: ignore[override]  # bytes are all that is written here
        if self.getvalue():
            raise BrokenPipeError(32, "Broken pipe")
        return super().write(data)


class Interrupted(io.BytesIO):
    """Ctrl-C comes while the second line is written."""

    def write(self, data: bytes) -> int:  # type: ignore[override]  # bytes are all that is written here
        if self.getvalue():
            raise KeyboardInterrupt
        return super().write(data)


@pytest.mark.parametrize(("kind", "code"), [(ClosingPipe, 1), (Interrupted, 130)])
def test_what_could_not_be_printed_is_given_back_at_once(
    three: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch, kind: type[io.BytesIO], code: int
):
    pipe, errors = kind(), Stream()
    out = io.TextIOWrapper(pipe, encoding="utf-8", write_through=True)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", errors)
        try:
            ended = run(["receive", "orders", "--max", "3", "--ack"])
        except SystemExit as exit:
            ended = exit.code
    assert ended == code
    assert pipe.getvalue() == b"a\n"
    assert [(each.content, each.receipt, each.attempts) for each in fake.queues["orders"]] == [
        ("b", None, 0),
        ("c", None, 0),
    ]
    assert "Traceback" not in errors.text()


def test_giving_back_may_fail_and_is_told(three: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch):
    def prepare_failures() -> None:
        fake.answers.extend([error(500, "internal")] * 2)

    class FailingPipe(io.BytesIO):
        def write(self, data: bytes) -> int:  # type: ignore[override]  # bytes are all that is written here
            prepare_failures()
            raise KeyboardInterrupt

    errors = Stream()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(FailingPipe(), encoding="utf-8", write_through=True))
        patch.setattr(sys, "stderr", errors)
        assert run(["receive", "orders"]) == 130
    assert "unprinted messages come again only when their lease ends" in errors.text()
