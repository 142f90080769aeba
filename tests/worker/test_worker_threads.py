"""Plain functions run in threads."""

import threading

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
import trio

from forq_trio import open_broker
from forq_trio.worker import Job, LeaseLost, Worker, calls
from forq_trio.worker.watchdog import Watchdog

both = pytest.mark.parametrize("backend", ["trio", "asyncio"])


async def test_a_plain_function_runs_in_a_thread_and_no_more_than_may() -> None:
    running, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(2, timeout=20)
    threads = set()

    def handle(content: str, job: Job) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threads.add(threading.get_ident())
        together.wait()
        with lock:
            running -= 1

    async with open_broker("memory:") as broker:
        app = Worker(broker)
        app.on("q", concurrency=2)(handle)
        for _ in range(6):
            await app.send("q", "x")
        assert await app.drain() == 6
    assert most == 2
    assert threading.get_ident() not in threads


async def test_the_result_of_a_thread_whose_lease_was_lost_is_refused(caplog) -> None:
    begun, lost = trio.Event(), threading.Event()
    attempts = []

    def handle(content: str, job: Job) -> None:
        attempts.append(job)
        if content == "a":
            trio.from_thread.run_sync(begun.set)
            assert lost.wait(20)

    async with open_broker("memory:") as broker:
        app = Worker(broker)
        app.on("q", concurrency=1, lease=30)(handle)
        await broker.offer("q", "key", "a")
        async with app:
            await begun.wait()
            attempts[0].lose()
            lost.set()
            while app.stats["q"].lost != 1:
                await trio.lowlevel.checkpoint()
        assert (await broker.queue_stats("q")).processing == 1
    assert attempts[0].lost
    assert "runs in a thread, which goes on until it returns or calls job.check()" in caplog.text
    assert "its result is refused" in caplog.text


@both
def test_a_thread_that_checks_ends_with_the_drain_and_its_message_is_given_back(
    backend: str, caplog, monkeypatch
) -> None:
    monkeypatch.setattr(calls, "STOP_SECONDS", 60)  # however slow the machine is
    told: list[str] = []

    async def main() -> None:
        begun, never = anyio.Event(), threading.Event()

        async with open_broker("memory:") as broker:
            app = Worker(broker, drain_seconds=0)

            @app.on("q")
            def handle(content: str, job: Job) -> None:
                try:
                    job.check()
                    anyio.from_thread.run_sync(begun.set)
                    while not never.wait(0.01):
                        job.check()
                except LeaseLost as error:
                    told.append(str(error).replace(job.id, "ID"))
                    raise

            await app.send("q", "x")
            async with app:
                await begun.wait()
            stats = await broker.queue_stats("q")
            assert (stats.ready, stats.processing) == (1, 0)
            (delivery,) = await broker.receive("q")
            assert delivery.attempts == 1

    anyio.run(main, backend=backend)
    assert told == ["the worker stops, and gives ID back"]
    assert "is left to its thread" not in caplog.text


@both
@pytest.mark.parametrize("again", [False, True])
def test_a_thread_that_no_longer_checks_is_left_alone(backend: str, again: bool, caplog, monkeypatch) -> None:
    """After a while, or at once when the worker is told again."""
    monkeypatch.setattr(calls, "STOP_SECONDS", 60 if again else 0)
    go_on, jobs = threading.Event(), []

    async def main() -> None:
        begun = anyio.Event()
        async with open_broker("memory:") as broker:
            app = Worker(broker, drain_seconds=0)

            @app.on("q")
            def handle(content: str, job: Job) -> None:
                jobs.append(job)
                job.check()
                anyio.from_thread.run_sync(begun.set)
                assert go_on.wait(60)

            await app.send("q", "x")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app.serve)
                await begun.wait()
                loops = app.running_loops
                app.stop()
                while again and not jobs[0].lease.stops:
                    await anyio.lowlevel.checkpoint()
                if again:
                    loops[0].abandon_threads()
            assert (await broker.queue_stats("q")).processing == 1

    anyio.run(main, backend=backend)
    with pytest.raises(LeaseLost):
        jobs[0].check()
    go_on.set()
    assert "is left to its thread, until its lease ends" in caplog.text


@both
@pytest.mark.parametrize("checks", [True, False])
def test_a_worker_that_is_cancelled_waits_for_no_thread(backend: str, checks: bool, monkeypatch) -> None:
    """Those that check end soon, and their messages are given back."""
    monkeypatch.setattr(calls, "STOP_SECONDS", 60)
    go_on = threading.Event()

    async def main() -> None:
        begun = anyio.Event()
        async with open_broker("memory:") as broker:
            app = Worker(broker)

            @app.on("q")
            def handle(content: str, job: Job) -> None:
                if checks:
                    job.check()
                anyio.from_thread.run_sync(begun.set)
                while not go_on.wait(0.01):
                    if checks:
                        job.check()

            await app.send("q", "x")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app.serve)
                await begun.wait()
                saved = threading.Timer(30, go_on.set)
                saved.start()
                tasks.cancel_scope.cancel()
            assert not go_on.is_set()
            saved.cancel()
            stats = await broker.queue_stats("q")
            assert (stats.ready, stats.processing) == ((1, 0) if checks else (0, 1))

    anyio.run(main, backend=backend)
    go_on.set()


