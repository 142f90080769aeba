"""A client that was made before a fork: parent and child each have connections of their own."""

import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from forq_trio import ForqClient
from support.in_process import in_process_server
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET
from support.scripted_server import Peer, Script, answering, scripted

from .test_client_connections import DONE, connections

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

ROUNDS = 15
PROGRAM = """
import os, sys
from forq_trio import ForqClient, AsyncForqClient

url, secret, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = ForqClient(url, secret, retry_seconds=0)
for name in ("parent", "child"):
    client.produce(name, name)

def look(name):
    for _ in range(10):
        (message,) = client.peek(name)
        if message.content != name:
            print(name, "got what was sent to", message.content, flush=True)
            return False
    return True

failed = 0
for _ in range(rounds):
    child = os.fork()
    if child == 0:
        try:
            right = look("child")
        except Exception as problem:
            print("child:", repr(problem), flush=True)
            right = False
        os._exit(0 if right else 1)
    try:
        failed += not look("parent")
    except Exception as problem:
        print("parent:", repr(problem), flush=True)
        failed += 1
    failed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
client.close()
print("failed", failed)
"""


def forked(url: str) -> list[str]:
    """What a program says that forks again and again, and asks for other things in parent and child at once."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, url, SECRET, str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


def test_each_gets_its_own_answers():
    with in_process_server() as url:
        assert forked(url) == ["failed 0"]


@pytest.mark.tier2
def test_each_gets_its_own_answers_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A child that ended the session of TLS would end its parent's."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with in_process_server(ssl_context=context) as url:
        assert forked(url) == ["failed 0"]


def in_child(run: Callable[[], None]) -> int:
    """Fork, call `run` in the child and end it. Returns its process id."""
    child = os.fork()
    if child == 0:
        try:
            run()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def test_the_parent_keeps_its_connection():
    with scripted(answering(DONE)) as script:
        with ForqClient(script.url, SECRET) as client:
            client.healthcheck()
            child = in_child(client.healthcheck)
            assert os.waitpid(child, 0)[1] == 0
            client.healthcheck()
        assert connections(script) == [0, 1, 0]


def test_a_child_does_not_hold_the_connections_of_its_parent():
    """Else the server would not notice that the parent has gone, and would lease messages to it."""
    with scripted(answering(DONE)) as script:
        client = ForqClient(script.url, SECRET)
        client.healthcheck()
        child = in_child(signal.pause)
        client.close()
        assert script.ended.get(timeout=WAIT_SECONDS_MAX) == 0
        os.kill(child, signal.SIGTERM)
        assert os.waitpid(child, 0)[1] == signal.SIGTERM


def test_a_fork_while_a_call_waits_leaves_the_call_to_the_parent():
    """As a signal handler may do that starts a process."""
    children = []

    def serve(peer: Peer, number: int, script: Script) -> None:
        while request := peer.request():
            script.requests.put((number, request))
            if number == 0:
                os.kill(os.getpid(), signal.SIGUSR1)
                script.ended.get()
            peer.send(DONE)

    with scripted(serve) as script:

        def fork(*arguments: object) -> None:
            children.append(os.fork())
            if children[-1]:
                assert os.waitpid(children[-1], 0)[1] == 0
                script.ended.put(0)

        before = signal.signal(signal.SIGUSR1, fork)
        try:
            with ForqClient(script.url, SECRET, retry_seconds=0) as client:
                try:
                    client.healthcheck()
                except BaseException:
                    if children[-1] == 0:
                        client.healthcheck()
                        os._exit(0)
                    raise
                finally:
                    if children[-1] == 0:
                        os._exit(1)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert connections(script) == [0, 1]
