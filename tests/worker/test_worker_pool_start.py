"""The processes of handlers while they import the program: nobody else waits for them, and no message pays for it."""

import logging
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.to_thread
import pytest
import trio

from forq_trio.worker import CallNext, Handler, Job, Worker, WorkerSetupError
from forq_trio.worker.jobs import Run
from forq_trio.worker.processes import HandlerProcess, ProcessLost, ProcessPool
from forq_trio.worker.program_end import ProgramEnds
from support.processes import WAIT_SECONDS_MAX
from worker.held_import import PIPE, number
from worker.outside.fake_jobs import job_of


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a process reads while it imports the handler."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    monkeypatch.setenv(PIPE, str(path))
    return path


async def importing(pipe: Path) -> IO[str]:
    """Wait until a process imports the handler. It does so until this file is closed, and raises what is written."""
    return await anyio.to_thread.run_sync(pipe.open, "w", abandon_on_cancel=True)


async def imported(pipe: Path) -> None:
    (await importing(pipe)).close()


async def killed(number: str) -> None:
    """Kill a process, and wait until it is gone."""
    process = os.pidfd_open(int(number))
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
        await anyio.wait_readable(process)
    finally:
        os.close(process)


def a_run(timeout: float | None = None) -> Run:
    run = Run(timeout)
    run.begin([job_of()])
    return run


async def until(done: Callable[[], object]) -> None:
    while not done():
        await trio.lowlevel.checkpoint()


def an_application(timeout: float | None = None) -> tuple[Worker, Handler[str, [], str]]:
    app = Worker("memory:", drain_seconds=0)
    return app, app.on("heavy", pool="process", concurrency=1, timeout=timeout, retry=[])(number)


@pytest.mark.parametrize("backend", ["trio", pytest.param("asyncio", marks=pytest.mark.tier2)])
def test_other_queues_are_served_while_a_process_imports(backend: str, pipe: Path, tmp_path: Path) -> None:
    """They waited for it, and after 30 seconds the worker ended."""
    app, heavy = an_application()

    async def main() -> None:
        done, handled = anyio.Event(), anyio.Event()

        @app.on("quick")
        async def quick(content: str) -> None:
            done.set()

        @app.middleware
        async def note(job: Job, call_next: CallNext) -> object:
            result = await call_next()
            if job.queue == "heavy":
                assert job.attempt == 1
                handled.set()
            return result

        with anyio.fail_after(WAIT_SECONDS_MAX):
            async with app:
                held = await importing(pipe)
                await heavy.later(str(tmp_path / "number"))
                await quick.later("a")
                await done.wait()
                assert not app.stats["heavy"].running  # its messages are for others, until then
                held.close()
                await handled.wait()

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", [pytest.param("trio", marks=pytest.mark.tier2), "asyncio"])
def test_a_worker_that_stops_waits_for_no_import(backend: str, pipe: Path) -> None:
    async def main() -> IO[str]:
        app, _ = an_application()
        with anyio.fail_after(WAIT_SECONDS_MAX):
            async with app:
                return await importing(pipe)

    held = anyio.run(main, backend=backend)
    with pytest.raises(BrokenPipeError), held:
        held.write("nobody reads it: the process has ended")


def test_a_pipe_that_a_thread_still_reads_is_not_closed(pipe: Path) -> None:
    """Its number could be another file's by then."""
    _, heavy = an_application()
    process = HandlerProcess(heavy)
    reads, go_on, closed = threading.Event(), threading.Event(), []

    class Held:
        def __init__(self, whole: Any) -> None:
            self.whole = whole

        def poll(self, seconds: float) -> bool:
            reads.set()
            go_on.wait(WAIT_SECONDS_MAX)
            return self.whole.poll(seconds)

        def recv_bytes(self) -> bytes:
            return self.whole.recv_bytes()

        def close(self) -> None:
            closed.append(go_on.is_set())
            self.whole.close()

    process._pipe = Held(process._pipe)
    with ThreadPoolExecutor(2) as threads:
        refusal = threads.submit(process.refusal, lambda: None)
        assert reads.wait(WAIT_SECONDS_MAX)
        closing = threads.submit(process.close)
        with pytest.raises(TimeoutError):
            closing.result(0.5)
        go_on.set()
        closing.result(WAIT_SECONDS_MAX)
        with pytest.raises(ProcessLost):
            refusal.result(WAIT_SECONDS_MAX)
    assert all(closed)


