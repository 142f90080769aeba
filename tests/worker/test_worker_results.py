"""Results of handlers: stored with the ack, typed, waited for; the errors of who waits; and progress."""

import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest
from msgspec import Struct

from forq_trio import ForqClient, open_blocking_broker, open_broker
from forq_trio.model import limits
from forq_trio.model.errors import (
    Forbidden,
    ForqError,
    ForqUnreachable,
    Overloaded,
    ReadDeadlineExceeded,
    Stopping,
)
from forq_trio.worker import Discard, Job, JobFailed, ResultGone, Worker, WorkerSetupError, WorkerTest
from support.in_process import in_process_server
from support.real_server import SECRET

both = pytest.mark.parametrize("backend", ["trio", "asyncio"])


class Size(Struct):
    width: int
    height: int


def a_thumbnailer() -> Worker:
    """Its server is never asked."""
    app = Worker("http://127.0.0.1:1")

    @app.on("thumbs", keep_result="1h", retry=[60])
    async def thumb(path: str, job: Job) -> Size | Discard:
        if path == "broken":
            raise OSError("no such picture")
        if path == "unwanted":
            return Discard("a film")
        return Size(640, len(path))

    @app.on("plain")
    async def plain(path: str) -> str:
        return path

    return app


def run_with(backend: str, test: Callable[[Worker, WorkerTest], Awaitable[None]]) -> None:
    async def main() -> None:
        app = a_thumbnailer()
        async with app.testing() as t:
            await test(app, t)

    anyio.run(main, backend=backend)


@both
def test_what_a_handler_returns_is_its_result(backend: str) -> None:
    async def test(app: Worker, t: WorkerTest) -> None:
        thumb = app.handlers["thumbs"]
        sent = await thumb.later("a.png")
        with pytest.raises(TimeoutError, match="has not ended within 0 s"):
            await thumb.result(sent, timeout=0)
        assert await t.drain() == 1
        assert await thumb.result(sent, timeout=0) == Size(640, 5)
        assert await thumb.result(sent.id) == Size(640, 5)
        kept = await t.broker.finished_message("thumbs", sent.id)
        assert kept.kept_until == kept.finished_at + limits.HOUR_MS

    run_with(backend, test)


@both
def test_who_waits_is_woken_by_the_running_worker(backend: str) -> None:
    async def test(app: Worker, t: WorkerTest) -> None:
        thumb = app.handlers["thumbs"]
        async with app:
            sizes = [await thumb.result(await thumb.later(name), timeout=20) for name in ("a", "bc")]
        assert sizes == [Size(640, 1), Size(640, 2)]

    run_with(backend, test)


@both
def test_a_failure_raises_with_the_last_error(backend: str) -> None:
    async def test(app: Worker, t: WorkerTest) -> None:
        thumb = app.handlers["thumbs"]
        broken, unwanted, cancelled = [
            await thumb.later(name) for name in ("broken", "unwanted", "cancelled")
        ]
        await t.broker.cancel("thumbs", cancelled.id)
        assert await t.drain() == 2
        with pytest.raises(TimeoutError):
            await thumb.result(broken, timeout=0)
        await t.advance(60)
        assert await t.drain() == 1
        with pytest.raises(JobFailed, match="is a dead letter: OSError: no such picture") as failed:
            await thumb.result(broken, timeout=0)
        assert (failed.value.state, failed.value.last_error) == ("dead", "OSError: no such picture")
        for gone in (unwanted, cancelled):
            with pytest.raises(ResultGone):
                await thumb.result(gone, timeout=0)

    run_with(backend, test)


