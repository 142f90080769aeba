"""One application object, made at import: opened to send, run, and with a lifespan whichever way it is opened."""

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from forq_trio import ForqClient, open_blocking_broker
from forq_trio.worker import Job, Worker, WorkerSetupError, opened
from support.in_process import in_process_server
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, environment

ROOT = Path(__file__).parents[2]

both = pytest.mark.parametrize("backend", ["trio", "asyncio"])


def contents(url: str, queue: str) -> list[str]:
    with open_blocking_broker(url) as broker:
        return [each.content for each in broker.export(queue).messages]


@both
def test_an_open_application_sends_and_receives_nothing(backend: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"
    app = Worker(url, backend=backend)
    seen = []

    @app.on("emails")
    async def note(to: str) -> None:
        seen.append(to)

    async def web() -> None:
        async with app.open() as same:
            assert same is app
            await note.later("anna")
            with pytest.raises(RuntimeError, match="open already"):
                async with app.open():
                    pass

    anyio.run(web, backend=backend)
    assert contents(url, "emails") == ["anna"]
    app.run(stop_when_empty=True)
    assert seen == ["anna"]


@both
def test_an_open_application_can_be_drained_and_served(backend: str) -> None:
    app = Worker("memory:")
    seen = []

    @app.on("emails")
    async def note(to: str) -> None:
        seen.append(to)
        if to == "bela":
            app.stop()

    async def main() -> None:
        async with app.open():
            await note.later("anna")
            assert await app.drain() == 1
            await note.later("bela")
            await app.serve()
            await note.later("cleo")
            assert await app.drain() == 1

    anyio.run(main, backend=backend)
    assert seen == ["anna", "bela", "cleo"]


class Resources:
    """What the handlers of these tests share."""

    def __init__(self) -> None:
        self.said: list[str] = []

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator["Resources"]:
        self.said.append("opened")
        await anyio.lowlevel.checkpoint()
        try:
            yield self
        finally:
            await anyio.lowlevel.checkpoint()
            self.said.append("closed")


async def by_open(app: Worker, send: Callable[[], Any]) -> None:
    async with app.open():
        await send()
        await app.drain()


async def by_testing(app: Worker, send: Callable[[], Any]) -> None:
    async with app.testing() as t:
        await send()
        await t.drain()


async def by_serve(app: Worker, send: Callable[[], Any]) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.serve)
        while not app.running_loops:
            await anyio.lowlevel.checkpoint()
        await send()


async def by_block(app: Worker, send: Callable[[], Any]) -> None:
    done = app.stats
    async with app:
        await send()
        while "emails" not in done or not done["emails"].handled:
            await anyio.lowlevel.checkpoint()


@both
@pytest.mark.parametrize("way", [by_open, by_testing, by_serve, by_block])
def test_every_way_has_the_lifespan(backend: str, way: Callable[..., Any]) -> None:
    resources = Resources()
    app = Worker("memory:", lifespan=resources.lifespan)

    @app.on("emails")
    async def note(to: str, job: Job[Resources]) -> None:
        job.state.said.append(to)
        app.stop()

    anyio.run(way, app, lambda: note.later("anna"), backend=backend)
    assert resources.said == ["opened", "anna", "closed"]


@both
def test_run_leaves_the_lifespan_after_the_last_handler(backend: str) -> None:
    resources = Resources()
    app = Worker("memory:", lifespan=resources.lifespan, backend=backend)

    @app.on("letters")
    async def note(to: str, job: Job[Resources]) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await app._stopping.wait()
            await anyio.lowlevel.checkpoint()
        finally:
            job.state.said.append(to)

    async def first() -> None:
        await note.later("bela")

    app.run(first=first)
    assert resources.said == ["opened", "bela", "closed"]


@asynccontextmanager
async def failing() -> AsyncIterator[None]:
    await anyio.lowlevel.checkpoint()
    raise OSError("no route to the database")
    yield


async def nothing(content: str) -> None: ...


def test_a_lifespan_that_fails_is_named_with_its_line() -> None:
    app = Worker("memory:", lifespan=failing)
    app.on("emails")(nothing)
    line = inspect.getsourcelines(inspect.unwrap(failing))[1]
    with pytest.raises(WorkerSetupError) as failed:
        app.run(stop_when_empty=True)
    words = f"{__file__}:{line}: failing: the lifespan failed at its start: OSError: no route to the database"
    assert str(failed.value) == words
    assert isinstance(failed.value.__cause__, OSError)


async def undecorated() -> AsyncIterator[None]:
    yield


def test_a_lifespan_without_its_decorator_is_refused() -> None:
    with pytest.raises(TypeError, match="@asynccontextmanager"):
        Worker("memory:", lifespan=undecorated)  # type: ignore[arg-type]


@both
def test_handlers_in_threads_and_other_threads_send(backend: str) -> None:
    app = Worker("memory:", backend=backend)
    seen = []

    @app.on("orders")
    def take(number: int) -> None:
        mail.later_blocking(f"order {number}", attributes={"by": "a thread"})

    @app.on("emails")
    async def mail(text: str, job: Job) -> None:
        seen.append((text, job.attributes))

    async def main() -> None:
        async with app.open():
            await anyio.to_thread.run_sync(take.later_blocking, 1)
            thread = threading.Thread(target=take.later_blocking, args=(2,))
            thread.start()
            await anyio.to_thread.run_sync(thread.join)
            await app.drain()
            with pytest.raises(RuntimeError, match="block the event loop"):
                mail.later_blocking("never")

    anyio.run(main, backend=backend)
    by = {"by": "a thread"}
    assert sorted(seen) == [("order 1", by), ("order 2", by)]


