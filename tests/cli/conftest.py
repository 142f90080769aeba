"""Runs commands in this process as the console script would, against the clients' small server."""

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from client.fake_forq import SECRET, FakeForq, serving
from forq_trio.cli import run


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


@pytest.fixture
def fake() -> FakeForq:
    return FakeForq()


@pytest.fixture
def url(fake: FakeForq) -> Iterator[str]:
    with serving(fake) as url:
        yield url


@pytest.fixture
def forq(monkeypatch: pytest.MonkeyPatch) -> Forq:
    """The command, with no configuration but the secret."""
    monkeypatch.setenv("FORQ_AUTH_SECRET", SECRET)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    for name in ("FORQ_URL", "FORQ_CONFIG", "FORQ_DB_PATH", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Forq(monkeypatch)


@pytest.fixture
def connected(forq: Forq, url: str, monkeypatch: pytest.MonkeyPatch) -> Forq:
    """The command, told by FORQ_URL where the server is."""
    monkeypatch.setenv("FORQ_URL", url)
    return forq
