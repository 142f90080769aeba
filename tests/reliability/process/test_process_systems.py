"""Other systems, as far as Linux can show them: a server without the calls that only Linux has; Windows by name."""

import subprocess
import sys
from pathlib import Path

import pytest

from forq_trio import ForqClient
from support.processes import killed_after
from support.real_server import SECRET, environment, real_server

WITHOUT = """
import os, select, socket, types
import trio._core._io_epoll  # trio has a loop for each system: this one goes on
trio._core._io_epoll.select = types.SimpleNamespace(**vars(select))
for module, names in (
    (os, "posix_fallocate posix_fadvise fdatasync sched_getaffinity pidfd_open eventfd memfd_create splice"),
    (select, "epoll EPOLLRDHUP POLLRDHUP"),
    (socket, "TCP_USER_TIMEOUT TCP_QUICKACK SO_PEERCRED SOCK_CLOEXEC SOCK_NONBLOCK"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""


@pytest.mark.tier2
@pytest.mark.process
def test_a_server_runs_without_the_calls_of_linux(tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.mkdir()
    (names / "sitecustomize.py").write_text(WITHOUT)
    for _ in range(2):
        with real_server(tmp_path / "forq.db", PYTHONPATH=str(names)) as server:
            with ForqClient(server.url, SECRET) as client:
                sent = client.produce("q", "over")
                (delivery,) = client.receive("q", wait_ms=30_000)
                assert delivery.id == sent.id
                assert not client.receive("q", wait_ms=50)
                client.ack("q", [delivery.receipt])
            assert server.stop() == 0


WINDOWS = """
import sys
import asyncio, anyio, httpx, trio
sys.platform = "win32"
sys.argv[1:] = {arguments!r}
{body}
"""


def on_windows(body: str, *arguments: str) -> tuple[int, str, str]:
    """What a program does where `sys.platform` says Windows; the libraries were imported before."""
    code = WINDOWS.format(arguments=list(arguments), body=body)
    with (
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        killed_after(process),
    ):
        out, error = process.communicate()
        return process.returncode, out, error


def test_windows_is_refused_by_name_for_all_but_the_clients() -> None:
    embed = "import forq_trio; forq_trio.ForqClient, forq_trio.AsyncForqClient; forq_trio.open_broker"
    code, _, error = on_windows(embed)
    assert code == 1
    assert error.endswith(
        "SystemUnsupported: open_broker does not run on Windows: use Linux, macOS or WSL. The clients run there\n"
    )
    assert on_windows("import forq_trio.cli; forq_trio.cli.main()", "serve") == (
        2,
        "",
        "forq: forq serve does not run on Windows: use Linux, macOS or WSL. The clients run there\n",
    )


@pytest.mark.tier2
@pytest.mark.process
def test_a_client_waits_without_poll(tmp_path: Path) -> None:
    body = (
        "import select; del select.poll\n"
        "from forq_trio import ForqClient\n"
        "with ForqClient(sys.argv[1], sys.argv[2]) as client:\n"
        "    client.produce('q', 'x'); print(client.receive('q', wait_ms=30_000)[0].content)"
    )
    with real_server(tmp_path / "forq.db") as server:
        assert on_windows(body, server.url, SECRET)[:2] == (0, "x\n")
        server.stop()
