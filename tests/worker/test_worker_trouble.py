"""Sources that fail, and processes that end."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
import trio

from forq_trio import AsyncForqClient, open_broker
from forq_trio.model.errors import Forbidden, ForqUnreachable, Overloaded
from forq_trio.worker import DeadLetter, Discard, Retry, Worker
from support.actors import all_idle
from support.real_server import SECRET, environment, real_server

ROOT = Path(__file__).parents[2]


class Failing:
    """A source whose calls fail as they are told."""

    def __init__(self, source, **failures) -> None:
        self._source = source
        self._failures = failures

    def __getattr__(self, name):
        if self._failures.get(name):

            async def fail(*arguments, **options):
                await trio.lowlevel.checkpoint()
                raise self._failures[name].pop(0)

            return fail
        return getattr(self._source, name)


async def test_a_source_that_does_not_answer_is_asked_again(face, nursery) -> None:
    source = Failing(
        face.methods,
        settings=[ForqUnreachable("gone", sent=False)],
        receive=[ForqUnreachable("gone", sent=True), Overloaded()],
        ack=[Overloaded()],
    )
    app, seen = Worker(source), []

    @app.on("q")
    async def handle(content: str) -> None:
        seen.append(content)

    await face.methods.produce("q", "a")
    nursery.start_soon(app.serve)
    for _ in range(6):
        await all_idle()
        await face.advance(200)
    while app.stats["q"].handled != 1:
        await trio.lowlevel.checkpoint()
    assert seen == ["a"]
    app.stop()


async def test_a_queue_that_may_not_be_read_ends_the_worker(face) -> None:
    app = Worker(Failing(face.methods, receive=[Forbidden()]))

    @app.on("q")
    async def handle(content: str) -> None: ...

    with pytest.raises(Forbidden):
        await app.serve()


PROGRAM = """
import logging, sys, anyio
from forq_trio.worker import DeadLetter, Discard, Retry, Worker

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
    directory: Path, drain_seconds: str, content: str, number: int, times: int = 1
) -> list[str]:
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, drain_seconds, content],
        cwd=directory,
        env=environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip()]
        for _ in range(times):
            process.send_signal(number)
        lines += process.stdout.read().split()
    assert process.returncode == 0
    return lines


def test_a_signal_lets_handlers_end(tmp_path: Path) -> None:
    assert run_and_signal(tmp_path, "20", "ends", signal.SIGTERM) == ["begun", "done", "ended", "over"]


def test_what_does_not_end_in_time_is_given_back(tmp_path: Path) -> None:
    assert run_and_signal(tmp_path, "0", "does not", signal.SIGINT) == ["begun", "ended", "over"]


def test_a_worker_runs_on_asyncio(tmp_path: Path) -> None:
    """Over a real server, which is a process of its own."""

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

    with real_server(tmp_path / "forq.db") as server:
        assert anyio.run(main, server.url, SECRET, backend="asyncio") == list(range(20))


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("problem", [Mute(), DeadLetter(ValueError("x")), Discard(Mute()), Retry(1, Mute())])
async def test_no_outcome_of_a_handler_ends_the_worker(face, problem) -> None:
    app = Worker(face.methods)

    @app.on("q")
    async def handle(content: str) -> object:
        if isinstance(problem, Mute):
            raise problem
        return problem

    await app.send("q", "a")
    assert await app.drain() == 1


def test_a_handler_that_was_cancelled_from_inside_has_failed() -> None:
    """On asyncio any task may be cancelled; it ended the worker once, without a word."""

    async def main() -> tuple[int, int]:
        async with open_broker("memory:") as broker:
            app = Worker(broker)

            @app.on("q", retry=[60])
            async def handle(content: str) -> None:
                if content == "a":
                    task = asyncio.ensure_future(asyncio.Event().wait())
                    task.cancel()
                    await task

            for content in "ab":
                await app.send("q", content)
            await app.drain()
            return app.stats["q"].failed, app.stats["q"].handled

    assert asyncio.run(main()) == (1, 1)
