"""Leases while handlers run: extended, shortened, lost."""

import pytest
import trio

from forq_trio import NewMessage
from forq_trio.worker import Job, LeaseLost, Worker
from forq_trio.worker.leases import JobLeases
from support.actors import all_idle


async def started(nursery, app) -> None:
    nursery.start_soon(app.serve)
    await all_idle()


class Held:
    """A handler that works until it is let go."""

    def __init__(self, *, swallows: bool = False) -> None:
        self.running: list[Job] = []
        self.cancelled: list[str] = []
        self.most = 0
        self.gate = trio.Event()
        self.begun = trio.Event()
        self._swallows = swallows

    async def __call__(self, content: str, job: Job) -> None:
        self.running.append(job)
        self.most = max(self.most, len(self.running))
        self.begun.set()
        try:
            await self.gate.wait()
        except trio.Cancelled:
            self.cancelled.append(content)
            if not self._swallows:
                raise
        finally:
            self.running.remove(job)


async def test_a_lease_is_extended_while_the_handler_runs(face, nursery) -> None:
    app, held = Worker(face.methods), Held()
    app.on("q", lease=30)(held)
    await app.send("q", "a")
    nursery.start_soon(app.serve)
    await held.begun.wait()
    for _ in range(20):
        await face.advance(10_000)
        (job,) = held.running
        assert job.seconds_left > 15
    held.gate.set()
    while app.stats["q"].handled != 1:
        await trio.lowlevel.checkpoint()
    assert (await face.methods.queue_stats("q")).total == 0
    app.stop()


async def test_a_lost_lease_cancels_the_handler_at_once_and_refuses_its_result(face, nursery) -> None:
    """Somebody made the receipt invalid: the message was deleted and sent again by its key, say."""
    app, held = Worker(face.methods), Held(swallows=True)
    app.on("q", lease=30, concurrency=1)(held)
    await face.methods.offer("q", "key", "a")
    nursery.start_soon(app.serve)
    await held.begun.wait()
    await face.methods.offer("q", "key", "b")
    held.begun = trio.Event()
    await face.advance(10_000)
    await held.begun.wait()
    assert held.cancelled == ["a"]
    assert app.stats["q"].lost == 1
    assert app.stats["q"].handled == 0
    held.gate.set()
    while app.stats["q"].handled != 1:
        await trio.lowlevel.checkpoint()
    app.stop()


async def test_a_deadline_can_only_be_earlier_and_is_extended_no_more(face, nursery) -> None:
    app, held = Worker(face.methods), Held()
    app.on("q", lease=30, concurrency=1)(held)
    await app.send("q", "a")
    nursery.start_soon(app.serve)
    await held.begun.wait()
    (job,) = held.running
    with pytest.raises(ValueError, match="earlier"):
        await job.set_deadline(40)
    await job.set_deadline(5)
    held.begun = trio.Event()
    await face.advance(4_990)
    assert held.running == [job]
    await face.advance(10)
    await held.begun.wait()
    assert held.cancelled == ["a"]
    assert [each.attempt for each in held.running] == [2]
    with pytest.raises(LeaseLost):
        job.check()
    held.gate.set()
    app.stop()


async def test_a_handler_has_a_timeout_of_its_own(face, nursery, caplog) -> None:
    app, held = Worker(face.methods), Held()
    app.on("q", timeout=3, retry=[60])(held)
    sent = await app.send("q", "a")
    nursery.start_soon(app.serve)
    await held.begun.wait()
    await face.advance(3_000)
    while app.stats["q"].failed != 1:
        await trio.lowlevel.checkpoint()
    message = await face.methods.message("q", sent.id)
    assert message.failures[-1].reason == "TimeoutError: the handler took longer than 3 s"
    assert "failed: TimeoutError: the handler took longer than 3 s" in caplog.text
    app.stop()


