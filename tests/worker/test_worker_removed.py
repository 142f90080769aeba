"""Messages that somebody removes while a worker has them: its handler is cancelled at once, without a heartbeat.

Where time is simulated it stands still: a lease is extended only when a test lets time pass.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import trio

from forq_trio import AsyncForqClient, ForqClient, UnknownPath, open_broker
from forq_trio.model import limits
from forq_trio.model.workers.withdrawn import WithdrawnMessage, WithdrawnMessages
from forq_trio.worker import Job, LeaseLost, Worker, WorkerTest
from support.actors import all_idle
from support.in_process import in_process_server
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET
from worker.cpu_bound import app as cpu_bound
from worker.test_worker_leases import Held
from worker.test_worker_pool import ends, number_from

LEASE = 43_200.0
"""Seconds: the first heartbeat would come after four hours."""


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await anyio.lowlevel.checkpoint()


def lost(app: Worker, count: int) -> Callable[[], bool]:
    return lambda: "q" in app.stats and app.stats["q"].lost == count


async def test_a_cancelled_message_cancels_its_handler_while_time_stands_still(face, nursery, caplog) -> None:
    app, held = Worker(face.methods), Held()
    app.on("q", lease=30, concurrency=1)(held)
    sent = await app.send("q", "a")
    nursery.start_soon(app.serve)
    await held.begun.wait()
    (job,) = held.running
    held.begun = trio.Event()
    next_one = await app.send("q", "b")
    await face.methods.cancel("q", sent.id, running=True, reason="called off")
    await held.begun.wait()
    assert held.cancelled == ["a"]
    assert (job.lost, job.removed, job.removal_reason) == (True, "cancelled", "called off")
    with pytest.raises(LeaseLost, match=f"^{sent.id} was cancelled \\(called off\\)$"):
        job.check()
    assert f"q: {sent.id} was cancelled (called off) in attempt 1; its result is refused" in caplog.text
    assert [each.id for each in held.running] == [next_one.id]  # its slot is free
    assert lost(app, 1)()
    held.gate.set()
    await until(lambda: app.stats["q"].handled == 1)
    app.stop()


async def test_with_all_slots_busy_only_the_right_one_is_cancelled(face, nursery) -> None:
    app, held, other = Worker(face.methods), Held(), Held()
    app.on("q", lease=30, concurrency=3)(held)
    app.on("other", lease=30, concurrency=1)(other)
    sent = [await app.send("q", content) for content in "abc"]
    nursery.start_soon(app.serve)
    await until(lambda: len(held.running) == 3)
    await app.send("other", "x")
    await other.begun.wait()
    await face.methods.cancel("q", sent[1].id, running=True)
    await until(lost(app, 1))
    await face.methods.cancel("q", sent[0].id, running=True)
    await until(lost(app, 2))
    assert held.cancelled == ["b", "a"]
    assert (len(held.running), len(other.running)) == (1, 1)
    held.gate.set()
    other.gate.set()
    app.stop()


async def test_a_purge_and_a_drop_by_key_cancel_it_too(face, nursery) -> None:
    app, held = Worker(face.methods), Held()
    app.on("q", lease=30, concurrency=2)(held)
    await app.send("q", "a")
    await app.send("q", "b", key="k")
    nursery.start_soon(app.serve)
    await until(lambda: len(held.running) == 2)
    jobs = list(held.running)
    assert await face.methods.drop_key("q", "k")
    await until(lost(app, 1))
    assert held.cancelled == ["b"]
    await face.purge()
    await until(lost(app, 2))
    assert held.cancelled == ["b", "a"]
    assert {each.removed for each in jobs} == {"deleted"}
    app.stop()


async def test_the_rest_of_a_batch_is_given_back(face, nursery) -> None:
    app, seen = Worker(face.methods), []
    gate, begun = trio.Event(), trio.Event()

    @app.on("q", lease=30, concurrency=1, batch=2)
    async def handle(contents: list[str], jobs: list[Job]) -> None:
        seen.append(contents)
        begun.set()
        await gate.wait()

    sent = [await app.send("q", content) for content in "ab"]
    nursery.start_soon(app.serve)
    await begun.wait()
    await face.methods.cancel("q", sent[0].id, running=True)
    await until(lost(app, 1))
    gate.set()
    await until(lambda: app.stats["q"].handled == 1)
    assert seen == [["a", "b"], ["b"]]
    (loop,) = app.running_loops
    assert not loop.leases.jobs
    app.stop()


async def test_a_job_that_is_lost_before_it_begins_never_begins(face, nursery) -> None:
    app, held = Worker(face.methods), Held()
    app.on("q", lease=30, concurrency=1)(held)
    nursery.start_soon(app.serve)
    await all_idle()
    (loop,) = app.running_loops
    hold = loop.leases.hold

    def hold_and_lose(jobs: list[Job]) -> None:
        hold(jobs)
        for job in jobs:
            loop.leases.remove(job.id, "cancelled")

    loop.leases.hold = hold_and_lose  # type: ignore[method-assign]
    await app.send("q", "a")
    await until(lost(app, 1))
    assert (held.most, app.stats["q"].running) == (0, 0)
    loop.leases.hold = hold  # type: ignore[method-assign]
    await app.send("q", "b")
    await held.begun.wait()
    held.gate.set()
    app.stop()


async def test_of_many_at_once_the_heartbeat_comes_at_once(face, nursery, monkeypatch) -> None:
    monkeypatch.setattr(limits, "WITHDRAWALS_NAMED_MAX", 1)
    app, held = Worker(face.methods), Held()
    app.on("q", lease=30, concurrency=2)(held)
    for content in "ab":
        await app.send("q", content)
    nursery.start_soon(app.serve)
    await until(lambda: len(held.running) == 2)
    jobs = list(held.running)
    await face.purge()
    await until(lost(app, 2))
    assert [each.removed for each in jobs] == [None, None]
    app.stop()


async def test_what_was_cancelled_before_the_worker_asks_is_not_missed(face, nursery) -> None:
    """It asks for all since the delivery."""
    app, seen = Worker(face.methods), []

    @app.on("q", lease=30)
    async def handle(content: str, job: Job) -> None:
        seen.append(content)
        await face.methods.cancel("q", job.id, running=True)
        await trio.sleep_forever()

    await app.send("q", "a")
    nursery.start_soon(app.serve)
    await until(lost(app, 1))
    await app.send("q", "b")
    await until(lost(app, 2))
    assert seen == ["a", "b"]
    app.stop()


class OlderServer:
    """A source that cannot say it."""

    def __init__(self, source: Any) -> None:
        self.asked = 0
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def withdrawn(self, queues: list[str], after: int) -> Any:
        self.asked += 1
        raise UnknownPath


async def test_where_the_server_cannot_say_it_the_heartbeat_does(face, nursery) -> None:
    source: Any = OlderServer(face.methods)
    app, held = Worker(source), Held()
    app.on("q", lease=30, concurrency=1)(held)
    sent = await app.send("q", "a")
    nursery.start_soon(app.serve)
    await held.begun.wait()
    (job,) = held.running
    await face.methods.cancel("q", sent.id, running=True)
    await all_idle()
    assert (held.cancelled, source.asked) == ([], 1)
    await face.advance(10_000)
    await until(lost(app, 1))
    assert (held.cancelled, job.removed, source.asked) == (["a"], None, 1)
    app.stop()


class CancelsMeanwhile(OlderServer):
    """A source of which a message is cancelled while its lease is to be extended."""

    def __init__(self, source: Any, app: Worker) -> None:
        super().__init__(source)
        self.extended = trio.Event()
        self._app = app

    async def extend(self, queue: str, receipts: list[str], lease_ms: int) -> Any:
        (loop,) = self._app.running_loops
        (job,) = loop.leases.jobs.values()
        await self._source.cancel(queue, job.id, running=True, reason="called off")
        await until(lambda: job.lost)
        answer = await self._source.extend(queue, receipts, lease_ms)
        self.extended.set()
        return answer

    async def withdrawn(self, queues: list[str], after: int) -> Any:
        return await self._source.withdrawn(queues, after)


async def test_an_extension_under_way_forgets_nothing_of_a_removal(face, nursery) -> None:
    """The handler's cleanup was told that nobody had removed the message."""
    app = Worker()
    source: Any = CancelsMeanwhile(face.methods, app)
    app._source.give(source, None)
    begun, seen = trio.Event(), []

    @app.on("q", lease=30, concurrency=1)
    async def handle(content: str, job: Job) -> None:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await source.extended.wait()
            seen.append((job.removed, job.removal_reason))

    await face.methods.produce("q", "a")
    nursery.start_soon(app.serve)
    await begun.wait()
    await face.advance(10_000)
    await until(lost(app, 1))
    assert seen == [("cancelled", "called off")]
    app.stop()


