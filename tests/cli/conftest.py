"""Runs commands in this process as the console script would, against a real server in a thread of it."""

import io
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest

from forq_trio import ForqClient
from forq_trio.cli.commands import run
from forq_trio.telemetry import log
from support.in_process import in_process_server
from support.proxy import Proxy, proxying
from support.real_server import SECRET

NOWHERE = "http://127.0.0.1:1"
"""Where no server is: whoever asks there ends with the code for that."""


class Stream(io.TextIOWrapper):
    """A standard stream that may claim to be a terminal."""

    def __init__(self, content: bytes = b"", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8", write_through=True)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]  # the buffer is our BytesIO


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class Forq:
    """Call it with a command line; `terminal` puts it on one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: bytes = b"", terminal: bool = False) -> Outcome:
        out, err = Stream(terminal=terminal), Stream(terminal=terminal)
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", Stream(stdin, terminal=terminal))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = run(arguments)
        return Outcome(code, out.text(), err.text())


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The URL of a server that all tests share, each with a queue of its own."""
    with in_process_server() as url:
        yield url


@pytest.fixture(scope="session")
def client(url: str) -> Iterator[ForqClient]:
    """A look behind the commands."""
    with ForqClient(url, SECRET) as client:
        yield client


@pytest.fixture
def queue() -> str:
    """A queue that no other test uses."""
    return f"q-{uuid4().hex}"


@pytest.fixture
def forq(monkeypatch: pytest.MonkeyPatch) -> Forq:
    """The command, with no configuration but the secret."""
    monkeypatch.setenv("FORQ_AUTH_SECRET", SECRET)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    for name in ("FORQ_URL", "FORQ_API_ADDR", "FORQ_CONFIG", "FORQ_DB_PATH", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Forq(monkeypatch)


@pytest.fixture
def connected(forq: Forq, url: str, monkeypatch: pytest.MonkeyPatch) -> Forq:
    """The command, told by FORQ_URL where the server is."""
    monkeypatch.setenv("FORQ_URL", url)
    return forq


@pytest.fixture
def alone(forq: Forq, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forq]:
    """The command with a server of its own, on which nobody made a queue."""
    with in_process_server() as url:
        monkeypatch.setenv("FORQ_URL", url)
        yield forq


@pytest.fixture
def proxy(connected: Forq, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Stands between the command and the server."""
    with proxying(url) as (proxy, proxy_url):
        monkeypatch.setenv("FORQ_URL", proxy_url)
        yield proxy


@pytest.fixture
def logging_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`forq serve` sets up the log of its process, which here is the tests'."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setattr(log, "_logger", log._logger)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
