"""The command line as processes against a real server: signals, pipes, a terminal, a restart."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.real_server import RealServer, environment, real_server

pytestmark = [pytest.mark.process, pytest.mark.tier2]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    with real_server(tmp_path / "forq.db") as server:
        yield server


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "forq_trio.cli", *arguments]


def forq(server: RealServer, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = environment(FORQ_URL=server.url)
    return subprocess.run(
        command(*arguments), env=env, input=stdin, capture_output=True, text=True, timeout=120
    )


@contextmanager
def following(server: RealServer, queue: str) -> Iterator[subprocess.Popen[str]]:
    arguments = command("receive", queue, "--follow", "--ack")
    env = environment(FORQ_URL=server.url)
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_a_day_in_the_life_of_a_queue(server: RealServer, tmp_path: Path):
    sent = forq(server, "send", "orders", stdin="".join(f"{number}\n" for number in range(1_500)))
    assert (sent.returncode, sent.stderr) == (0, "")
    assert sent.stdout.startswith("sent 1,500 messages to orders in ")
    assert forq(server, "queues").stdout.splitlines()[1] == "orders\t1500\t0\t0\t0\t0\t0\tno"
    assert forq(server, "peek", "orders").stdout.endswith("\t0\n")

    received = forq(server, "receive", "orders", "--max", "150", "--ack")
    assert received.stdout.splitlines() == [str(number) for number in range(150)]

    receipt, content = forq(server, "receive", "orders").stdout.rstrip("\n").split("\t")
    assert content == "150"
    assert forq(server, "nack", "orders", receipt, "--delay", "0").stdout == "1 message given back\n"
    assert forq(server, "ack", "orders", receipt).returncode == 5
    assert forq(server, "receive", "nothing").returncode == 5

    database, backup = str(tmp_path / "forq.db"), str(tmp_path / "backup.db")
    assert forq(server, "check", "--db", database).returncode == 0
    assert forq(server, "backup", backup, "--db", database).returncode == 0
    assert "1,350 messages in 1 queue" in forq(server, "verify", backup).stdout

    assert server.stop() == 0


def test_a_queue_with_settings(server: RealServer):
    """What is set holds for the server, is shown in the same words, and can be taken back."""
    options = (
        "--lease",
        "90s",
        "--max-attempts",
        "3",
        "--back-off",
        "initial=1s,factor=3",
        "--order",
        "lifo",
    )
    assert forq(server, "queue", "set", "orders", *options).stdout == "4 settings of orders changed\n"
    shown = forq(server, "queue", "show", "orders").stdout.splitlines()
    assert "lease\t90s\tset" in shown
    assert "back-off\tinitial=1s,factor=3,max=1h,jitter=0\tset" in shown
    assert "dead-letter-queue\torders-dlq\tdefault" in shown
    refused = forq(server, "queue", "set", "orders", "--dead-letter-queue", "orders")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "deadLetterQueue" in refused.stderr

    forq(server, "queue", "pause", "orders")
    forq(server, "send", "orders", "--attribute", "colour=red", stdin="a\nb\n")
    assert forq(server, "receive", "orders").returncode == 5
    forq(server, "queue", "resume", "orders")
    received = json.loads(forq(server, "receive", "orders", "--json").stdout)
    assert (received["content"], received["attributes"]) == ("b", {"colour": "red"})
    receipt = received["receipt"]
    assert forq(server, "extend", "orders", receipt).stdout == "1 message extended\n"
    assert forq(server, "release", "orders", receipt).stdout == "1 message released\n"
    assert forq(server, "receive", "orders", "--peek", "--max", "9").stdout == "b\na\n"

    assert forq(server, "queue", "purge", "orders").returncode == 2
    assert forq(server, "queue", "delete", "orders").returncode == 1
    assert forq(server, "queue", "purge", "orders", "--yes").stdout == "2 messages of orders removed\n"
    assert forq(server, "queue", "delete", "orders").returncode == 0
    assert forq(server, "queues").stdout == ""
    assert "lease\t5m\tdefault" in forq(server, "queue", "show", "orders").stdout


def test_following_outlives_a_restart_of_the_server(tmp_path: Path):
    with real_server(tmp_path / "forq.db") as first, following(first, "orders") as follower:
        assert forq(first, "send", "orders", "before").returncode == 0
        assert next_line(follower) == "before\n"
        assert first.stop() == 0
        with real_server(tmp_path / "forq.db", first.address) as second:
            assert forq(second, "send", "orders", "after").returncode == 0
            assert next_line(follower) == "after\n"
            follower.send_signal(signal.SIGINT)
            assert follower.wait(120) == 130
            assert follower.stderr is not None
            assert follower.stderr.read().strip() == ""


def test_a_reader_that_goes_away_ends_it_without_a_word(server: RealServer):
    with following(server, "orders") as follower:
        forq(server, "send", "orders", "a")
        assert next_line(follower) == "a\n"
        assert follower.stdout is not None
        follower.stdout.close()
        forq(server, "send", "orders", "b")
        assert follower.wait(120) == 1
        assert follower.stderr is not None
        assert follower.stderr.read() == ""
    assert forq(server, "receive", "orders", "--ack").stdout == "b\n"


def test_on_a_real_terminal(server: RealServer):
    forq(server, "send", "orders", "a")
    ours, theirs = pty.openpty()
    try:
        env = environment(FORQ_URL=server.url, TERM="xterm", COLUMNS="80")
        process = subprocess.run(
            command("queues"), env=env, stdin=theirs, stdout=theirs, stderr=theirs, timeout=120
        )
        assert process.returncode == 0
        shown = os.read(ours, 65_536)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"\x1b[1m" in shown
    assert b"orders" in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_server_ends_well_on_either_signal(server: RealServer, number: signal.Signals):
    server.process.send_signal(number)
    assert server.process.wait(120) == 0


def test_a_port_in_use_is_one_sentence(server: RealServer, tmp_path: Path):
    outcome = forq(server, "serve", "--api-addr", server.address, "--db", str(tmp_path / "other.db"))
    assert outcome.returncode == 1
    assert outcome.stderr == f"forq: cannot listen on {server.address}: Address already in use\n"


def test_two_servers_on_one_file(server: RealServer, tmp_path: Path):
    outcome = forq(server, "serve", "--api-addr", "127.0.0.1:0", "--db", str(tmp_path / "forq.db"))
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("forq: ")
    assert outcome.stderr.count("\n") == 1