class VagueServer(OlderServer):
    """A source that always says that any message may be removed."""

    async def withdrawn(self, queues: list[str], after: int) -> WithdrawnMessages:
        self.asked += 1
        if self.asked > 9:  # far too often: the test fails
            await trio.sleep_forever()
        return WithdrawnMessages([WithdrawnMessage(queue, None, None) for queue in queues], after + 1)


async def test_it_does_not_extend_all_leases_again_and_again_because_of_answers_without_ids(
    face, nursery
) -> None:
    source: Any = VagueServer(face.methods)
    app, held = Worker(source), Held()
    app.on("q", lease=30, concurrency=1)(held)
    await app.send("q", "a")
    nursery.start_soon(app.serve)
    await held.begun.wait()
    await all_idle()
    assert source.asked == 1
    await face.advance(1_000)
    await until(lambda: source.asked == 2)
    held.gate.set()
    app.stop()


async def test_while_it_has_no_message_it_does_not_ask(face, nursery) -> None:
    source: Any = OlderServer(face.methods)
    app, held = Worker(source), Held()
    app.on("q")(held)
    nursery.start_soon(app.serve)
    await all_idle()
    assert source.asked == 0
    await app.send("q", "a")
    await held.begun.wait()
    await until(lambda: source.asked == 1)
    held.gate.set()
    app.stop()


