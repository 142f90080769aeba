"""How many files a process may have open is often less than the connections a server takes: usually 1,024 at first."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from forq_trio import ForqClient
from forq_trio.http.transport.open_files import connections_that_fit, files_to_have
from forq_trio.model import limits
from support.real_server import SECRET, RealServer, environment, real_server, started
from support.ui_http import logged_in, until

from .raw import KEY, connect, request, statuses, until_end

FEW = 128
ALL = limits.CONNECTIONS_MAX + limits.UI_CONNECTIONS_MAX + limits.OPEN_FILES_BESIDE_MAX
NO_LIMIT = resource.RLIM_INFINITY


@pytest.mark.tier2
@pytest.mark.process
def test_a_server_takes_as_many_files_as_it_may_have(tmp_path) -> None:
    """Before, the 129th client waited unanswered until another one left, and so did the database's files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, hard))
        try:
            server = stack.enter_context(real_server(tmp_path / "forq.db", ui=True))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        port = port_of(server.address)
        for _ in range(2 * FEW):
            client = stack.enter_context(connect(port))
            client.sendall(request("GET", "/healthcheck"))
            assert client.recv(1_000).startswith(b"HTTP/1.1 204")
        assert server.stop() == 0


@contextmanager
def limited_server(database: Path, files: int, **more: str) -> Iterator[RealServer]:
    """A server that may have so many open files. A hard limit cannot be taken back, so a shell sets it for it alone."""
    anywhere = "--api-addr 127.0.0.1:0 --ui-addr 127.0.0.1:0"
    serve = f"{sys.executable} -m forq_trio.cli serve {anywhere} --db {database}"
    command = ["sh", "-c", f"ulimit -n {files} && exec {serve}"]
    with subprocess.Popen(command, env=environment(**more), stderr=subprocess.PIPE, text=True) as process:
        try:
            event = started(process)
            yield RealServer(process, event["api"], event["ui"])
        finally:
            process.kill()


@pytest.mark.tier2
@pytest.mark.process
def test_a_server_that_may_not_have_more_refuses_instead_of_letting_wait(tmp_path) -> None:
    with (
        limited_server(tmp_path / "forq.db", limits.OPEN_FILES_BESIDE_MAX + FEW) as server,
        ExitStack() as stack,
    ):
        port = port_of(server.address)
        for _ in range(FEW - FEW // 4):
            client = stack.enter_context(connect(port))
            client.sendall(request("GET", "/healthcheck"))
            assert client.recv(1_000).startswith(b"HTTP/1.1 204")
        for _ in range(20):
            assert statuses(until_end(stack.enter_context(connect(port)))) == [503]


@pytest.mark.process
@pytest.mark.parametrize("full", [pytest.param("api", marks=pytest.mark.tier2), "ui"])
def test_a_port_that_is_full_takes_no_file_of_the_other_one_or_of_the_database(tmp_path, full) -> None:
    """Before, the admin UI's connections were not counted: 384 idle ones took all files of a server with 384."""
    files = limits.OPEN_FILES_BESIDE_MAX + FEW
    settings = {"FORQ_BACKUP_DIR": str(tmp_path / "backups"), "FORQ_ENV": "local"}
    with limited_server(tmp_path / "forq.db", files, **settings) as server, ExitStack() as stack:
        ports = {"api": port_of(server.address), "ui": port_of(server.ui_address)}
        client = stack.enter_context(ForqClient(server.url, SECRET))
        browser = stack.enter_context(logged_in(server.ui_url, SECRET))
        operator = stack.enter_context(
            httpx.Client(base_url=f"{server.url}/api/v1", headers=KEY, verify=False)
        )
        assert operator.get("/admin/backups").json()["files"] == []
        client.produce("orders", "before")
        for number in range(files):
            stack.enter_context(connect(ports[full], source=f"127.0.0.{number % 100 + 2}"))
        last = httpx.get(
            f"http://127.0.0.1:{ports[full]}/login", verify=False
        )  # is accepted after all others
        assert last.status_code == (200 if full == "ui" else 503)
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < files
        client.produce("orders", "while it is full")
        deliveries = client.receive("orders", max_messages=2)
        assert [each.content for each in deliveries] == ["before", "while it is full"]
        client.ack("orders", deliveries)
        assert operator.post("/admin/backups").status_code == 202
        until(lambda: operator.get("/admin/backups").json()["latest"]["state"] != "running")
        assert operator.get("/admin/backups").json()["latest"]["state"] == "done"
        assert "orders" in browser.get("/").text
        assert httpx.get(f"{server.ui_url}/login", verify=False).status_code == 200


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_how_many_files() -> None:
    for soft, hard, raised in (
        (1_024, NO_LIMIT, ALL),
        (1_024, 524_288, ALL),
        (1_024, 4_096, 4_096),
        (100_000, 524_288, 100_000),
        (NO_LIMIT, NO_LIMIT, NO_LIMIT),
    ):
        assert files_to_have(soft, hard) == raised


def test_how_many_connections_fit() -> None:
    for files, api, ui in (
        (NO_LIMIT, limits.CONNECTIONS_MAX, limits.UI_CONNECTIONS_MAX),
        (ALL, limits.CONNECTIONS_MAX, limits.UI_CONNECTIONS_MAX),
        (ALL - 100, limits.CONNECTIONS_MAX - 100, limits.UI_CONNECTIONS_MAX),
        (1_024, 576, 192),
        (512, 192, 64),
        (limits.OPEN_FILES_BESIDE_MAX, 1, 1),
        (10, 1, 1),
    ):
        assert connections_that_fit(files, with_ui=True) == (api, ui)


def test_without_a_ui_the_api_has_all_that_fit() -> None:
    for files, api in (
        (NO_LIMIT, limits.CONNECTIONS_MAX),
        (ALL, limits.CONNECTIONS_MAX),
        (512, 256),
        (10, 1),
    ):
        assert connections_that_fit(files, with_ui=False) == (api, 0)


def test_both_ports_leave_the_files_beside() -> None:
    for files in range(1, ALL + 500, 211):
        api, ui = connections_that_fit(files, with_ui=True)
        assert min(api, ui) >= 1
        assert api + ui <= max(2, files - limits.OPEN_FILES_BESIDE_MAX)
