"""Commands as processes, where that is the point: signals, pipes, a terminal, a restart of the server."""

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from forq_trio import ForqClient
from support.processes import WAIT_SECONDS_MAX, killed_after
from support.real_server import SECRET, environment, real_server

pytestmark = pytest.mark.process

AWAY = r"(forq: .+; trying again for 30 s\nforq: the server answers again)?"
"""What is said of a server that is away for longer than a moment."""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "forq_trio.cli", *arguments]


@contextmanager
def following(url: str, queue: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    arguments = command("receive", queue, "--follow", "--ack")
    env = environment(FORQ_URL=url, **more)
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            with killed_after(process):
                yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a process that ends, and what it said last."""
    code = process.wait(WAIT_SECONDS_MAX)
    assert process.stderr is not None
    return code, process.stderr.read().strip()


@pytest.mark.tier2
def test_following_outlives_a_restart_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Over TLS. The servers end well on either signal, and so does the command on Ctrl-C."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key, trusted = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(trusted)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    files = {"FORQ_TLS_CERT": str(certificate), "FORQ_TLS_KEY": str(key)}
    database = tmp_path / "forq.db"
    with real_server(database, **files) as first:
        url = f"https://{first.address}"
        with following(url, "orders") as follower, ForqClient(url, SECRET) as client:
            client.produce("orders", "before")
            assert next_line(follower) == "before\n"
            first.process.send_signal(signal.SIGTERM)
            assert first.process.wait(WAIT_SECONDS_MAX) == 0
            with real_server(database, first.address, **files) as second:
                client.produce("orders", "after")
                assert next_line(follower) == "after\n"
                follower.send_signal(signal.SIGINT)
                code, said = end(follower)
                assert code == 130
                assert re.fullmatch(AWAY, said)
                second.process.send_signal(signal.SIGINT)
                assert second.process.wait(WAIT_SECONDS_MAX) == 0


def test_a_reader_that_goes_away_ends_it_without_a_word(url: str, client: ForqClient, queue: str):
    with following(url, queue) as follower:
        client.produce(queue, "a")
        assert next_line(follower) == "a\n"
        assert follower.stdout is not None
        follower.stdout.close()
        client.produce(queue, "b")
        assert end(follower) == (1, "")
    (delivery,) = client.receive(queue)
    assert (delivery.content, delivery.attempts) == ("b", 1)


def test_on_a_real_terminal(url: str, client: ForqClient, queue: str):
    client.produce(queue, "a")
    ours, theirs = pty.openpty()
    try:
        env = environment(FORQ_URL=url, TERM="xterm", COLUMNS="80")
        arguments = command("peek", queue)
        process = subprocess.run(arguments, env=env, stdin=theirs, stdout=theirs, stderr=theirs, timeout=120)
        assert process.returncode == 0
        shown = os.read(ours, 65_536)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"\x1b[1m" in shown
    assert b"content" in shown


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_standard_streams_that_are_closed(url: str, client: ForqClient, queue: str, closed: str):
    client.produce(queue, "for there is a hint on stderr where there is no queue")
    script = f'exec "$@" {closed}'
    arguments = ["sh", "-c", script, "sh", *command("queues")]
    process = subprocess.run(arguments, env=environment(FORQ_URL=url), capture_output=True, timeout=120)
    assert (process.returncode, process.stderr) == (0, b"")


def test_an_output_that_is_full(url: str, client: ForqClient, queue: str):
    client.produce(queue, "for nothing is written where there is no queue")
    with open("/dev/full", "wb") as full:
        arguments, env = command("queues"), environment(FORQ_URL=url)
        of_stdout = subprocess.run(arguments, env=env, stdout=full, stderr=subprocess.PIPE, timeout=120)
        of_stderr = subprocess.run([*arguments, "--no"], env=env, stderr=full, timeout=120)
    assert (of_stdout.returncode, of_stdout.stderr) == (
        1,
        b"forq: cannot write the output: No space left on device\n",
    )
    assert of_stderr.returncode == 2


@pytest.mark.tier2
def test_a_server_whose_log_nobody_reads_any_more_ends_well(tmp_path: Path):
    with real_server(tmp_path / "forq.db", PYTHONUNBUFFERED="") as server:
        assert server.process.stderr is not None
        server.process.stderr.close()
        assert server.stop() == 0
