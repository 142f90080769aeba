"""The retention job: old events go by age and by size, step by step, and only where there are any."""

from forq_trio.jobs.retention import EventRetention, event_retention_job
from forq_trio.model.limits import HOUR_MS
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.memory.engine import MemoryEngine
from support.forq_api import open_api


async def test_events_go_by_age_and_the_newest_stays(monkeypatch) -> None:
    monkeypatch.setattr("forq_trio.model.limits.EVENTS_TRIMMED_MAX", 2)
    async with open_api(MemoryEngine(EngineSettings(events=True))) as api:
        job = event_retention_job(api.broker, api.clock, EventRetention(hours=2))
        await api.send(*"abcde")
        api.clock.ms += HOUR_MS
        await api.send(*"fg")
        assert await job._work() == "nothing to do"
        api.clock.ms += HOUR_MS + 1
        assert await job._work() == "5 events removed"
        api.clock.ms += 10 * HOUR_MS
        assert await job._work() == "1 event removed"
        assert api.broker.event_log()[:3] == (True, 7, 7)
        assert await job._work() == "nothing to do"


async def test_events_go_by_size() -> None:
    async with open_api(MemoryEngine(EngineSettings(events=True))) as api:
        await api.send(*"abcde")
        await event_retention_job(api.broker, api.clock, EventRetention(mib_max=0))._work()
        assert api.broker.event_log()[:3] == (True, 5, 5)
