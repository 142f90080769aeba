"""Saves, lists, pauses and deletes schedules, and runs them by hand. A part of `Broker`; the engine does the runs."""

from typing import TypeVar

import msgspec
import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.queue_names import name_queues
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_message, check_producible, check_range, encode
from forq_trio.model.errors import InvalidRequest, ScheduleNotFound
from forq_trio.model.holders import token_of_task
from forq_trio.model.messages.types import Produced
from forq_trio.model.schedules.methods import ScheduleMethods
from forq_trio.model.schedules.types import (
    ChangedSchedule,
    NewSchedule,
    NextRun,
    ScheduleDetails,
    SchedulePage,
    Timing,
    check_schedule_name,
)
from forq_trio.model.values import seen
from forq_trio.schedules.times import NominalTimes, check_timing

TimingT = TypeVar("TimingT", bound=Timing)


class ScheduleCalls(ScheduleMethods, BrokerBase):
    """Cancellation is that of `Broker`; errors besides those named are the ServiceErrors."""

    async def save_schedule(
        self, name: str, schedule: NewSchedule, *, only_new: bool = False
    ) -> ChangedSchedule:
        check_schedule_name(name)
        schedule = _checked(NewSchedule, schedule)
        check_producible(schedule.queue)
        async with self._timings:
            check_timing(schedule)
        check_message(schedule.message, self._clock.now_ms())
        await name_queues(self._writer, schedule.queue, schedule.dead_letter_queue)
        saved = await self._writer.execute(commands.SaveSchedule(name, schedule, only_new, token_of_task()))
        return seen(ChangedSchedule, saved)

    async def schedule(self, name: str, *, runs: int = limits.RUNS_SHOWN_DEFAULT) -> ScheduleDetails:
        check_schedule_name(name)
        check_range("runs", runs, 0, limits.RUNS_KEPT_MAX)
        found = await self._readers.run(lambda reader: reader.schedule(name, runs))
        if found is None:
            raise ScheduleNotFound
        schedule, latest = found
        times = NominalTimes(schedule, schedule.made_at)
        if schedule.next_run is None:
            coming = times.next(self._clock.now_ms(), limits.NEXT_RUNS_DEFAULT)
        else:
            later = times.next(schedule.next_run, limits.NEXT_RUNS_DEFAULT - 1)
            coming = [times.described(schedule.next_run), *later]
        return ScheduleDetails(schedule, tuple(coming), latest)

    async def schedules(
        self, *, after: str | None = None, limit: int = limits.SCHEDULES_PAGE_DEFAULT
    ) -> SchedulePage:
        check_range("limit", limit, 1, limits.SCHEDULES_PAGE_MAX)
        encode("name", after or "", "after")
        return await self._readers.run(lambda reader: reader.schedules(after or "", limit))

    async def next_runs(self, timing: Timing, count: int = limits.NEXT_RUNS_DEFAULT) -> list[NextRun]:
        await trio.lowlevel.checkpoint()
        check_range("count", count, 1, limits.NEXT_RUNS_MAX)
        timing = _checked(type(timing), timing)
        async with self._timings:
            check_timing(timing)
        behind = self._clock.now_ms()
        runs = NominalTimes(timing, behind)
        found: list[NextRun] = []
        while len(found) < count:
            async with self._timings:
                following = runs.next(behind, 1)
            if not following:
                break
            found += following
            behind = found[-1].at
        return found

    async def pause_schedule(self, name: str) -> ChangedSchedule:
        return await self._pause(name, True)

    async def resume_schedule(self, name: str) -> ChangedSchedule:
        return await self._pause(name, False)

    async def run_schedule(self, name: str) -> Produced:
        return await self._writer.execute(commands.RunSchedule(check_schedule_name(name)))

    async def delete_schedule(self, name: str) -> None:
        if not await self._writer.execute(commands.DeleteSchedule(check_schedule_name(name))):
            raise ScheduleNotFound

    async def _pause(self, name: str, pause: bool) -> ChangedSchedule:
        changed = await self._writer.execute(
            commands.PauseSchedule(check_schedule_name(name), pause, token_of_task())
        )
        return seen(ChangedSchedule, changed)


def _checked(kind: type[TimingT], value: Timing) -> TimingT:
    """Return the value, or raise InvalidRequest if a member has a wrong type."""
    try:
        return msgspec.convert(msgspec.to_builtins(value), kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidRequest(str(error)) from None
