"""What messages that were claimed together share: a task, requests, a slot."""

import asyncio

import trio

from forq_trio import NewMessage, open_broker
from forq_trio.worker import Job, Retry, Worker
from forq_trio.worker.jobs import Run
from support.actors import all_idle
from worker.outside.fake_jobs import job_of


class Noting:
    """A source that notes how many receipts each settling request has, and may hold back the first one of a kind."""

    def __init__(self, source) -> None:
        self._source = source
        self.requests: list[tuple[str, int]] = []
        self.held: dict[str, trio.Event] = {}

    def __getattr__(self, name):
        call = getattr(self._source, name)
        if name not in ("ack", "nack", "release"):
            return call

        async def noted(queue, receipts, **options):
            self.requests.append((name, len(receipts)))
            if name in self.held:
                await self.held.pop(name).wait()
            return await call(queue, receipts, **options)

        return noted


async def test_handlers_that_do_not_wait_run_in_one_task_and_share_a_request(face) -> None:
    source, tasks = Noting(face.methods), []
    app = Worker(source)

    @app.on("q", concurrency=20)
    async def handle(content: str) -> None:
        tasks.append(trio.lowlevel.current_task())

    for _ in range(20):
        await app.send("q", "a")
    assert await app.drain() == 20
    assert len(set(tasks)) == 1
    assert source.requests == [("ack", 20)]


async def test_handlers_that_wait_for_the_same_share_requests_too(face) -> None:
    """One began before the others, and so its message was settled, and the next one received, apart from theirs."""
    source = Noting(face.methods)
    app = Worker(source)

    @app.on("q", concurrency=20)
    async def handle(content: str) -> None:
        await trio.lowlevel.checkpoint()

    await face.methods.produce_many("q", [NewMessage("a")] * 60)
    assert await app.drain() == 60
    assert source.requests == [("ack", 20)] * 3


async def test_a_drain_that_a_handler_begins_leaves_no_message_that_came_with_its_own(face) -> None:
    app, handled, last = Worker(face.methods), [], trio.Event()

    @app.on("q", concurrency=3)
    async def handle(content: str) -> None:
        handled.append(content)
        if content == "stops":
            app.stop()
            await last.wait()
        elif content == "last":
            last.set()

    await face.methods.produce_many("q", [NewMessage("quick")] * 3)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.serve)
        while len(handled) < 3 or app.stats["q"].handled < 3:
            await all_idle()
        await face.methods.produce_many("q", [NewMessage(each) for each in ("stops", "next", "last")])
    assert handled[3:] == ["stops", "next", "last"]
    assert app.stats["q"].handled == 6


async def test_while_handlers_wait_the_others_run(face, nursery) -> None:
    app, begun, gate = Worker(face.methods), [], trio.Event()

    @app.on("q", concurrency=20)
    async def handle(content: str) -> None:
        begun.append(content)
        await gate.wait()

    for number in range(20):
        await app.send("q", str(number))
    nursery.start_soon(app.serve)
    while len(begun) < 20:
        await all_idle()
    gate.set()
    while app.stats["q"].handled != 20:
        await trio.lowlevel.checkpoint()
    assert app.stats["q"].running == 0
    app.stop()


async def test_a_call_that_takes_too_long_ends_alone(face, nursery) -> None:
    app, jobs = Worker(face.methods), {}

    @app.on("q", concurrency=4, timeout=3, retry=[60])
    async def handle(content: str, job: Job) -> None:
        jobs[content] = job
        if content == "hangs":
            await trio.sleep_forever()

    for content in ("quick", "hangs", "quick too"):
        await app.send("q", content)
    nursery.start_soon(app.serve)
    while len(jobs) < 3 or app.stats["q"].handled != 2:
        await all_idle()
    await face.advance(2_900)
    assert app.stats["q"].failed == 0
    await face.advance(100)
    while app.stats["q"].failed != 1:
        await trio.lowlevel.checkpoint()
    message = await face.methods.message("q", jobs["hangs"].id)
    assert message.failures[-1].reason == "TimeoutError: the handler took longer than 3 s"
    app.stop()


async def test_each_call_has_its_own_time() -> None:
    run = Run(3)
    with run.scope:
        run.begin([job_of("first")])
        trio.lowlevel.current_clock().jump(2)
        run.end()
        run.begin([job_of("second")])
        assert run.scope.deadline == trio.current_time() + 3