def test_a_program_that_is_not_open_sends_by_itself_and_gives_the_file_to_its_worker(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"
    app = Worker(url)
    seen = []

    @app.on("emails")
    async def note(to: str) -> None:
        seen.append(to)

    note.later_blocking("anna")
    note.later_blocking("bela", key="b")
    app.run(stop_when_empty=True)
    assert sorted(seen) == ["anna", "bela"]

    async def in_a_loop() -> None:
        await anyio.lowlevel.checkpoint()
        with pytest.raises(RuntimeError, match="block the event loop"):
            note.later_blocking("cleo")

    anyio.run(in_a_loop)


def test_who_opens_the_source_decides_how_it_is_reached() -> None:
    with pytest.raises(RuntimeError, match="not open"):
        Worker(object_source()).send_blocking("emails", "anna")
    with pytest.raises(ValueError, match="not 'redis'"):
        Worker("redis://localhost").send_blocking("emails", "anna")


def object_source() -> Any:
    """A source whose methods are never called."""

    class Source:
        async def receive(self) -> None: ...

    return Source()


FORKING = """
import os
from forq_trio.worker import Worker

app = Worker()

@app.on("emails")
async def note(to: str) -> None: ...

note.later_blocking("parent")
child = os.fork()
if not child:
    note.later_blocking("child")
    os._exit(0)
note.later_blocking("parent again")  # the end of the process closes its connection
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_has_a_connection_of_its_own() -> None:
    with in_process_server() as url:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", FORKING],
            env=environment(PYTHONPATH=str(ROOT), FORQ_URL=url),
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS_MAX,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        with ForqClient(url, SECRET) as client:
            found = sorted(each.content for each in client.export("emails").messages)
    assert found == ["child", "parent", "parent again"]


def test_the_name_of_a_worker_is_that_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Worker("memory:")
    assert app.name.endswith(f"-{os.getpid()}")
    monkeypatch.setattr(os, "getpid", lambda: 7)
    assert app.name.endswith("-7")
    assert Worker("memory:", name="shop").name == "shop"


@both
def test_of_two_that_open_at_once_one_is_refused(backend: str) -> None:
    app = Worker("memory:")
    seen: list[object] = []

    async def opens() -> None:
        try:
            async with app.open():
                await app.send("q", "x")
                seen.append("sent")
        except RuntimeError as error:
            seen.append(str(error))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(opens)
            tasks.start_soon(opens)
        await opens()

    anyio.run(main, backend=backend)
    assert seen == ["the worker is open already", "sent", "sent"]


@both
def test_a_worker_that_is_open_in_another_event_loop_does_not_run(backend: str) -> None:
    app = Worker("memory:")

    @app.on("q")
    async def handle(content: str) -> None: ...

    async def main() -> None:
        async with app.open():
            with pytest.raises(RuntimeError, match="open in another event loop"):
                await anyio.to_thread.run_sync(lambda: anyio.run(app.drain, backend=backend))
            assert await app.drain() == 0

    anyio.run(main, backend=backend)


@both
def test_a_worker_that_is_open_in_another_event_loop_does_not_send(backend: str) -> None:
    app = Worker("memory:")

    @app.on("q", keep_result="1h")
    async def handle(content: str) -> str:
        return content

    async def main() -> None:
        async with app.open():
            sent = await handle.later("one")
            for call in (partial(handle.later, "two"), partial(handle.result, sent, timeout=0)):
                with pytest.raises(RuntimeError, match="open in another event loop"):
                    await anyio.to_thread.run_sync(partial(anyio.run, call, backend=backend))
            assert await app.drain() == 1

    anyio.run(main, backend=backend)


@both
def test_another_event_loop_is_not_blocked(backend: str) -> None:
    """As the worker's own is not."""
    app = Worker("memory:")

    @app.on("q", keep_result="1h")
    async def handle(content: str) -> str:
        return content

    async def main() -> None:
        async with app.open():
            sent = await handle.later("one")

            async def blocked() -> None:
                for call in (partial(handle.later_blocking, "two"), partial(handle.result_blocking, sent)):
                    with pytest.raises(RuntimeError, match="would block the event loop that runs here"):
                        call()

            await anyio.to_thread.run_sync(partial(anyio.run, blocked, backend=backend))
            assert await app.drain() == 1

    anyio.run(main, backend=backend)


def test_a_thread_whose_event_loop_has_closed_does_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its call came after the last pass of the loop, which tells nobody."""
    monkeypatch.setattr(opened, "LOOK_SECONDS", 0.01)
    loop = asyncio.new_event_loop()

    async def open_here() -> opened.Opened:
        return opened.Opened(None, None)  # type: ignore[arg-type]

    place = loop.run_until_complete(open_here())
    calls, errors = threading.Event(), []

    async def never() -> None: ...

    def call() -> Any:
        calls.set()
        return never()

    def in_thread() -> None:
        try:
            place.call(call)
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=in_thread, daemon=True)
    thread.start()
    calls.wait()
    loop.close()
    thread.join(WAIT_SECONDS_MAX)
    assert not thread.is_alive()
    assert len(errors) == 1
