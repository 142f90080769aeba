"""Workers as programs: the signals that end them, and the event loop that they run on."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio

from forq_trio import AsyncForqClient, ForqUnreachable, open_blocking_broker, open_broker
from forq_trio.worker import Worker
from support.in_process import in_process_server
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, environment

ROOT = Path(__file__).parents[2]

PROGRAM = """
import logging, sys, anyio
from forq_trio.worker import DeadLetter, Discard, Job, Retry, Worker

app = Worker("sqlite:///queue.db", drain_seconds=float(sys.argv[1]))

@app.on("q")
async def handle(content: str) -> None:
    print("begun", flush=True)
    try:
        await (app._stopping.wait() if content == "ends" else anyio.Event().wait())
        print("done", flush=True)
    finally:
        print("ended", flush=True)

async def first() -> None:
    if sys.argv[2]:
        await app.send("q", sys.argv[2])

app.run(first=first)
print("over", flush=True)
"""


def run_and_signal(
    directory: Path,
    drain_seconds: str,
    content: str,
    number: int,
    times: int = 1,
    said: list[str] | None = None,
) -> list[str]:
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, drain_seconds, content],
        cwd=directory,
        env=environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip()]
        for _ in range(times):
            process.send_signal(number)
        rest, errors = process.communicate(timeout=WAIT_SECONDS_MAX)
        lines += rest.split()
    assert process.returncode == 0, errors
    if said is not None:
        said += errors.splitlines()
    return lines


def test_a_signal_lets_handlers_end(tmp_path: Path) -> None:
    assert run_and_signal(tmp_path, "20", "ends", signal.SIGTERM) == ["begun", "done", "ended", "over"]


def test_what_does_not_end_in_time_is_given_back(tmp_path: Path) -> None:
    assert run_and_signal(tmp_path, "0", "does not", signal.SIGINT) == ["begun", "ended", "over"]


IN_THREAD = """
import sys, threading
from forq_trio.worker import Worker

app = Worker("sqlite:///queue.db", drain_seconds=0, backend=sys.argv[1])

@app.on("q")
def handle(content: str) -> None:
    print("begun", flush=True)
    threading.Event().wait()

async def first() -> None:
    await app.send("q", "x")

app.run(first=first)
print("over", flush=True)
"""


@contextmanager
def running(directory: Path, program: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A program that has printed its first line."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        cwd=directory,
        env=environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.tier2)])
def test_a_thread_that_does_not_end_does_not_keep_the_process(tmp_path: Path, backend: str) -> None:
    """Under asyncio Python waited for it, after `run` had returned."""
    with running(tmp_path, IN_THREAD, backend) as process:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=WAIT_SECONDS_MAX)
    assert (process.returncode, said) == (0, "over\n")
    with open_blocking_broker(f"sqlite:///{tmp_path}/queue.db") as broker:
        assert [each.attempts for each in broker.receive("q", wait_ms=0)] == [2]


def test_what_a_killed_worker_had_is_given_back_at_the_next_start(tmp_path: Path) -> None:
    """It waited for up to five minutes for a lease that nobody had."""
    with running(tmp_path, PROGRAM, "20", "does not") as process:
        process.kill()
        process.wait(WAIT_SECONDS_MAX)
    with open_blocking_broker(f"sqlite:///{tmp_path}/queue.db") as broker:
        assert [each.attempts for each in broker.receive("q", wait_ms=0)] == [2]


def test_a_worker_runs_on_asyncio() -> None:
    async def main(url: str, secret: str) -> list[int]:
        seen = []
        async with AsyncForqClient(url, secret) as client:
            app = Worker(client)

            @app.on("q", concurrency=3)
            async def handle(number: int) -> None:
                seen.append(number)

            for number in range(20):
                await app.send("q", number)
            assert await app.drain() == 20
        return sorted(seen)

    with in_process_server() as url:
        assert anyio.run(main, url, SECRET, backend="asyncio") == list(range(20))


@pytest.mark.parametrize("backend", ["asyncio", "trio", None])
def test_run_takes_the_event_loop_that_handlers_need(backend) -> None:
    """Without a word it is trio, which is installed here."""
    app = Worker("memory:", backend=backend)
    seen = []

    @app.on("q")
    async def handle(content: str) -> None:
        (
            asyncio.current_task if backend == "asyncio" else trio.lowlevel.current_task
        )()  # raises in another loop
        await anyio.lowlevel.checkpoint()
        seen.append(content)

    async def first() -> None:
        await app.send("q", "tea")

    app.run(first=first, stop_when_empty=True)
    assert seen == ["tea"]


class Away:
    """A broker that does not answer at first."""

    def __init__(self, broker: Any, tries: int) -> None:
        self._broker = broker
        self.tries = tries

    def __getattr__(self, name: str) -> object:
        return getattr(self._broker, name)

    async def settings(self, queue: str) -> object:
        await anyio.lowlevel.checkpoint()
        if self.tries:
            self.tries -= 1
            raise ForqUnreachable("gone", sent=False)
        return await self._broker.settings(queue)


def test_before_its_first_claim_a_worker_waits_for_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """`first` was called before it answered, and ended the worker."""
    app = Worker("memory:")
    sources: list[Away] = []
    seen: list[object] = []

    @asynccontextmanager
    async def opening() -> AsyncIterator[tuple[Any, Any]]:
        async with open_broker("memory:") as broker:
            sources.append(Away(broker, 2))
            yield sources[0], sources[0]

    @app.on("q")
    async def handle(content: str) -> None:
        seen.append(content)

    async def first() -> None:
        seen.append(sources[0].tries)
        await app.send("q", "tea")

    monkeypatch.setattr(app, "_open_source", opening)
    app.run(first=first, stop_when_empty=True)
    assert seen == [0, "tea"]


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")], ids=["SIGINT", "SIGTERM"]
)
def test_a_worker_says_what_it_waits_for(tmp_path: Path, number: int, name: str) -> None:
    said: list[str] = []
    lines = run_and_signal(tmp_path, "20", "ends", number, said=said)
    assert lines == ["begun", "done", "ended", "over"]
    assert said == [f"waiting for 1 message in process, for at most 20 s; {name} again ends it now"]
