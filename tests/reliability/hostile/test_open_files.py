"""How many files a process may have open is often less than the connections a server takes: usually 1,024 at first."""

import resource
import subprocess
import sys
from contextlib import ExitStack

import pytest

from forq_trio.http.transport.open_files import connections_that_fit, files_to_have
from forq_trio.model import limits
from support.real_server import environment, real_server, started

from .raw import connect, request, statuses, until_end

FEW = 128
NO_LIMIT = resource.RLIM_INFINITY


@pytest.mark.process
def test_a_server_takes_as_many_files_as_it_may_have(tmp_path) -> None:
    """Before, the 129th client waited unanswered until another one left, and so did the database's files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, hard))
        try:
            server = stack.enter_context(real_server(tmp_path / "forq.db"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        port = int(server.address.rpartition(":")[2])
        for _ in range(2 * FEW):
            client = stack.enter_context(connect(port))
            client.sendall(request("GET", "/healthcheck"))
            assert client.recv(1_000).startswith(b"HTTP/1.1 204")
        assert server.stop() == 0


@pytest.mark.process
def test_a_server_that_may_not_have_more_refuses_instead_of_letting_wait(tmp_path) -> None:
    """A hard limit cannot be taken back, so a shell sets it for the server alone."""
    files = limits.OPEN_FILES_BESIDE_MAX + FEW
    anywhere = "--api-addr 127.0.0.1:0 --ui-addr 127.0.0.1:0"
    serve = f"{sys.executable} -m forq_trio.cli serve {anywhere} --db {tmp_path / 'forq.db'}"
    command = ["sh", "-c", f"ulimit -n {files} && exec {serve}"]
    with ExitStack() as stack:
        pipe = subprocess.PIPE
        process = stack.enter_context(subprocess.Popen(command, env=environment(), stderr=pipe, text=True))
        stack.callback(process.kill)
        port = int(started(process)["api"].rpartition(":")[2])
        for _ in range(FEW):
            client = stack.enter_context(connect(port))
            client.sendall(request("GET", "/healthcheck"))
            assert client.recv(1_000).startswith(b"HTTP/1.1 204")
        for _ in range(20):
            assert statuses(until_end(stack.enter_context(connect(port)))) == [503]


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [
        (1_024, NO_LIMIT, limits.CONNECTIONS_MAX + limits.OPEN_FILES_BESIDE_MAX),
        (1_024, 524_288, limits.CONNECTIONS_MAX + limits.OPEN_FILES_BESIDE_MAX),
        (1_024, 4_096, 4_096),
        (100_000, 524_288, 100_000),
        (NO_LIMIT, NO_LIMIT, NO_LIMIT),
    ],
)
def test_how_many_files(soft, hard, raised) -> None:
    assert files_to_have(soft, hard) == raised


@pytest.mark.parametrize(
    ("files", "connections"),
    [
        (NO_LIMIT, limits.CONNECTIONS_MAX),
        (limits.CONNECTIONS_MAX + limits.OPEN_FILES_BESIDE_MAX, limits.CONNECTIONS_MAX),
        (limits.CONNECTIONS_MAX, limits.CONNECTIONS_MAX - limits.OPEN_FILES_BESIDE_MAX),
        (limits.OPEN_FILES_BESIDE_MAX, 1),
        (10, 1),
    ],
)
def test_how_many_connections_fit(files, connections) -> None:
    assert connections_that_fit(files) == connections
