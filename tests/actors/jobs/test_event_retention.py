"""The retention job: old events go by age and by size, step by step, and only where there are any."""

import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.jobs.retention import Retention, retention_job
from forq_trio.model import limits
from forq_trio.model.limits import HOUR_MS
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.system import open_system
from support.actors import ObservedEngine, TrioClock, on_the_loop
from support.forq_api import open_api


async def test_events_go_by_age_and_the_newest_stays(monkeypatch) -> None:
    monkeypatch.setattr("forq_trio.model.limits.EVENTS_TRIMMED_MAX", 2)
    async with open_api(open_engine("memory:", EngineSettings(events=True), "full")) as api:
        job = retention_job(api.writer, api.clock, "events", Retention(hours=2))
        await api.send(*"abcde")
        api.clock.ms += HOUR_MS
        await api.send(*"fg")
        assert await job._work() == "nothing to do"
        api.clock.ms += HOUR_MS + 1
        assert await job._work() == "5 events removed"
        api.clock.ms += 10 * HOUR_MS
        assert await job._work() == "1 event removed"
        assert api.broker.known.log("events")[:3] == (True, 7, 7)
        assert await job._work() == "nothing to do"


async def test_events_go_by_size() -> None:
    async with open_api(open_engine("memory:", EngineSettings(events=True), "full")) as api:
        await api.send(*"abcde")
        await retention_job(api.writer, api.clock, "events", Retention(mib_max=0))._work()
        assert api.broker.known.log("events")[:3] == (True, 5, 5)


async def test_too_many_bytes_go_with_the_commit_and_not_with_the_interval(autojump_clock) -> None:
    """Also where a commit brings as much as a step removes, and every other one has a step: then steps are longer."""
    engine = ObservedEngine(open_engine("memory:", EngineSettings(events=True), "full"))
    retention = Retention(mib_max=1)
    async with open_system(engine, TrioClock(), policy=on_the_loop(), events=retention) as system:
        most = 0
        for _ in range(16):
            await system.broker.produce_many("q" * 64, [NewMessage("x")] * 1_000)
            most = max(most, system.broker.known.log("events").bytes)
        await wait_all_tasks_blocked()
        log = system.broker.known.log("events")
        assert (log.first > 1, log.last) == (True, 16_000)
        assert log.bytes <= limits.MIB * 17 // 16
        assert most < 2 * limits.MIB < log.bytes_to_last
        assert trio.current_time() < limits.EVENTS_TRIM_SECONDS


async def test_while_the_disk_is_full_there_are_no_more_bytes_than_when_that_began(
    autojump_clock, monkeypatch
) -> None:
    """Before, the events of acks took the space that sends had left for acks, and then acks were refused."""
    monkeypatch.setattr("forq_trio.model.limits.DISK_REOPEN_BYTES", 1_000)
    monkeypatch.setattr("forq_trio.model.limits.EVENTS_TRIMMED_MAX", 50)
    engine = ObservedEngine(open_engine("memory:", EngineSettings(events=True), "full"))
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        broker = system.broker
        await broker.produce_many("q", [NewMessage("x")] * 500)
        system.writer.storage.sends_refused = True
        await broker.receive("q", max_messages=50, wait_ms=0)
        began_with = broker.known.log("events").bytes
        while deliveries := await broker.receive("q", max_messages=50, wait_ms=0):
            await broker.ack("q", deliveries)
            await wait_all_tasks_blocked()
            assert broker.known.log("events").bytes <= began_with + 1_000
        assert broker.known.log("events").last == 3 * 500 - 50
        system.writer.storage.sends_refused = False
        await broker.produce_many("q", [NewMessage("x")] * 500)
        await wait_all_tasks_blocked()
        assert broker.known.log("events").bytes > 3 * began_with // 2
        assert trio.current_time() < limits.EVENTS_TRIM_SECONDS