async def test_a_lease_that_is_lost_once_the_handler_is_done_cancels_no_other_call(face, nursery) -> None:
    source = Noting(face.methods)
    answer = source.held["ack"] = trio.Event()
    app, jobs, gate = Worker(source), {}, trio.Event()

    @app.on("q", concurrency=2)
    async def handle(content: str, job: Job) -> None:
        jobs[content] = job
        if content == "goes on":
            await gate.wait()

    for content in ("done", "goes on"):
        await app.send("q", content)
    nursery.start_soon(app.serve)
    while source.requests != [("ack", 1)]:
        await all_idle()
    jobs["done"].lose()
    gate.set()
    answer.set()
    while app.stats["q"].finished != 2:
        await trio.lowlevel.checkpoint()
    assert app.stats["q"].handled == 2
    assert not jobs["goes on"].lost
    app.stop()


async def test_a_slot_of_a_batch_is_free_once_all_its_messages_are_settled(face, nursery) -> None:
    source = Noting(face.methods)
    answer = source.held["ack"] = trio.Event()
    app, calls = Worker(source), []

    @app.on("q", batch=2, concurrency=1)
    async def handle(contents: list[str]) -> list[object]:
        calls.append(contents)
        return [None, Retry(60)][: len(contents)]

    for content in "abc":
        await app.send("q", content)
    nursery.start_soon(app.serve)
    while not calls or app.stats["q"].failed != 1:
        await all_idle()
    await all_idle()
    assert calls == [["a", "b"]]
    answer.set()
    while app.stats["q"].handled != 2:
        await trio.lowlevel.checkpoint()
    assert calls == [["a", "b"], ["c"]]
    app.stop()


async def test_what_is_cancelled_together_is_given_back_in_one_request(face) -> None:
    """Each message had a request of its own, all of which had to end within two seconds."""
    source = Noting(face.methods)
    app, begun = Worker(source, drain_seconds=1), []

    @app.on("q", concurrency=20)
    async def handle(content: str) -> None:
        begun.append(content)
        await trio.sleep_forever()

    for _ in range(20):
        await app.send("q", "a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.serve)
        while len(begun) < 20:
            await all_idle()
        assert app.stats["q"].running == 20
        app.stop()
        await all_idle()
        await face.advance(1_000)
    stats = await face.methods.queue_stats("q")
    assert (stats.ready, stats.processing, app.stats["q"].running) == (20, 0, 0)
    assert ("release", 20) in source.requests


async def test_what_is_claimed_while_the_worker_is_cancelled_is_given_back_and_not_begun() -> None:
    """Nobody took it on: the task that slept had ended."""
    begun, calls, done, answer = [], [], trio.Event(), trio.Event()

    async with open_broker("memory:") as broker:

        class Late(Noting):
            async def receive(self, queue, **options):
                calls.append(queue)
                with trio.CancelScope(shield=len(calls) == 2):
                    if len(calls) == 2:
                        await answer.wait()
                    return await broker.receive(queue, **options)

        app = Worker(Late(broker), presence=False)

        @app.on("q")
        async def handle(content: str) -> None:
            begun.append(content)
            done.set()

        await app.send("q", "a")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app.serve)
            await done.wait()
            await all_idle()
            await app.send("q", "b")
            nursery.cancel_scope.cancel()
            answer.set()
        (message,) = await broker.peek("q")
        assert (message.status, message.attempts, begun) == ("ready", 0, ["a"])


def test_on_asyncio_what_is_cancelled_is_given_back() -> None:
    async def main() -> list[tuple[str, int]]:
        async with open_broker("memory:") as broker:
            app, begun = Worker(broker, presence=False), asyncio.Event()

            @app.on("q", concurrency=2)
            async def handle(content: str) -> None:
                begun.set()
                await asyncio.Event().wait()

            for content in "ab":
                await app.send("q", content)
            serving = asyncio.ensure_future(app.serve())
            await begun.wait()
            serving.cancel()
            await asyncio.wait([serving])
            found = await broker.peek("q", limit=2)
            return [(each.status, each.attempts) for each in found]

    assert asyncio.run(main()) == [("ready", 0), ("ready", 0)]