async def test_a_thread_is_told_by_its_job(caplog) -> None:
    begun = trio.Event()
    told: list[object] = []

    def handle(content: str, job: Job) -> None:
        trio.from_thread.run_sync(begun.set)
        while not job.lost:
            trio.from_thread.run(trio.lowlevel.checkpoint)
        told.append(job.removed)
        with pytest.raises(LeaseLost, match="was cancelled"):
            job.check()

    async with open_broker("memory:") as broker:
        app = Worker(broker)
        app.on("q", lease=LEASE, concurrency=1)(handle)
        sent = await app.send("q", "a")
        async with app:
            await begun.wait()
            await broker.cancel("q", sent.id, running=True)
            await until(lost(app, 1))
    assert told == ["cancelled"]
    assert f"{sent.id} was cancelled, and its handler runs in a thread" in caplog.text


@pytest.mark.parametrize("backend", ["trio", pytest.param("asyncio", marks=pytest.mark.tier2)])
def test_a_process_is_killed(backend: str, tmp_path: Path) -> None:
    async def test(t: WorkerTest) -> None:
        async with cpu_bound:
            process = os.pidfd_open(await number_from(tmp_path / "pipe"))
            try:
                (loop,) = [each for each in cpu_bound.running_loops if each.queue == "hanging"]
                (job,) = loop.leases.jobs.values()
                await t.broker.cancel("hanging", job.id, running=True)
                with anyio.fail_after(WAIT_SECONDS_MAX):
                    await ends(process)
            finally:
                os.close(process)

    async def main() -> None:
        async with cpu_bound.testing() as t:
            await test(t)

    anyio.run(main, backend=backend)


