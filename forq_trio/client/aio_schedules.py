"""The methods of the asynchronous client for schedules.

`sync_schedules.py` is generated from this file by script/blocking_client.py.
"""

from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.client.types import Produced
from forq_trio.model.schedules import (
    ChangedSchedule,
    NewSchedule,
    NextRun,
    ScheduleDetails,
    SchedulePage,
    Timing,
)
from forq_trio.wire.endpoints import schedules as schedule_api
from forq_trio.wire.limits import NEXT_RUNS_DEFAULT, RUNS_SHOWN_DEFAULT, SCHEDULES_PAGE_DEFAULT
from forq_trio.wire.schedules import NextRunsQuery, SaveScheduleQuery, ScheduleQuery, SchedulesQuery


class AsyncSchedules(AsyncConnection):
    """The methods of a client for schedules, which the server keeps and runs."""

    async def save_schedule(
        self, name: str, schedule: NewSchedule, *, only_new: bool = False
    ) -> ChangedSchedule:
        """Make a schedule, or put this one in the place of the one that is there; its past runs stay.

        only_new: raise ScheduleExists instead of changing one. Raises InvalidSchedule; InvalidCron, whose `place` says
        what is wrong in the expression; TooManySchedules; and what `produce` raises for its queue and message.
        """
        query = SaveScheduleQuery(only_new=only_new)
        return await self._call(schedule_api.SAVE_SCHEDULE, schedule, query=query, schedule=name)

    async def schedule(self, name: str, *, runs: int = RUNS_SHOWN_DEFAULT) -> ScheduleDetails:
        """A schedule with its next five runs, and the last `runs` (0-100). Raises ScheduleNotFound."""
        return await self._call(schedule_api.SHOW_SCHEDULE, query=ScheduleQuery(runs=runs), schedule=name)

    async def schedules(
        self, *, after: str | None = None, limit: int = SCHEDULES_PAGE_DEFAULT
    ) -> SchedulePage:
        """A page of up to `limit` (1-1,000) schedules by name, behind `after`: the `next` of the page before."""
        return await self._call(schedule_api.LIST_SCHEDULES, query=SchedulesQuery(after=after, limit=limit))

    async def next_runs(self, timing: Timing, count: int = NEXT_RUNS_DEFAULT) -> list[NextRun]:
        """The next `count` (1-100) runs that a timing would have; nothing is stored.

        Raises InvalidSchedule or InvalidCron.
        """
        answer = await self._call(schedule_api.NEXT_RUNS, timing, query=NextRunsQuery(count=count))
        return answer.runs

    async def pause_schedule(self, name: str) -> ChangedSchedule:
        """Let it send nothing until it is resumed; runs until then are not made up for. Raises ScheduleNotFound."""
        return await self._call(schedule_api.PAUSE_SCHEDULE, schedule=name)

    async def resume_schedule(self, name: str) -> ChangedSchedule:
        """End a pause: it goes on with its next run from now. Raises ScheduleNotFound."""
        return await self._call(schedule_api.RESUME_SCHEDULE, schedule=name)

    async def run_schedule(self, name: str) -> Produced:
        """Send its message now, also while it is paused; its planned runs stay as they are. Raises ScheduleNotFound."""
        return await self._call(schedule_api.RUN_SCHEDULE, schedule=name)

    async def delete_schedule(self, name: str) -> None:
        """Delete it and what is known of its runs; messages that it has sent stay. Raises ScheduleNotFound."""
        await self._call(schedule_api.DELETE_SCHEDULE, schedule=name)