@pytest.mark.parametrize("begun", ["by the start", "by a message"])
async def test_an_import_that_raises_ends_the_worker(begun: str, pipe: Path, tmp_path: Path) -> None:
    app, heavy = an_application()
    refusals: list[str] = []

    async def run() -> None:
        with pytest.raises(WorkerSetupError) as refused:
            await (app.serve() if begun == "by the start" else app.drain())
        refusals.append(str(refused.value))

    async with app.testing() as t:
        opened = app._source.opened
        assert opened is not None
        if begun == "by the start":
            opened.pools = None  # as outside of a test
        sent = await heavy.later(str(tmp_path / "number"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            with await importing(pipe) as held:
                held.write("no such library")
        found = await t.broker.message("heavy", sent.id)
        assert (found.attempts, found.last_error) == (0, None)
    place = f"{number.__code__.co_filename}:{number.__code__.co_firstlineno}: number: "
    problem = "its process cannot import it as number of worker.held_import: ImportError: no such library"
    assert refusals == [place + problem]


async def test_only_a_message_starts_a_process_in_a_test_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each drain started one, which imported the program."""
    app, heavy = an_application()
    numbers = []

    async def handled() -> int:
        await heavy.later(str(tmp_path / "number"))
        found = await t.drain()
        numbers.append((tmp_path / "number").read_text())
        return found

    async with app.testing() as t:
        with monkeypatch.context() as patch:
            patch.setattr("forq_trio.worker.processes.HandlerProcess", None)  # there can be none
            assert await t.drain() == 0
            async with app:
                assert await t.drain() == 0
        assert [await handled(), await handled()] == [1, 1]
        async with app:
            assert await handled() == 1
    assert len(numbers) == 3
    assert len({*numbers}) == 1


async def test_no_attempt_fails_because_a_new_process_takes_long_to_start(
    pipe: Path, tmp_path: Path, nursery: trio.Nursery, mock_clock: trio.testing.MockClock
) -> None:
    """It failed by the handler's `timeout`, or after 30 seconds."""
    app, heavy = an_application(timeout=5)
    async with app.testing() as t:
        nursery.start_soon(imported, pipe)
        await heavy.later(str(tmp_path / "number"))
        assert await t.drain() == 1
        await killed((tmp_path / "number").read_text())
        await heavy.later(str(tmp_path / "number"))
        async with trio.open_nursery() as drains:
            drains.start_soon(t.drain)
            with await importing(pipe):
                mock_clock.jump(60)
                await trio.testing.wait_all_tasks_blocked()
        assert (app.stats["heavy"].handled, app.stats["heavy"].failed) == (2, 0)


async def test_the_time_of_a_call_begins_when_its_process_is_there(pipe: Path, tmp_path: Path) -> None:
    _, heavy = an_application(timeout=5)
    run = a_run(5)
    with closing(ProcessPool(heavy, lazy=True)) as pool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.call, [str(tmp_path / "number")], run)
            with await importing(pipe):
                assert run.scope.deadline == run.jobs[0].lease.ends_at
        assert run.scope.deadline == trio.current_time() + 5


async def test_a_process_that_imports_is_there_for_the_next_call_if_its_own_is_cancelled(
    pipe: Path, tmp_path: Path
) -> None:
    """Calls that have less time than the imports take would have each begin anew."""
    _, heavy = an_application()
    arguments = [str(tmp_path / "number")]
    with closing(ProcessPool(heavy, lazy=True)) as pool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.call, arguments, a_run())
            held = await importing(pipe)
            nursery.cancel_scope.cancel()
        (process,) = pool._all
        held.close()
        assert await pool.call(arguments, a_run()) == arguments[0]
        assert pool._idle == [process]


async def test_a_process_that_is_killed_while_it_imports_fails_the_attempt_once_others_have_imported(
    pipe: Path, tmp_path: Path, nursery: trio.Nursery
) -> None:
    """For want of memory, for example. Before that the worker ends: it may happen to each of them."""
    _, heavy = an_application()
    arguments = [str(tmp_path / "number")]

    async def call(errors: list[Exception]) -> None:
        try:
            await pool.call(arguments, a_run())
        except (ProcessLost, ProgramEnds) as error:
            errors.append(error)

    async def error_of_lost() -> Exception:
        errors: list[Exception] = []
        async with trio.open_nursery() as calls:
            calls.start_soon(call, errors)
            with await importing(pipe):
                (process,) = pool._all
                process._process.kill()
        return errors[0]

    lost = "the handler's process was ended by SIGKILL while it imported the program"
    with closing(ProcessPool(heavy, lazy=True)) as pool:
        first = await error_of_lost()
        assert isinstance(first, ProgramEnds)
        assert str(first.error).endswith(f"number: {lost}; see what it wrote")
        nursery.start_soon(imported, pipe)
        await pool.call(arguments, a_run())
        await killed((tmp_path / "number").read_text())
        second = await error_of_lost()
        assert (type(second), str(second)) == (ProcessLost, lost)


class Lines(logging.Handler):
    """The lines of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


async def test_the_log_says_once_that_an_import_goes_on(
    pipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forq_trio.worker.processes.TELL_SECONDS", 0)
    log = Lines()
    logger = logging.getLogger("forq_trio.worker")
    _, heavy = an_application()
    logger.addHandler(log)
    try:
        with closing(ProcessPool(heavy, lazy=True)) as pool:
            for _ in range(2):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(pool.call, [str(tmp_path / "number")], a_run())
                    with await importing(pipe):
                        await until(lambda: log.lines)
                await killed((tmp_path / "number").read_text())
    finally:
        logger.removeHandler(log)
    assert log.lines == ["heavy: its process still imports the program after 0 s"]
