"""Ctrl-C: what a command that is interrupted says is what the server has."""

import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forq_trio import ForqClient, NewMessage
from forq_trio.cli.interrupts import Interrupts
from support.effort import count
from support.proxy import CUT_OFF, LOST, Answer, Proxy
from support.real_server import environment
from support.redrives import many_dead_letters

from .conftest import Forq
from .test_cli_processes import command

LINES = [f"line {number}" for number in range(1, 2_501)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()

Press = Callable[[], None]


@pytest.fixture
def press(monkeypatch: pytest.MonkeyPatch) -> Iterator[Press]:
    """Presses Ctrl-C from another thread; returns when the command has noticed, or has no handler of its own."""
    noticed, notice = threading.Event(), Interrupts._on_signal

    def noticing(*arguments) -> None:
        try:
            notice(*arguments)
        finally:
            noticed.set()

    def press() -> None:
        noticed.clear()
        main = threading.main_thread().ident
        signal.pthread_kill(main, signal.SIGINT)
        # Python does not notice a signal that comes just before it waits for a socket. Another signal ends the wait.
        for _ in range(600):
            if noticed.wait(0.05):
                return
            signal.pthread_kill(main, signal.SIGUSR1)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                return
        raise AssertionError("the command does not notice Ctrl-C")

    monkeypatch.setattr(Interrupts, "_on_signal", noticing)
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    yield press
    signal.signal(signal.SIGUSR1, before)


def at_request(proxy: Proxy, request: int, moment: str, act: Press) -> None:
    """Call `act` at this moment of the request that has this number, counted from 1."""
    proxy.at = lambda now: act() if (len(proxy.requests), now) == (request, moment) else None


def test_ctrl_c_is_put_off_and_the_second_one_is_not():
    put_off = False
    with pytest.raises(KeyboardInterrupt), Interrupts():
        put_off = signal.raise_signal(signal.SIGINT) is None
    assert put_off
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            raise AssertionError("Ctrl-C was forgotten")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("batch", "moment"), [(1, "asked"), (2, "answered"), (3, "asked")])
def test_sending_ends_after_the_batch_under_way_and_can_go_on(
    connected: Forq, client: ForqClient, proxy: Proxy, press: Press, queue: str, batch: int, moment: str
):
    at_request(proxy, batch, moment, press)
    outcome = connected("send", queue, "--json", stdin=TEXT)
    sent = min(1_000 * batch, 2_500)
    assert outcome.code == 130
    summary = {"queue": queue, "sent": sent, "rejected": [], "unknown": None, "nextLine": sent + 1}
    assert json.loads(outcome.out) == summary
    assert client.queue_stats(queue).total == sent
    assert connected("send", queue, "--from-line", str(sent + 1), stdin=TEXT).code == 0
    received = [message.content for _ in range(25) for message in client.receive(queue, max_messages=100)]
    assert received == LINES


@pytest.mark.parametrize(("answer", "stored"), [(LOST, 2_000), (CUT_OFF, 1_000)])
def test_who_does_not_wait_is_told_the_lines_that_are_not_known(
    connected: Forq, client: ForqClient, proxy: Proxy, press: Press, queue: str, answer: Answer, stored: int
):
    def press_twice() -> None:
        press()
        press()

    proxy.spoiled += [None, answer]
    at_request(proxy, 2, "answered", press_twice)
    outcome = connected("send", queue, stdin=TEXT)
    assert outcome.code == 130
    assert outcome.out.startswith(f"sent 1,000 messages to {queue} in ")
    assert outcome.err.splitlines()[0] == (
        "forq: whether lines 1001 to 2000 are stored is not known: --from-line 1001 sends them again,"
        " --from-line 2001 leaves them out"
    )
    assert client.queue_stats(queue).total == stored


