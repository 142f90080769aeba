"""What a worker says of itself."""

import trio

from forq_trio import open_broker
from forq_trio.model import limits
from forq_trio.worker import Job, Worker
from support.actors import all_idle


async def test_a_worker_is_known_while_it_serves_and_forgotten_at_its_end(mock_clock) -> None:
    gate, begun = trio.Event(), trio.Event()
    async with open_broker("memory:") as broker:
        app = Worker(broker, name="mail-1", version="2.0")

        @app.on("emails", concurrency=4)
        async def handle(content: str, job: Job) -> None:
            begun.set()
            await gate.wait()

        sent = await app.send("emails", "anna")
        async with app:
            await begun.wait()
            mock_clock.jump(5)
            await all_idle()
            (info,) = await broker.workers()
            assert (info.report.name, info.report.version, info.made_by) == ("mail-1", "2.0", "")
            (queue,) = info.report.queues
            assert (queue.queue, queue.slots, queue.busy, queue.handled) == ("emails", 4, 1, 0)
            assert [(held.message_id, held.attempt) for held in queue.holds] == [(sent.id, 1)]
            gate.set()
            while app.stats["emails"].handled != 1:
                await trio.lowlevel.checkpoint()
            mock_clock.jump(5)
            await all_idle()
            (info,) = await broker.workers("emails")
            assert info.report.queues[0].handled == 1
            assert info.report.queues[0].holds == ()
        assert await broker.workers() == []


async def test_a_worker_may_stay_unknown() -> None:
    async with open_broker("memory:") as broker:
        app = Worker(broker, presence=False)

        @app.on("emails")
        async def handle(content: str) -> None: ...

        async with app:
            await all_idle()
            assert await broker.workers() == []


async def test_a_worker_for_which_there_was_no_place_reports_again(mock_clock, monkeypatch) -> None:
    monkeypatch.setattr(limits, "WORKERS_MAX", 0)
    async with open_broker("memory:") as broker:
        app = Worker(broker)

        @app.on("emails")
        async def handle(content: str) -> None: ...

        async with app:
            await all_idle()
            assert await broker.workers() == []
            monkeypatch.setattr(limits, "WORKERS_MAX", 1)
            mock_clock.jump(5)
            await all_idle()
            assert len(await broker.workers()) == 1