async def test_no_more_run_than_there_are_slots_and_a_slow_one_holds_up_nobody(face, nursery) -> None:
    app, held, quick = Worker(face.methods), Held(), []
    app.on("q", concurrency=3)(held)

    @app.on("other")
    async def other(content: str) -> None:
        quick.append(content)

    for content in "abcdefg":
        await app.send("q", content)
    nursery.start_soon(app.serve)
    while len(held.running) < 3:
        await trio.lowlevel.checkpoint()
    await app.send("other", "x")
    while not quick:
        await trio.lowlevel.checkpoint()
    assert (await face.methods.queue_stats("q")).processing == 3
    held.gate.set()
    while app.stats["q"].handled != 7:
        await trio.lowlevel.checkpoint()
    assert held.most == 3
    app.stop()


async def test_a_drain_claims_no_more_and_lets_handlers_end(face) -> None:
    app, held = Worker(face.methods, drain_seconds=10), Held()
    app.on("q", concurrency=1)(held)
    for content in "ab":
        await app.send("q", content)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.serve)
        await held.begun.wait()
        app.stop()
        await face.advance(9_000)
        held.gate.set()
    stats = await face.methods.queue_stats("q")
    assert (stats.ready, stats.processing, app.stats["q"].handled) == (1, 0, 1)


