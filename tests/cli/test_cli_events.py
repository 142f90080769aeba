"""`forq events`: a line for each event, filters, and following until Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from forq_trio import ForqClient
from support.in_process import in_process_server
from support.processes import WAIT_SECONDS_MAX, killed_after
from support.real_server import SECRET


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server that keeps events, and what happened to three messages of two queues."""
    with in_process_server(events=True) as url, ForqClient(url, SECRET) as client:
        client.produce("a", "one")
        (message,) = client.receive("a", wait_ms=0)
        client.nack("a", [message.receipt], reason="no\x1b[31m luck, " * 50)
        client.produce("b", "two")
        yield url


def test_a_line_fits_a_terminal(forq, server, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    outcome = forq("events", "--url", server, terminal=True)
    lines = outcome.out.splitlines()
    events = [line for line in lines if not line.startswith("  ")]
    assert (outcome.code, len(events), outcome.err) == (0, 4, "")
    assert [line.split()[2] for line in events] == ["produced", "delivered", "nacked", "produced"]
    assert max(map(len, lines)) < 80
    assert "\x1b" not in outcome.out
    assert " attempt 1 after " in events[2]
    reason = lines[lines.index(events[2]) + 1 : lines.index(events[3])]
    assert reason[0].startswith("  no\\x1b[31m luck")
    assert len(reason) > 1


def test_filters(forq, server) -> None:
    outcome = forq("events", "--url", server, "--queue", "a", "--kind", "acked", "--kind", "nacked", "--json")
    (event,) = map(json.loads, outcome.out.splitlines())
    assert (event["kind"], event["queue"], event["id"]) == ("nacked", "a", 3)
    assert forq("events", "--url", server, "--after", "3").out.count("\n") == 1
    assert forq("events", "--url", server, "--after", "4").code == 5


def test_a_server_that_keeps_none_says_so(forq, url) -> None:
    outcome = forq("events", "--url", url)
    assert outcome.code != 0
    assert "FORQ_EVENTS" in outcome.err


def test_following_goes_on_until_interrupted_and_that_is_no_failure(server) -> None:
    command = [sys.executable, "-m", "forq_trio", "events", "--follow", "--after", "4", "--url", server]
    environ = {**os.environ, "FORQ_AUTH_SECRET": SECRET}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            with ForqClient(server, SECRET) as client:
                client.produce("c", "three")
            with killed_after(process):
                assert b" c " in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=WAIT_SECONDS_MAX)
        finally:
            process.kill()
    assert (process.returncode, errors) == (0, b"")
