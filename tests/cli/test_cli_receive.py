"""`forq receive`: what is printed, what is acknowledged, what is given back."""

import io
import json
import sys
import threading
from collections.abc import Callable

import pytest

from client.fake_time import Clock
from forq_trio import ForqClient, NewMessage
from forq_trio.cli.commands import run
from forq_trio.cli.exits import Exit
from support.proxy import CUT_OFF, LOST, Answer, Proxy

from .conftest import NOWHERE, Forq, Stream


def send(client: ForqClient, queue: str, *contents: str) -> None:
    client.produce_many(queue, [NewMessage(content) for content in contents])


def left(client: ForqClient, queue: str) -> list[tuple[str, int]]:
    """Contents and attempts of the messages that are ready; there are no others."""
    found = [(each.content, each.attempts) for each in client.peek(queue, limit=100)]
    assert client.queue_stats(queue).total == len(found)
    return found


@pytest.fixture
def three(connected: Forq, client: ForqClient, queue: str) -> Forq:
    """The command, and three messages in `queue`."""
    send(client, queue, "a", "b", "c")
    return connected


def test_one_message_with_its_receipt(three: Forq, client: ForqClient, queue: str):
    outcome = three("receive", queue)
    receipt, content = outcome.out.removesuffix("\n").split("\t")
    assert (outcome.code, content, outcome.err) == (0, "a", "")
    stats = client.queue_stats(queue)
    assert (stats.processing, stats.ready) == (1, 2)
    assert client.ack(queue, [receipt])[0].ok


def test_acknowledged_messages_are_printed_without_receipts(three: Forq, client: ForqClient, queue: str):
    outcome = three("receive", queue, "--max", "2", "--ack")
    assert (outcome.code, outcome.out) == (0, "a\nb\n")
    assert left(client, queue) == [("c", 0)]


def test_json_is_one_object_a_line(three: Forq, client: ForqClient, queue: str):
    outcome = three("receive", queue, "--max", "10", "--json")
    received = [json.loads(line) for line in outcome.out.splitlines()]
    assert [each["content"] for each in received] == ["a", "b", "c"]
    assert {"id", "attempts", "sequence", "receivedAt", "leaseUntil"} < received[0].keys()
    assert (received[0]["attributes"], received[0]["group"]) == ({}, None)
    assert all(result.ok for result in client.ack(queue, [each["receipt"] for each in received]))


def test_all_that_a_message_has(connected: Forq, queue: str):
    labels = ("--priority", "7", "--group", "g", "--attribute", "colour=\x1bred")
    connected("send", queue, "a", *labels)
    shown = connected("receive", queue, terminal=True).out
    assert [line.partition("\x1b[0m")[0].removeprefix("\x1b[2m") for line in shown.splitlines()[2:5]] == [
        "priority 7",
        "group g",
        "colour=\\x1bred",
    ]
    connected("send", queue, "b", *labels)
    received = json.loads(connected("receive", queue, "--json").out)
    assert (received["priority"], received["group"]) == (7, "g")
    assert received["attributes"] == {"colour": "\x1bred"}


def test_by_attributes(connected: Forq, client: ForqClient, queue: str):
    for region, tier in (("eu", "free"), ("eu", "gold"), ("us", "gold"), ("eu", "")):
        client.produce(
            queue, f"{region} {tier}", attributes={"region": region} | ({"tier": tier} if tier else {})
        )

    def found(*where: str) -> list[str]:
        options = [part for each in where for part in ("--where", each)]
        outcome = connected("receive", queue, "--max", "9", *options)
        receipts, contents = zip(*(line.split("\t") for line in outcome.out.splitlines()), strict=True)
        client.release(queue, receipts)
        return list(contents)

    assert found("region=us") == ["us gold"]
    assert found("region=eu", "tier!=free") == ["eu gold"]
    assert found("region=eu", "tier?!=free") == ["eu gold", "eu "]
    assert connected("receive", queue, "--where", "region=asia").code == Exit.NOTHING


@pytest.mark.parametrize("condition", ["region", "?!=eu"])
def test_what_is_no_condition(connected: Forq, queue: str, condition: str):
    assert connected("receive", queue, "--where", condition).code == 2