async def test_after_the_bound_of_a_drain_handlers_are_cancelled_and_messages_given_back_uncounted(
    face,
) -> None:
    app, held = Worker(face.methods, drain_seconds=10), Held()
    app.on("q")(held)
    await app.send("q", "a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.serve)
        await held.begun.wait()
        app.stop()
        await all_idle()
        await face.advance(10_000)
    assert held.cancelled == ["a"]
    (message,) = await face.methods.peek("q")
    assert (message.status, message.attempts) == ("ready", 0)


async def test_leaving_the_block_drains(face) -> None:
    app, held = Worker(face.methods), Held()
    app.on("q")(held)
    async with app:
        await app.send("q", "a")
        await held.begun.wait()
        held.gate.set()
    assert app.stats["q"].handled == 1


async def test_an_error_of_the_block_comes_out_as_it_is(face) -> None:
    app = Worker(face.methods)
    app.on("q")(Held())
    with pytest.raises(KeyError, match="mine"):
        async with app:
            raise KeyError("mine")


async def test_stop_when_empty_waits_for_what_runs(face) -> None:
    app, seen = Worker(face.methods), []

    @app.on("q", concurrency=2)
    async def handle(number: int) -> None:
        if number < 5:
            await app.send("q", number + 1)
        seen.append(number)

    await app.send("q", 0)
    await app.serve(stop_when_empty=True)
    assert sorted(seen) == [0, 1, 2, 3, 4, 5]


async def test_a_lost_lease_in_a_batch_gives_the_others_back(face, nursery) -> None:
    """They were acknowledged once, though the handler had been cancelled."""
    app, begun, calls = Worker(face.methods), trio.Event(), []

    @app.on("q", batch=2, concurrency=1, lease=30)
    async def handle(contents: list[str], jobs: list[Job]) -> None:
        calls.append(contents)
        begun.set()
        if len(calls) == 1:
            await jobs[0].set_deadline(5)
            await trio.sleep_forever()

    for content in "ab":
        await app.send("q", content)
    nursery.start_soon(app.serve)
    await begun.wait()
    await all_idle()
    await face.advance(5_000)
    while app.stats["q"].handled != 2:
        await all_idle()
        await face.advance(100)
    assert calls[0] == ["a", "b"]
    assert sorted(content for call in calls[1:] for content in call) == ["a", "b"]
    app.stop()


async def test_a_lease_that_is_extended_once_its_handler_was_cancelled_ends_no_worker(face, nursery) -> None:
    """The answer of an extension comes while the handler cleans up: it failed, and the attempt counts."""
    app, calls, all_wait = Worker(face.methods), [], trio.Event()

    @app.on("q", concurrency=1, lease=30, retry=[1])
    async def handle(content: str, job: Job) -> None:
        calls.append(content)
        if len(calls) == 1:
            await all_wait.wait()
            job.lease.end_at(trio.current_time())  # the extension before has no answer yet
            try:
                await trio.sleep_forever()
            finally:
                job.lease.end_at(trio.current_time() + 30)

    await app.send("q", "a")
    nursery.start_soon(app.serve)
    while not calls:
        await all_idle()
    all_wait.set()
    while app.stats["q"].handled != 1:
        await all_idle()
        await face.advance(100)
    assert calls == ["a", "a"]
    assert (app.stats["q"].failed, app.stats["q"].lost) == (1, 0)
    app.stop()


async def test_leases_are_extended_beside_a_job_that_is_lost_and_goes_on(face, nursery) -> None:
    app, held, stuck = Worker(face.methods), Held(), trio.Event()

    @app.on("q", lease=30)
    async def handle(content: str, job: Job) -> None:
        if content == "stuck":
            job.lose()
            with trio.CancelScope(shield=True):
                await stuck.wait()
        else:
            await held(content, job)

    await app.send("q", "stuck")
    nursery.start_soon(app.serve)
    await all_idle()
    await face.advance(40_000)
    await app.send("q", "healthy")
    await held.begun.wait()
    for _ in range(10):
        await face.advance(10_000)
    assert [job.attempt for job in held.running] == [1]
    stuck.set()
    held.gate.set()
    while app.stats["q"].handled != 1:
        await trio.lowlevel.checkpoint()
    app.stop()


async def test_a_message_whose_lease_ended_while_it_waited_for_its_slot_is_not_begun(face) -> None:
    """The call before it never let the loop run, so nothing has marked the lease as lost yet."""
    app, begun = Worker(face.methods), []

    @app.on("q", lease=30, concurrency=2)
    async def handle(content: str) -> None:
        begun.append(content)
        trio.lowlevel.current_clock().jump(31)
        app.stop()

    await face.methods.produce_many("q", [NewMessage("first"), NewMessage("second")])
    await app.serve()
    assert begun == ["first"]
    assert app.stats["q"].lost == 1


async def test_a_batch_whose_leases_ended_before_its_call_frees_its_slot(face, nursery, monkeypatch) -> None:
    """One of two was left out where the jobs of a batch were let go, and so had the slot for ever."""
    app, calls, hold = Worker(face.methods), [], JobLeases.hold

    def hold_too_long(leases: JobLeases, jobs: list[Job]) -> None:
        hold(leases, jobs)
        trio.lowlevel.current_clock().jump(31)  # the loop did something else after the claim
        monkeypatch.undo()

    @app.on("q", batch=10, lease=30, concurrency=1)
    async def handle(contents: list[str]) -> None:
        calls.append(contents)

    await face.methods.produce_many("q", [NewMessage(each) for each in "abc"])
    monkeypatch.setattr(JobLeases, "hold", hold_too_long)
    nursery.start_soon(app.serve)
    await all_idle()
    assert (app.stats["q"].lost, app.stats["q"].running) == (3, 0)
    while app.stats["q"].handled != 3:
        await face.advance(1_000)
    assert calls == [["a", "b", "c"]]
    app.stop()


async def test_a_deadline_of_now_reaches_the_queue(face, nursery) -> None:
    """It cancelled its own request, and the message came again when its whole lease was over."""
    app, attempts = Worker(face.methods), []

    @app.on("q", lease=300)
    async def handle(content: str, job: Job) -> None:
        attempts.append(job.attempt)
        if job.attempt == 1:
            await job.set_deadline(0)

    await app.send("q", "a")
    nursery.start_soon(app.serve)
    for _ in range(20):
        await all_idle()
        await face.advance(100)
    assert attempts == [1, 2]
    app.stop()
