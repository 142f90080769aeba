"""What a worker says of itself."""

import pytest
import trio

from forq_trio import open_broker
from forq_trio.model import limits
from forq_trio.model.workers.types import MessageHolder
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


async def test_a_message_that_was_cancelled_has_not_failed(mock_clock) -> None:
    async with open_broker("memory:") as broker:
        app = Worker(broker)

        @app.on("emails")
        async def handle(content: str) -> None:
            if content == "fails":
                raise RuntimeError("no such address")
            await trio.sleep_forever()

        cancelled = await app.send("emails", "is cancelled")
        await app.send("emails", "fails", max_attempts=1)
        async with app:
            await all_idle()
            await broker.cancel("emails", cancelled.id, running=True)
            while app.stats["emails"].lost != 1 or app.stats["emails"].dead != 1:
                await trio.lowlevel.checkpoint()
            mock_clock.jump(5)
            await all_idle()
            (info,) = await broker.workers("emails")
            assert info.report.queues[0].failed == 1


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


async def test_the_report_says_how_far_a_handler_is_and_no_other_request_is_made(mock_clock) -> None:
    gate, begun = trio.Event(), trio.Event()
    async with open_broker("memory:") as broker:
        app = Worker(broker)

        @app.on("films")
        async def cut(content: str, job: Job) -> None:
            for number in range(1_000):
                await job.progress(number / 10, f"{number} pictures {'.' * 100}")
            begun.set()
            await gate.wait()
            await job.progress(100)

        sent = await app.send("films", "x")
        async with app:
            await begun.wait()
            (info,) = await broker.workers("films")
            assert info.report.queues[0].holds == ()  # the first report was made before
            mock_clock.jump(5)
            await all_idle()
            (info,) = await broker.workers("films")
            (held,) = info.report.queues[0].holds
            assert held.progress is not None
            assert (held.message_id, held.progress.percent) == (sent.id, 99)
            assert held.progress.text == f"999 pictures {'.' * 100}"[: limits.PROGRESS_TEXT_LENGTH_MAX]
            assert broker.known_workers.holder_of("films", sent.id, 1) == MessageHolder(
                info.report.name, held
            )
            assert broker.known_workers.holder_of("films", sent.id, 2) is None
            gate.set()
            while app.stats["films"].handled != 1:
                await trio.lowlevel.checkpoint()
            mock_clock.jump(5)
            await all_idle()
            assert broker.known_workers.holder_of("films", sent.id, 1) is None


@pytest.mark.parametrize("percent", [-1, 100.5, float("nan")])
async def test_a_progress_is_a_share(percent: float) -> None:
    refused: list[ValueError] = []
    async with open_broker("memory:") as broker:
        app = Worker(broker)

        @app.on("films")
        async def cut(content: str, job: Job) -> None:
            with pytest.raises(ValueError, match="a progress is 0 to 100") as error:
                await job.progress(percent)
            refused.append(error.value)

        await app.send("films", "x")
        await app.drain()
    assert len(refused) == 1