@both
def test_a_thread_that_checks_learns_that_its_time_is_over(backend: str) -> None:
    told: list[str] = []

    async def main() -> None:
        async with open_broker("memory:") as broker:
            app = Worker(broker)

            @app.on("q", timeout=0.05, retry=[])
            def handle(content: str, job: Job) -> None:
                never = threading.Event()
                try:
                    for _ in range(3_000):
                        never.wait(0.01)
                        job.check()
                except LeaseLost as error:
                    told.append(str(error).replace(job.id, "ID"))
                    raise

            await app.send("q", "x")
            await app.drain()
            (dead,) = await broker.peek("q-dlq")
            assert dead.last_error == "TimeoutError: the handler took longer than 0.05 s"

    anyio.run(main, backend=backend)
    assert told == ["the handler of ID has taken longer than its timeout"]


async def test_the_lease_of_a_thread_whose_time_is_over_is_not_extended(autojump_clock, monkeypatch) -> None:
    """So another worker gets the message, if the thread never returns."""
    begun, noticed, lost = trio.Event(), trio.Event(), threading.Event()
    jobs = []
    lose = Job.lose

    def note(job: Job) -> None:
        lose(job)
        noticed.set()

    monkeypatch.setattr(Job, "lose", note)

    def handle(content: str, job: Job) -> None:
        jobs.append(job)
        trio.from_thread.run_sync(begun.set)
        assert lost.wait(60)

    async with open_broker("memory:") as broker:
        app = Worker(broker)
        app.on("q", timeout=50, lease=30)(handle)
        await app.send("q", "x")
        async with app:
            await begun.wait()
            with trio.move_on_after(1_000):
                await noticed.wait()
            assert jobs[0].lost
            lost.set()
            while app.stats["q"].lost != 1:
                await trio.lowlevel.checkpoint()


async def test_what_is_left_for_a_handler_is_the_rest_of_its_time() -> None:
    left = []
    async with open_broker("memory:") as broker:
        app = Worker(broker)

        @app.on("q", timeout=10, lease=60)
        async def handle(content: str, job: Job) -> None:
            left.append(job.seconds_left)

        await app.send("q", "x")
        await app.drain()
    assert 0 < left[0] <= 10


def test_under_asyncio_threads_are_used_again_and_end_with_the_worker() -> None:
    """They are our own there, and do what those of anyio do."""
    threads: set[threading.Thread] = set()
    inner: list[object] = []

    async def main() -> int:
        async with open_broker("memory:") as broker:
            app = Worker(broker)

            @app.on("q", concurrency=1)
            def handle(content: str, job: Job) -> None:
                threads.add(threading.current_thread())
                anyio.from_thread.run(app.send, "sent", job.id)
                inner.append(anyio.run(anyio.sleep, 0))  # no loop runs in this thread
                if content == "bad":
                    raise ValueError("bad")

            for content in ("a", "bad", "b"):
                await app.send("q", content)
            await app.drain()
            return (await broker.queue_stats("sent")).ready

    assert anyio.run(main, backend="asyncio") == 3
    (thread,) = threads
    thread.join(20)
    assert (thread.is_alive(), inner) == (False, [None] * 3)


def test_a_blocked_loop_is_told_of_once_with_the_line(caplog) -> None:
    watchdog = Watchdog(threading.get_ident())
    for _ in range(3):
        watchdog.check_loop()
    assert not caplog.records
    for _ in range(3):
        watchdog.check_loop()
    assert len(caplog.records) == 1
    assert "test_a_blocked_loop_is_told_of_once_with_the_line" in caplog.text
    watchdog.beat()
    for _ in range(4):
        watchdog.check_loop()
    assert len(caplog.records) == 2


@both
def test_what_a_thread_has_done_while_the_worker_stops_is_acknowledged(backend: str, monkeypatch) -> None:
    """It was given back, and done twice."""
    monkeypatch.setattr(calls, "STOP_SECONDS", 60)
    go_on = threading.Event()

    async def main() -> None:
        begun = anyio.Event()
        async with open_broker("memory:") as broker:
            app = Worker(broker)

            @app.on("q")
            def handle(content: str, job: Job) -> None:
                job.check()
                anyio.from_thread.run_sync(begun.set)
                while not job.lease.stops:
                    assert not go_on.wait(0.01)

            await app.send("q", "x")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app.serve)
                await begun.wait()
                tasks.cancel_scope.cancel()
            assert (await broker.queue_stats("q")).total == 0

    anyio.run(main, backend=backend)