@both
@pytest.mark.parametrize("history", [False, True])
def test_an_end_that_is_not_stored_is_told_to_who_waited(backend: str, history: bool) -> None:
    """Whoever asks later learns it from the history alone."""

    async def main() -> None:
        async with open_broker("memory:", history=history) as broker:
            app = Worker(broker)

            @app.on("films", keep_result=60)
            async def refuse(path: str) -> str | Discard:
                return Discard("a film")

            async def wait() -> None:
                with pytest.raises(JobFailed, match="discarded"):
                    await refuse.result(sent, timeout=20)

            sent, waits = await refuse.later("a"), anyio.Event()
            broker._writer.announced.ended.on_first = waits.set
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await waits.wait()
                assert await app.drain() == 1
            later = JobFailed if history else ResultGone
            with pytest.raises(later, match="discarded" if history else "ended without one before this wait"):
                await refuse.result(sent, timeout=0)

    anyio.run(main, backend=backend)


@both
def test_a_handler_without_it_stores_nothing(backend: str) -> None:
    async def test(app: Worker, t: WorkerTest) -> None:
        plain = app.handlers["plain"]
        sent = await plain.later("x")
        assert await t.drain() == 1
        with pytest.raises(RuntimeError, match="its results are not stored"):
            await plain.result(sent)
        assert (await t.broker.history_range()).last == 0

    run_with(backend, test)


@both
def test_results_of_a_server_and_of_threads(backend: str) -> None:
    with in_process_server() as url:
        app = Worker(url, secret=SECRET, backend=backend)
        other = Worker(url, secret=SECRET)  # of a web process
        for each in (app, other):

            @each.on("squares", keep_result=timedelta(minutes=1))
            def square(number: int) -> int:
                return number * number

        asked = other.handlers["squares"]
        sent = [asked.later_blocking(number) for number in (3, 3, 4)]
        app.run(stop_when_empty=True)
        assert [asked.result_blocking(each, timeout=0) for each in sent] == [9, 9, 16]

        async def web() -> None:
            async with other.open():
                assert await asked.result(sent[2], timeout=0) == 16
                thread = anyio.to_thread.run_sync(lambda: asked.result_blocking(sent[0], timeout=0))
                assert await thread == 9
                with pytest.raises(RuntimeError, match="would block the event loop"):
                    asked.result_blocking(sent[0])

        anyio.run(web, backend=backend)


@both
def test_each_message_of_a_batch_has_its_own_result(backend: str) -> None:
    async def main() -> None:
        app = Worker("http://127.0.0.1:1")

        @app.on("sums", batch=10, keep_result=60)
        async def add(pairs: list[tuple[int, int]]) -> list[int]:
            return [a + b for a, b in pairs]

        async with app.testing() as t:
            sent = [await add.later((number, 1)) for number in range(3)]
            assert await t.drain() == 3
            results: list[Any] = [await add.result(each, timeout=0) for each in sent]
            assert results == [1, 2, 3]

    anyio.run(main, backend=backend)


def test_a_result_that_cannot_be_stored_fails_the_attempt() -> None:
    async def main() -> None:
        app = Worker("http://127.0.0.1:1")

        @app.on("texts", keep_result=60, retry=[])
        async def repeat(number: int) -> str:
            if number < 0:
                return "a\0b"
            return "x" * number if number else number  # type: ignore[return-value]

        async with app.testing() as t:
            large, odd, zero, right = [
                await repeat.later(number)
                for number in (limits.RESULT_BYTES_MAX + 1, 0, -1, limits.RESULT_BYTES_MAX)
            ]
            assert await t.drain() == 4
            with pytest.raises(JobFailed, match="the result cannot be stored: it has 65,537 bytes"):
                await repeat.result(large, timeout=0)
            with pytest.raises(JobFailed, match="the result cannot be stored: Expected `str`"):
                await repeat.result(odd, timeout=0)
            with pytest.raises(JobFailed, match=r"the result cannot be stored: it has the character U\+0000"):
                await repeat.result(zero, timeout=0)
            assert len(await repeat.result(right, timeout=0)) == limits.RESULT_BYTES_MAX

    anyio.run(main)