class Waits:
    """A handler that never ends by itself, on either event loop."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.jobs: list[Job] = []
        self.cancelled = 0

    async def __call__(self, content: str, job: Job) -> None:
        self.jobs.append(job)
        self.begun.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise


class LateAnswers(OlderServer):
    """A source that has claimed the message "late" for a while before it says so."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.claimed, self.gate = anyio.Event(), anyio.Event()

    async def receive(self, queue: str, **options: Any) -> Any:
        found = await self._source.receive(queue, **options)
        if any(each.content == "late" for each in found):
            self.claimed.set()
            await self.gate.wait()
        return found

    async def withdrawn(self, queues: list[str], after: int) -> Any:
        self.asked += 1
        return await self._source.withdrawn(queues, after)


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
@pytest.mark.parametrize("holds_before", [True, False])
def test_what_is_cancelled_before_the_answer_of_its_claim_is_not_missed(
    backend: str, holds_before: bool
) -> None:
    """Polls went on from where they were, or began at the delivery of another message."""

    async def main() -> None:
        async with open_broker("memory:") as broker:
            source: Any = LateAnswers(broker)
            app, handler, other = Worker(source), Waits(), Waits()
            app.on("q", lease=LEASE)(handler)
            app.on("other", lease=LEASE)(other)
            async with app:
                with anyio.fail_after(WAIT_SECONDS_MAX):
                    if holds_before:
                        await app.send("other", "x")
                        await until(lambda: source.asked == 1)
                    sent = await app.send("q", "late")
                    await source.claimed.wait()
                    await broker.cancel("q", sent.id, running=True, reason="called off")
                    if holds_before:
                        await until(lambda: source.asked == 2)
                    else:
                        await app.send("other", "x")
                        await until(lambda: source.asked == 1)
                    source.gate.set()
                    await until(lost(app, 1))
                for job in other.jobs:
                    await broker.cancel("other", job.id, running=True)
                with anyio.fail_after(WAIT_SECONDS_MAX):
                    await until(lambda: app.stats["other"].lost == 1)
            assert [job.removal_reason for job in handler.jobs] == ["called off"]

    anyio.run(main, backend=backend)


async def _cancelled_at_once(source: Any) -> None:
    app, handler = Worker(source), Waits()
    app.on("q", lease=LEASE, concurrency=1)(handler)
    sent = await app.send("q", "a")
    async with app:
        with anyio.fail_after(WAIT_SECONDS_MAX):
            await handler.begun.wait()
            await source.cancel("q", sent.id, running=True)
            await until(lost(app, 1))
    assert (handler.cancelled, handler.jobs[0].removed) == (1, "cancelled")


def test_on_asyncio_with_a_broker_inside() -> None:
    async def main() -> None:
        async with open_broker("memory:") as broker:
            await _cancelled_at_once(broker)

    anyio.run(main, backend="asyncio")


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.tier2)])
def test_over_http(backend: str) -> None:
    async def main(url: str) -> None:
        async with AsyncForqClient(url, SECRET) as client:
            await _cancelled_at_once(client)

    with in_process_server() as url:
        anyio.run(main, url, backend=backend)
        with ForqClient(url, SECRET) as client:
            assert client.queue_stats("q").total == 0


def test_in_a_test_of_an_application() -> None:
    """`Worker.testing` has a source of its own, which makes its methods when it is asked for them."""

    async def main() -> None:
        app, handler = Worker("http://127.0.0.1:1"), Waits()
        app.on("q", lease=30)(handler)
        async with app.testing() as t, app:
            sent = await app.send("q", "a")
            await handler.begun.wait()
            await t.broker.cancel("q", sent.id, running=True)
            await until(lost(app, 1))
        assert handler.cancelled == 1

    anyio.run(main, backend="trio")