def test_at_random(connected: Forq, client: ForqClient, queue: str):
    """That twenty messages come in order by chance has never happened to anybody."""
    sent = [f"{number:02}" for number in range(20)]
    send(client, queue, *sent)
    peeked = connected("peek", queue, "--shuffle", "-n", "20", "--json").out.splitlines()
    seen = [json.loads(line)["content"] for line in peeked]
    received = connected("receive", queue, "--shuffle", "--max", "20", "--ack").out.splitlines()
    assert sorted(seen) == sorted(received) == sent
    assert sent not in (seen, received)


def test_to_look_is_another_command(forq: Forq):
    outcome = forq("receive", "orders", "--peek", "--url", NOWHERE)
    assert outcome.code == 2
    assert "No such option '--peek'" in outcome.err
    assert "`forq peek`" in forq("receive", "--help").out


def test_nothing_to_receive(connected: Forq, proxy: Proxy, queue: str):
    outcome = connected("receive", queue)
    assert (outcome.code, outcome.out, outcome.err) == (5, "", "")
    assert proxy.requests == [("receive", {})]


def test_waiting_and_lease(connected: Forq, client: ForqClient, queue: str):
    assert connected("receive", queue, "--wait", "50ms").code == 5

    client.configure(queue, max_attempts=7)

    def send_to_who_waits() -> None:
        while client.queue_stats(queue).waiting == 0:
            pass
        client.produce(queue, "a")

    sender = threading.Thread(target=send_to_who_waits)
    sender.start()
    received = json.loads(connected("receive", queue, "--wait", "30", "--lease", "2m", "--json").out)
    sender.join()
    message = client.message(queue, received["id"])
    assert message.lease_until == received["leaseUntil"] == message.processing_started_at + 120_000


def test_more_than_a_request_holds(connected: Forq, client: ForqClient, proxy: Proxy, queue: str):
    send(client, queue, *["x"] * 250)
    outcome = connected("receive", queue, "--max", "220", "--wait", "30", "--ack")
    assert outcome.out == "x\n" * 220
    assert proxy.sent("receive") == [{"max": 100, "waitMs": 30_000}, {"max": 100}, {"max": 20}]


def test_on_a_terminal_contents_cannot_command_it(connected: Forq, client: ForqClient, queue: str):
    client.produce(queue, "a\x1b[31mb\x9b\tc")
    outcome = connected("receive", queue, terminal=True)
    assert "a\\x1b[31mb\\x9b\tc" in outcome.out
    assert "attempt 1" in outcome.out
    assert "receipt " in outcome.out


def test_following_until_as_many_have_come(three: Forq, proxy: Proxy, queue: str):
    outcome = three("receive", queue, "--follow", "--max", "3", "--ack")
    assert (outcome.code, outcome.out) == (0, "a\nb\nc\n")
    assert proxy.sent("receive") == [{"max": 3, "waitMs": 30_000}]


def test_following_outlives_a_poll_that_breaks_off(
    three: Forq, proxy: Proxy, queue: str, monkeypatch: pytest.MonkeyPatch
):
    Clock(monkeypatch)
    proxy.spoiled.append(CUT_OFF)
    outcome = three("receive", queue, "--follow", "--max", "1", "--ack")
    assert (outcome.code, outcome.out) == (0, "a\n")