@pytest.mark.parametrize("keep", [0, -1, "1", "8d", "soon", float("nan"), True, timedelta(days=8)])
def test_a_time_that_is_none_is_refused_with_the_place(keep: Any) -> None:
    app = Worker("memory:")
    with pytest.raises(WorkerSetupError, match=r"test_worker_results.py:\d+: .*handle: keep_result: "):

        @app.on("q", keep_result=keep)
        def handle(content: str) -> str:
            return content


def test_a_handler_says_what_it_returns() -> None:
    app = Worker("memory:")
    with pytest.raises(WorkerSetupError, match="the function has no annotation of what it returns"):

        @app.on("q", keep_result=1)
        def handle(content: str):  # type: ignore[no-untyped-def]
            return content


class Starved:
    """A source whose first answers about results are errors."""

    def __init__(self, source: Any, errors: list[ForqError]) -> None:
        self._source = source
        self._errors = errors

    def __getattr__(self, name: str) -> Any:
        if name == "message_result" and self._errors:
            return partial(self._refuse, self._errors.pop(0))
        return getattr(self._source, name)

    def _refuse(self, error: ForqError, *given: Any, **options: Any) -> Any:
        raise error


@both
def test_a_wait_goes_on_after_an_error_that_passes(backend: str) -> None:
    async def main() -> None:
        errors: list[ForqError] = []
        async with open_broker("memory:") as broker:
            app = Worker(Starved(broker, errors))  # type: ignore[arg-type]

            @app.on("sizes", keep_result=60)
            async def size(path: str) -> int:
                return len(path)

            sent = await size.later("abc")
            await app.drain()
            errors += [ReadDeadlineExceeded(), Overloaded()]
            assert await size.result(sent, timeout=20) == 3
            errors += [ReadDeadlineExceeded()]
            with pytest.raises(TimeoutError, match=r"has not ended within 0 s, .* took too long") as late:
                await size.result(sent, timeout=0)
            assert isinstance(late.value.__cause__, ReadDeadlineExceeded)
            no_trust = ForqUnreachable("its certificate is wrong", sent=False, lasting=True)
            for lasting in (
                Forbidden(),
                no_trust,
                Stopping(),
            ):  # a broker that has stopped never answers again
                errors += [lasting]
                with pytest.raises(type(lasting)):
                    await size.result(sent, timeout=20)

    anyio.run(main, backend=backend)


def test_a_wait_of_a_thread_goes_on_after_an_error_that_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[ForqError] = [Stopping(), ReadDeadlineExceeded()]
    with in_process_server() as url, ForqClient(url, SECRET) as client:
        app = Worker(url, secret=SECRET)

        @app.on("sizes", keep_result=60)
        def size(path: str) -> int:
            return len(path)

        sent = size.later_blocking("abc")
        app.run(stop_when_empty=True)
        monkeypatch.setattr(app._source, "to_send_blocking", lambda: Starved(client, errors))
        assert size.result_blocking(sent, timeout=20) == 3
        assert errors == []
        errors += [ReadDeadlineExceeded()]
        with pytest.raises(TimeoutError, match=r"has not ended within 0 s, .* took too long"):
            size.result_blocking(sent, timeout=0)
    with open_blocking_broker("memory:") as broker:
        monkeypatch.setattr(app._source, "to_send_blocking", lambda: Starved(broker, [Stopping()]))
        with pytest.raises(Stopping):
            size.result_blocking(sent, timeout=20)


def test_a_blocking_program_asks_for_results_with_the_clients_methods() -> None:
    with open_blocking_broker("memory:") as broker:
        client: ForqClient = broker
        sent = client.produce("q", "x")
        known: list[Any] = []
        waiter = threading.Thread(
            target=lambda: known.append(client.message_result("q", sent.id, wait_ms=20_000))
        )
        waits = threading.Event()
        broker.inner._writer.announced.ended.on_first = waits.set
        waiter.start()
        waits.wait()
        client.cancel("q", sent.id)
        waiter.join()
        assert known[0].state == "cancelled"
