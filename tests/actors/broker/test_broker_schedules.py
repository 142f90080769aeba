"""Schedules through the broker: its checks, its own runs, and who made what."""

from zoneinfo import ZoneInfo

import msgspec
import pytest
import trio

from forq_trio.model.errors import (
    ContentTooLarge,
    ForqError,
    InvalidAttributes,
    InvalidCron,
    InvalidQueueName,
    InvalidRequest,
    InvalidSchedule,
    OutOfRange,
    ProduceToDeadLetterQueue,
    ScheduleNotFound,
)
from forq_trio.model.holders import HOLDER, Holder, HolderKind
from forq_trio.model.schedules.types import NewSchedule, NextRun, Timing
from forq_trio.schedules import times
from support.actors import T0

HOURLY = NewSchedule(queue="q", content="c", cron="0 * * * *")
HOUR_MS = 3_600_000
NEXT = T0 - T0 % HOUR_MS + HOUR_MS


async def test_a_paused_schedule_shows_when_it_would_run(broker) -> None:
    await broker.save_schedule("s", HOURLY)
    assert (await broker.pause_schedule("s")).next_run is None
    details = await broker.schedule("s")
    assert (details.schedule.paused, details.next_runs[0].at) == (True, NEXT)
    assert (await broker.resume_schedule("s")).next_run == NEXT


async def test_a_stored_next_run_comes_first_even_if_the_rules_of_its_zone_have_changed(
    broker, monkeypatch
) -> None:
    saved = await broker.save_schedule("s", NewSchedule(queue="q", content="c", daily=("08:00",)))
    monkeypatch.setattr(times, "zone_of", lambda name: ZoneInfo("Asia/Tokyo"))
    coming = (await broker.schedule("s")).next_runs
    assert [each.at for each in coming[:2]] == [saved.next_run, saved.next_run + 15 * HOUR_MS]
    assert [each.local[11:16] for each in coming] == ["17:00", *["08:00"] * 4]


async def test_a_token_is_named_as_the_maker(broker) -> None:
    HOLDER.set(Holder(HolderKind.TOKEN, "nightly"))
    saved = await broker.save_schedule("s", HOURLY)
    assert saved.made_by == "nightly"
    assert (await broker.pause_schedule("s")).paused_by == "nightly"


async def test_a_preview_stores_nothing(broker) -> None:
    assert await broker.next_runs(Timing(every="1h"), 2) == [
        NextRun(T0 + HOUR_MS, "2023-11-14T23:13:20+00:00"),
        NextRun(T0 + 2 * HOUR_MS, "2023-11-15T00:13:20+00:00"),
    ]
    assert (await broker.next_runs(HOURLY))[0].at == NEXT
    assert (await broker.schedules()).schedules == []


WRONG = (
    ({"queue": "a b"}, InvalidQueueName),
    ({"queue": "a-dlq"}, ProduceToDeadLetterQueue),
    ({"dead_letter_queue": "a b"}, InvalidQueueName),
    ({"content": "x" * (256 * 1024 + 1)}, ContentTooLarge),
    ({"attributes": {"": "x"}}, InvalidAttributes),
    ({"priority": 1_001}, OutOfRange),
    ({"ttl_ms": 0}, OutOfRange),
    ({"cron": "x"}, InvalidCron),
    ({"cron": None}, InvalidSchedule),
    ({"every": "1h"}, InvalidSchedule),
    ({"missed": "some"}, InvalidRequest),
    ({"while_pending": "wait"}, InvalidRequest),
    ({"cron": 5}, InvalidRequest),
    ({"start": 1.5}, InvalidRequest),
    ({"daily": "08:00", "cron": None}, InvalidRequest),
    ({"content": "\ud800"}, ForqError),
)


async def test_what_is_wrong_is_refused(broker) -> None:
    for members, error in WRONG:
        with pytest.raises(error):
            await broker.save_schedule("s", msgspec.structs.replace(HOURLY, **members))
    assert (await broker.schedules()).schedules == []


async def test_the_bounds_of_pages(broker) -> None:
    await broker.save_schedule("s", HOURLY)
    for call, low, high in (
        (lambda count: broker.schedule("s", runs=count), 0, 100),
        (lambda count: broker.schedules(limit=count), 1, 1_000),
        (lambda count: broker.next_runs(HOURLY, count), 1, 100),
    ):
        for count in (low, high):
            await call(count)
        for count in (low - 1, high + 1):
            with pytest.raises(OutOfRange):
                await call(count)


async def test_what_is_not_there_is_not_found(broker) -> None:
    for call in (
        broker.schedule,
        broker.pause_schedule,
        broker.resume_schedule,
        broker.run_schedule,
        broker.delete_schedule,
    ):
        with pytest.raises(ScheduleNotFound):
            await call("s")


async def test_many_previews_at_once_leave_others_as_much_room_as_one(broker) -> None:
    """Each step takes milliseconds, so only one of all calls may take one before others go on."""
    calls, count, ended, rounds = 10, 20, 0, 0

    async def preview() -> None:
        nonlocal ended
        await broker.next_runs(Timing(cron="0 0 29 2 *"), count)
        ended += 1

    async with trio.open_nursery() as nursery:
        for _ in range(calls):
            nursery.start_soon(preview)
        while ended < calls:
            rounds += 1
            await trio.lowlevel.checkpoint()
    assert rounds >= calls * count