def test_ctrl_c_while_a_pipe_is_waited_for(
    connected: Forq, client: ForqClient, proxy: Proxy, press: Press, queue: str
):
    """Lines that are not complete are not sent; bad lines before that are told once, by the call that met them."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"a\n\xff\nb\nc")
    at_request(proxy, 1, "answered", press)
    outcome = connected("send", queue, "--file", f"/dev/fd/{read_end}")
    assert outcome.code == 130
    assert outcome.err.splitlines()[:2] == [
        "forq: line 2 was not sent: it is not UTF-8 (bad_request.body.invalid)",
        "forq: --from-line 4 goes on where this ended",
    ]
    os.close(write_end)
    os.close(read_end)
    assert client.queue_stats(queue).total == 2
    assert connected("send", queue, "--from-line", "4", stdin=b"a\n\xff\nb\nc").code == 0
    assert [message.content for message in client.receive(queue, max_messages=9)] == ["a", "b", "c"]


def test_one_message(connected: Forq, client: ForqClient, proxy: Proxy, press: Press, queue: str):
    at_request(proxy, 1, "asked", press)
    outcome = connected("send", queue, "x")
    (message,) = client.peek(queue)
    assert (outcome.code, outcome.out) == (
        130,
        f"sent {message.id} to {queue}, sequence {message.sequence}\n",
    )

    def press_twice() -> None:
        press()
        press()

    proxy.spoiled.append(LOST)
    at_request(proxy, 2, "answered", press_twice)
    outcome = connected("send", queue, "x")
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err.startswith("forq: whether the message is stored is not known\n")
    assert client.queue_stats(queue).total == 2


@pytest.fixture
def dead(client: ForqClient, queue: str) -> str:
    """A queue with dead letters enough for a redrive that goes on."""
    many_dead_letters(client, queue)
    return f"{queue}-dlq"


def test_a_redrive_that_is_interrupted_as_it_starts_is_cancelled(
    connected: Forq, client: ForqClient, proxy: Proxy, press: Press, dead: str
):
    at_request(proxy, 1, "asked", press)
    outcome = connected("dead", "redrive", dead, "--all", "--rate", "1")
    assert outcome.code == 130
    assert outcome.out.startswith("cancelled: ")
    (task,) = client.redrives(dead)
    assert task.state == "cancelled"


def test_a_redrive_that_goes_on_is_told_of(
    connected: Forq, client: ForqClient, proxy: Proxy, press: Press, dead: str
):
    proxy.spoiled.append(LOST)
    at_request(proxy, 1, "answered", lambda: (press(), press()))
    outcome = connected("dead", "redrive", dead, "--all", "--rate", "1", "--target", "other")
    assert (outcome.code, outcome.out) == (130, "")
    told = f"forq: whether the redrive was started is not known: `forq dead redrives {dead}` shows it\n"
    assert outcome.err.startswith(told)
    (task,) = client.redrives(dead)
    client.cancel_redrive(dead, task.id)

    # The start is answered, and the cancel is not.
    proxy.requests.clear()
    proxy.spoiled += [None, LOST]
    at_request(proxy, 1, "asked", press)
    outcome = connected("dead", "redrive", dead, "--all", "--rate", "1", "--target", "other")
    started = client.redrives(dead)[0]
    assert outcome.code == 3
    assert outcome.err.startswith(
        f"forq: redrive {started.id} may go on in the server: `forq dead redrives {dead}` shows it,"
        f" `forq dead redrives {dead} --cancel {started.id}` stops it\n"
    )


def test_a_compaction_goes_on_and_the_next_command_joins_it(
    connected: Forq, client: ForqClient, proxy: Proxy, press: Press, queue: str
):
    client.produce_many(queue, [NewMessage("x" * 40_000) for _ in range(100)])
    client.purge(queue)
    at_request(proxy, 1, "asked", press)
    outcome = connected("compact", terminal=True)
    assert outcome.code == 130
    assert "forq: the compaction goes on in the server: `forq compact` shows it" in outcome.err
    while client.compaction_info().state == "running":
        pass
    ended = client.compaction_info()
    assert (ended.state, ended.given_back_bytes > 3_900_000) == ("done", True)


@pytest.mark.process
@pytest.mark.parametrize("trial", range(count("interrupted_sends")))
def test_ctrl_c_at_any_moment(
    url: str, client: ForqClient, queue: str, tmp_path: Path, rng: random.Random, trial
):
    """A real process. It may also be over before Ctrl-C, or not have begun."""
    client.configure(queue, max_attempts=7)
    lines = [f"{number}".ljust(8_000, ".") for number in range(1, 1_001)]
    file = tmp_path / "lines"
    file.write_text("\n".join(lines))
    arguments, env = command("send", queue, "--file", str(file), "--json"), environment(FORQ_URL=url)
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        for _ in range(rng.choice([1, 1, 2])):
            try:
                process.wait(rng.uniform(0, 1))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    stored = client.queue_stats(queue).total
    if not out:  # not even our first line ran: how that ends is Python's matter
        assert (process.returncode != 0, stored) == (True, 0), err
        return
    summary = json.loads(out)
    if process.returncode != 130 and process.returncode != -signal.SIGINT:
        assert (process.returncode, summary["nextLine"]) == (0, None), err
    unknown = summary["unknown"] or {"from": 1, "to": 0}
    assert summary["sent"] <= stored <= summary["sent"] + unknown["to"] - unknown["from"] + 1
    # Without unknown lines, going on makes it whole; with some it is known which of them are there.
    go_on = stored + 1
    if summary["unknown"] is None and summary["nextLine"] is not None:
        assert summary["nextLine"] == go_on
    again = [*arguments, "--from-line", str(go_on)]
    subprocess.run(again, env=env, stdout=pipe, check=True, timeout=120)
    received = [message.content for _ in range(10) for message in client.receive(queue, max_messages=100)]
    assert received == lines