def test_following_a_server_that_breaks_off_every_poll_comes_to_an_end(
    three: Forq, proxy: Proxy, queue: str, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(monkeypatch)
    proxy.spoiled += [CUT_OFF] * 20
    outcome = three("receive", queue, "--follow")
    assert outcome.code == 3
    assert clock.slept[:3] == [0.1, 0.2, 0.4]
    assert 20 < sum(clock.slept) <= 30
    told, end = outcome.err.splitlines()
    assert "did not answer" in end
    assert told == f"{end}; trying again for 30 s"


def test_following_says_that_the_server_is_away_and_that_it_is_back(
    three: Forq, proxy: Proxy, queue: str, monkeypatch: pytest.MonkeyPatch
):
    """It was silent for 30 seconds."""
    clock = Clock(monkeypatch)
    proxy.spoiled += [CUT_OFF] * 2
    outcome = three("receive", queue, "--follow", "--max", "1", "--ack")
    away, back = outcome.err.splitlines()
    assert away.endswith("; trying again for 30 s")
    assert (outcome.out, back) == ("a\n", "forq: the server answers again")
    assert clock.slept == [0.1, 0.2]


def test_following_no_server_says_so_after_a_second(forq: Forq, queue: str, monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch)
    outcome = forq("receive", queue, "--follow", "--url", NOWHERE)
    told, end = outcome.err.splitlines()
    assert outcome.code == 3
    assert told.startswith(f"forq: no server can be reached at {NOWHERE} ")
    assert told.endswith("; trying again for 30 s")
    assert end.startswith(f"forq: no server can be reached at {NOWHERE} ")
    assert 20 < sum(clock.slept) < 70


def test_an_acknowledgement_that_broke_off_is_repeated(
    three: Forq, client: ForqClient, proxy: Proxy, queue: str, monkeypatch: pytest.MonkeyPatch
):
    """The first try settled the message, only its answer was lost: the second finds nothing, and that is no error."""
    clock = Clock(monkeypatch)
    proxy.spoiled += [None, LOST]
    outcome = three("receive", queue, "--ack")
    assert (outcome.code, outcome.out, outcome.err) == (0, "a\n", "")
    assert [action for action, _ in proxy.requests] == ["receive", "ack", "ack"]
    assert clock.slept == [0.1]
    assert left(client, queue) == [("b", 0), ("c", 0)]


class Pipe(io.BytesIO):
    """Calls `on_line` with the number of each line before it is written."""

    def __init__(self, on_line: Callable[[int], None]) -> None:
        super().__init__()
        self._on_line = on_line

    def write(self, data: bytes) -> int:  # type: ignore[override]  # bytes are all that is written here
        if data:
            self._on_line(self.getvalue().count(b"\n") + 1)
        return super().write(data)


def run_into(pipe: Pipe, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[object, str]:
    """The exit code of a command whose output goes into a pipe, and what it said on stderr."""
    errors = Stream()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(pipe, encoding="utf-8", write_through=True))
        patch.setattr(sys, "stderr", errors)
        try:
            code: object = run(arguments)
        except SystemExit as exit:
            code = exit.code
    return code, errors.text()


def test_a_lease_that_ended_before_the_ack_is_told(
    connected: Forq, client: ForqClient, queue: str, monkeypatch: pytest.MonkeyPatch
):
    """While the message is printed somebody else receives it."""
    client.produce(queue, "a")

    def receive_it(line: int) -> None:
        (delivery,) = client.receive(queue)
        assert delivery.attempts == 2

    pipe = Pipe(receive_it)
    code, errors = run_into(pipe, monkeypatch, "receive", queue, "--lease", "0", "--ack")
    assert (code, pipe.getvalue()) == (1, b"a\n")
    assert "forq: 1 message printed above could not be acknowledged" in errors


@pytest.mark.parametrize(("arguments", "hint"), [((), "is ready"), (("--wait", "10ms"), "came")])
def test_nothing_is_told_to_people_only(connected: Forq, queue: str, arguments: tuple[str, ...], hint: str):
    seen = connected("receive", queue, *arguments, terminal=True)
    assert (seen.code, seen.out, seen.err) == (5, "", f"No message of {queue} {hint}.\n")
    piped = connected("receive", queue, *arguments)
    assert (piped.code, piped.out, piped.err) == (5, "", "")


def close_at_the_second(line: int) -> None:
    if line == 2:
        raise BrokenPipeError(32, "Broken pipe")


def interrupt_at_the_second(line: int) -> None:
    if line == 2:
        raise KeyboardInterrupt


@pytest.mark.parametrize(("on_line", "code"), [(close_at_the_second, 1), (interrupt_at_the_second, 130)])
def test_what_could_not_be_printed_is_given_back_at_once(
    three: Forq,
    client: ForqClient,
    queue: str,
    monkeypatch: pytest.MonkeyPatch,
    on_line: Callable[[int], None],
    code: int,
):
    pipe = Pipe(on_line)
    ended, errors = run_into(pipe, monkeypatch, "receive", queue, "--max", "3", "--ack")
    assert (ended, pipe.getvalue()) == (code, b"a\n")
    assert left(client, queue) == [("b", 0), ("c", 0)]
    assert "Traceback" not in errors


def test_giving_back_may_fail_and_is_told(
    three: Forq, proxy: Proxy, queue: str, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(line: int) -> None:
        proxy.spoiled.append(Answer.error("internal"))
        raise KeyboardInterrupt

    code, errors = run_into(Pipe(interrupt), monkeypatch, "receive", queue)
    assert code == 130
    assert "unprinted messages come again only when their lease ends" in errors
