"""`Worker.testing`: the application on a queue in memory, with a clock that moves a running worker, too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import anyio
import pytest

from forq_trio import MessageBatchNotFound
from forq_trio.model import limits
from forq_trio.worker import Job, Worker, WorkerTest

both = pytest.mark.parametrize("backend", ["trio", "asyncio"])


def an_application(seen: list[object]) -> Worker:
    """Its server is never asked."""
    app = Worker("http://127.0.0.1:1")

    @app.on("signups")
    async def sign_up(address: str) -> None:
        await app.send("emails", {"to": address})
        await app.send("letters", {"to": address}, delay=3_600, key=address)
        await app.send("statistics", address)

    @app.on("emails", retry=[60])
    async def send_email(mail: dict[str, str], job: Job) -> None:
        seen.append((job.queue, mail["to"], job.attempt))
        if job.attempt == 1:
            raise OSError("no line")

    @app.on("letters")
    def send_letter(letter: dict[str, str], job: Job) -> None:
        seen.append((job.queue, letter["to"], job.attempt))

    return app


@both
def test_what_is_due_is_handled_and_what_was_sent_is_told(backend: str) -> None:
    seen: list[object] = []
    app = an_application(seen)

    async def main() -> None:
        async with app.testing() as t:
            await app.handlers["signups"].later("anna")
            assert await t.drain() == 2
            assert t.sent("emails") == t.sent("letters") == [{"to": "anna"}]
            assert (t.sent("signups"), t.sent("statistics"), t.sent("others")) == (["anna"], ["anna"], [])
            await t.advance(60)
            assert await t.drain() == 1
            await t.advance(3_600)
            assert await t.drain() == 1
            assert (await t.broker.queue_stats("statistics")).ready == 1
        async with app.testing() as t:
            assert (await t.drain(), t.sent("emails")) == (0, [])

    anyio.run(main, backend=backend)
    assert seen == [("emails", "anna", 1), ("emails", "anna", 2), ("letters", "anna", 1)]


@both
def test_the_clock_moves_a_running_worker(backend: str) -> None:
    seen: list[object] = []
    app = an_application(seen)

    async def main() -> None:
        async with app.testing() as t, app:
            await app.handlers["signups"].later("anna")
            assert await t.drain() == 2
            assert await t.drain() == 0
            await t.advance(60)
            await t.drain()
            await t.advance(3_600)
            await t.drain()
            assert [app.stats[queue].handled for queue in ("signups", "emails", "letters")] == [1, 1, 1]

    anyio.run(main, backend=backend)
    assert seen == [("emails", "anna", 1), ("emails", "anna", 2), ("letters", "anna", 1)]


@both
def test_messages_that_come_around_the_worker_are_waited_for(backend: str) -> None:
    app, seen = Worker(), []

    @app.on("numbers", concurrency=3)
    async def note(number: int) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(number)
        if number < 20:
            await note.later(number + 1)

    async def main() -> None:
        async with app.testing() as t, app:
            for _ in range(5):
                await t.broker.produce("numbers", "1")
                await t.drain()
                assert sorted(seen) == [*range(1, 21)]
                seen.clear()

    anyio.run(main, backend=backend)


@both
def test_the_worker_may_run_more_than_once_in_a_test(backend: str) -> None:
    app = an_application([])

    async def main() -> None:
        async with app.testing() as t:
            for name in ("anna", "bela"):
                async with app:
                    await app.handlers["signups"].later(name)
                    assert await t.drain() == 2

    anyio.run(main, backend=backend)


@both
def test_the_lease_of_a_handler_that_runs_does_not_end_by_the_clock(backend: str) -> None:
    app = Worker()
    attempts = []

    async def main() -> None:
        begun, go_on = anyio.Event(), anyio.Event()

        @app.on("slow", lease=30)
        async def wait(content: str, job: Job) -> None:
            attempts.append(job.attempt)
            begun.set()
            await go_on.wait()

        async with app.testing() as t, app:
            await wait.later("x")
            await begun.wait()
            await t.advance(20 * 3_600)
            go_on.set()
            assert await t.drain() == 1
            assert (await t.broker.queue_stats("slow")).total == 0

    anyio.run(main, backend=backend)
    assert (attempts, app.stats["slow"].handled, app.stats["slow"].lost) == ([1], 1, 0)


class Later:
    """A clock that somebody else moves."""

    ms = 1_000_000_000_000

    def now_ms(self) -> int:
        return self.ms


async def test_a_clock_and_a_lifespan_may_be_the_tests_own() -> None:
    @asynccontextmanager
    async def real() -> AsyncIterator[Any]:
        pytest.fail("a test has its own")
        yield

    @asynccontextmanager
    async def fake() -> AsyncIterator[str]:
        yield "fake"

    app, clock = Worker(lifespan=real), Later()
    states = []

    @app.on("q")
    async def note(content: str, job: Job[str]) -> None:
        states.append((job.state, job.received_at))

    async with app.testing(clock=clock, lifespan=fake) as t:
        await note.later("x", delay=2)
        clock.ms += 1_000
        assert await t.drain() == 0
        await t.advance(1)
        assert await t.drain() == 1
        with pytest.raises(ValueError, match="0 or more"):
            await t.advance(-1)
    assert states == [("fake", Later.ms)]


@both
@pytest.mark.parametrize("beside", [False, True], ids=["drain", "running"])
def test_what_batches_and_chains_send_is_told_once(backend: str, beside: bool) -> None:
    app = Worker()

    @app.on("members", retry=[])
    async def member(number: int) -> None:
        if number < 0:
            raise OSError("no luck")

    async def main() -> None:
        async with app.testing() as t, app if beside else nullcontext():
            async with app.batch(then="reports", payload="empty"):
                pass
            assert t.sent("reports") == ["empty"]
            await app.send("reports", "before")
            async with app.batch(then="reports", payload="both", on_dead="alarms") as batch:
                await batch.add_many(member, [1, 2, -1])
            async with app.batch(then="reports", payload="never", needs="done") as batch:
                await batch.add(member, -2)
            await app.chain((member, 3), ("reports", "second"), (member, 4))
            await t.drain()
            assert (t.sent("reports")[:2], sorted(t.sent("reports")[2:])) == (
                ["empty", "before"],
                ["both", "second"],
            )
            assert (t.sent("alarms"), t.sent("members")) == (["both"], [1, 2, -1, -2, 3])
            (second,) = [
                each for each in await t.broker.receive("reports", max_messages=10) if "sec" in each.content
            ]
            await t.broker.ack("reports", second)
            await t.drain()
            assert t.sent("members") == [1, 2, -1, -2, 3, 4]

    anyio.run(main, backend=backend)


async def test_a_batch_that_was_removed_long_ago_is_not_asked_for() -> None:
    app, clock = Worker(), Later()
    app.on("members")(nothing)
    async with app.testing(clock=clock) as t:
        async with app.batch(then="reports", payload=1, expires=60) as batch:
            await batch.add("members", "x", delay="50 d")
        for _ in range(2):  # it ends, and is removed
            clock.ms += 10 * limits.DAY_MS
            await t.broker.healthcheck()
        with pytest.raises(MessageBatchNotFound):
            await batch.progress()
        assert (await t.drain(), t.sent("reports")) == (0, [])


async def test_a_sent_message_that_was_refused_is_not_told() -> None:
    app = Worker()

    @app.on("q")
    async def note(content: str) -> None: ...

    async with app.testing() as t:
        with pytest.raises(TypeError, match="surprise"):
            await note.later("x", surprise=1)
        await note.later("y", key="k")
        assert t.sent("q") == ["y"]
        assert isinstance(t, WorkerTest)


async def test_a_worker_that_was_stopped_is_not_waited_for() -> None:
    app = Worker()
    app.on("q")(nothing)
    async with app.testing() as t, app:
        app.stop()
        with pytest.raises(RuntimeError, match="runs already"):
            await t.drain()


async def nothing(content: str) -> None: ...
