"""Schedules: saved, listed, paused, run by hand, deleted. A part of `Broker`; their runs are done by the engine."""

from typing import TypeVar

import msgspec
import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.queue_names import name_queues
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_message, check_producible, check_range, encode
from forq_trio.model.errors import InvalidRequest, ScheduleNotFound
from forq_trio.model.holders import token_of_task
from forq_trio.model.messages import Produced
from forq_trio.model.schedules import (
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


class ScheduleCalls(BrokerBase):
    """Cancellation is that of `Broker`; errors besides those named are the ServiceErrors."""

    async def save_schedule(
        self, name: str, schedule: NewSchedule, *, only_new: bool = False
    ) -> ChangedSchedule:
        """Store a schedule, in place of the one of this name if there is one; returns once it is durable.

        name: 1-128 characters of A-Z a-z 0-9 . _ -. only_new: refuse a name that is taken. A schedule that is replaced
        keeps what is known of its runs; its next run is the first one from now on, and stays if the timing does.
        Raises InvalidSchedule, InvalidCron, ScheduleExists, TooManySchedules, InvalidRequest for a member of a wrong
        type, and what `produce` raises for its message and queue, except QueueFull.
        """
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
        """A schedule with its next five runs, and its latest ones, at most `runs` (0-100).

        The next runs are those that its timing has, also while it is paused. Cancelled, the read is interrupted. Raises
        InvalidSchedule, ScheduleNotFound, OutOfRange, ReadDeadlineExceeded, StorageUnavailable or Stopping.
        """
        check_schedule_name(name)
        check_range("runs", runs, 0, limits.RUNS_KEPT_MAX)
        found = await self._readers.run(lambda reader: reader.schedule(name, runs))
        if found is None:
            raise ScheduleNotFound
        schedule, latest = found
        next_run = schedule.next_run
        behind = self._clock.now_ms() if next_run is None else next_run - 1
        coming = NominalTimes(schedule, schedule.made_at).next(behind, limits.NEXT_RUNS_DEFAULT)
        return ScheduleDetails(schedule, tuple(coming), latest)

    async def schedules(
        self, *, after: str | None = None, limit: int = limits.SCHEDULES_PAGE_DEFAULT
    ) -> SchedulePage:
        """A page of the schedules by name, at most `limit` (1-1,000), and 4 MiB of content.

        after: the `next` of the page before. Raises OutOfRange, InvalidContent, and what reads raise.
        """
        check_range("limit", limit, 1, limits.SCHEDULES_PAGE_MAX)
        encode("name", after or "", "after")
        return await self._readers.run(lambda reader: reader.schedules(after or "", limit))

    async def next_runs(self, timing: Timing, count: int = limits.NEXT_RUNS_DEFAULT) -> list[NextRun]:
        """When a schedule with this timing would run next, 1-100 times; nothing is stored.

        Raises InvalidSchedule, InvalidCron, InvalidRequest or OutOfRange.
        """
        await trio.lowlevel.checkpoint()
        check_range("count", count, 1, limits.NEXT_RUNS_MAX)
        timing = _checked(type(timing), timing)
        async with self._timings:
            check_timing(timing)
        behind = self._clock.now_ms()
        runs = NominalTimes(timing, behind)
        found: list[NextRun] = []
        while len(found) < count:
            async with self._timings:  # the rarest one takes about a millisecond
                following = runs.next(behind, 1)
            if not following:
                break
            found += following
            behind = found[-1].at
        return found

    async def pause_schedule(self, name: str) -> ChangedSchedule:
        """Stop the runs of a schedule until `resume_schedule`; those until then are not made up for.

        A paused one is unchanged. Raises InvalidSchedule, ScheduleNotFound.
        """
        return await self._pause(name, True)

    async def resume_schedule(self, name: str) -> ChangedSchedule:
        """Go on with the runs of a paused schedule, from now on. Raises InvalidSchedule, ScheduleNotFound."""
        return await self._pause(name, False)

    async def run_schedule(self, name: str) -> Produced:
        """Send the message of a schedule now, also of a paused one; its next run stays where it is.

        Raises InvalidSchedule, ScheduleNotFound, QueueFull, TooManyQueues.
        """
        return await self._writer.execute(commands.RunSchedule(check_schedule_name(name)))

    async def delete_schedule(self, name: str) -> None:
        """Remove a schedule; messages that it sent stay. Raises InvalidSchedule, ScheduleNotFound."""
        if not await self._writer.execute(commands.DeleteSchedule(check_schedule_name(name))):
            raise ScheduleNotFound

    async def _pause(self, name: str, pause: bool) -> ChangedSchedule:
        changed = await self._writer.execute(
            commands.PauseSchedule(check_schedule_name(name), pause, token_of_task())
        )
        return seen(ChangedSchedule, changed)


def _checked(kind: type[TimingT], value: Timing) -> TimingT:
    """The value again, if its members have their types; raises InvalidRequest."""
    try:
        return msgspec.convert(msgspec.to_builtins(value), kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidRequest(str(error)) from None
