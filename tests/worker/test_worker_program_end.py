"""A handler that ends the program: the worker stops in order, and the message is given back."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.from_thread
import pytest

from forq_trio import open_blocking_broker, open_broker
from forq_trio.worker import Worker
from support.processes import WAIT_SECONDS_MAX
from support.real_server import environment

ROOT = Path(__file__).parents[2]
ENDS = (KeyboardInterrupt, GeneratorExit)

PROGRAM = """
import asyncio
import sys
from forq_trio.worker import Worker

_, backend, how, error = sys.argv
app = Worker("sqlite:///queue.db", backend=backend, drain_seconds=0.1)

async def fail() -> None:
    raise getattr(__builtins__, error)

@app.on("q")
async def handle(content: str) -> None:
    if how == "itself":
        await fail()
    elif backend == "asyncio":
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
    else:
        import trio
        async with trio.open_nursery() as tasks:
            tasks.start_soon(fail)

async def first() -> None:
    await app.send("q", "x")

app.run(first=first)
"""
OTHERS = (
    ("asyncio", "itself", "GeneratorExit"),
    ("asyncio", "in a task", "SystemExit"),
    ("trio", "itself", "KeyboardInterrupt"),
    ("trio", "itself", "GeneratorExit"),
    ("trio", "in a task", "KeyboardInterrupt"),
)
CASES = (
    ("asyncio", "itself", "KeyboardInterrupt"),
    ("asyncio", "in a task", "KeyboardInterrupt"),
    *(pytest.param(*each, marks=pytest.mark.tier2) for each in OTHERS),
)


@pytest.mark.process
@pytest.mark.parametrize(("backend", "how", "error"), CASES)
def test_the_program_ends_and_the_message_is_given_back(
    tmp_path: Path, backend: str, how: str, error: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, backend, how, error],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert error in done.stderr or error == "SystemExit"
    with open_blocking_broker(f"sqlite:///{tmp_path}/queue.db") as broker:
        stats = broker.queue_stats("q")
    assert (stats.ready + stats.delayed, stats.total) == (1, 1)


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("run", ["serve", "drain", "beside"])
@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_it_is_raised_at_last_in_no_group(kind: type[BaseException], run: str, backend: str) -> None:
    """Under asyncio it left the event loop at once."""

    async def beside(app: Worker) -> None:
        async with app:
            await anyio.sleep_forever()

    async def main() -> None:
        async with open_broker("memory:") as broker:
            app = Worker(broker)

            @app.on("q")
            async def handle(content: str) -> None:
                raise kind

            await app.send("q", "x")
            with pytest.raises(kind):
                await (beside(app) if run == "beside" else getattr(app, run)())
            (waiting,) = await broker.peek("q")
            assert (waiting.status, waiting.attempts) == ("ready", 0)

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("when", ["at its end", "later"])
def test_a_handler_that_cancels_its_own_task_ends_no_worker(when: str) -> None:
    """In asyncio that may come when the task waits for the next message."""
    seen: list[tuple[int, int]] = []

    async def main() -> None:
        app, tasks = Worker(), []

        @app.on("q")
        async def handle(number: int) -> None:
            task = asyncio.current_task()
            assert task is not None
            seen.append((number, task.cancelling()))
            if number == 1 and when == "at its end":
                task.cancel()
            elif number == 1:
                tasks.append(task)

        async with app.testing() as t, app:
            await handle.later(1)
            assert await t.drain() == 1
            if when == "later":
                tasks[0].cancel()
            await anyio.wait_all_tasks_blocked()
            for number in (2, 3):
                await handle.later(number)
                assert await t.drain() == 1
            assert app.stats["q"].handled == 3

    anyio.run(main, backend="asyncio")
    assert seen == [(1, 0), (2, 0), (3, 0)]


@pytest.mark.parametrize("drains", [False, True])
def test_a_task_that_serves_ends_at_once_when_it_is_cancelled(drains: bool) -> None:
    """In asyncio only its innermost group was, and it waited for a handler in a thread."""
    go_on = threading.Event()

    async def main() -> None:
        begun = anyio.Event()
        async with open_broker("memory:") as broker:
            app = Worker(broker, drain_seconds=60)

            @app.on("q")
            def handle(content: str) -> None:
                anyio.from_thread.run_sync(begun.set)
                assert go_on.wait(60)

            await app.send("q", "x")
            task = asyncio.create_task(app.serve())
            await begun.wait()
            if drains:
                app.stop()
                await anyio.wait_all_tasks_blocked()
            saved = threading.Timer(30, go_on.set)
            saved.start()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not go_on.is_set()
            saved.cancel()

    anyio.run(main, backend="asyncio")
    go_on.set()
