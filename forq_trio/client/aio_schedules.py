"""The methods of the asynchronous client for schedules.

`sync_schedules.py` is generated from this file by script/blocking_client.py.
"""

from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model.limits import NEXT_RUNS_DEFAULT, RUNS_SHOWN_DEFAULT, SCHEDULES_PAGE_DEFAULT
from forq_trio.model.messages.types import Produced
from forq_trio.model.schedules import endpoints as schedule_api
from forq_trio.model.schedules.bodies import NextRunsQuery, SaveScheduleQuery, ScheduleQuery, SchedulesQuery
from forq_trio.model.schedules.methods import ScheduleMethods
from forq_trio.model.schedules.types import (
    ChangedSchedule,
    NewSchedule,
    NextRun,
    ScheduleDetails,
    SchedulePage,
    Timing,
)


class AsyncSchedules(ScheduleMethods, AsyncConnection):
    """The methods of a client for schedules, which the server keeps and runs."""

    async def save_schedule(
        self, name: str, schedule: NewSchedule, *, only_new: bool = False
    ) -> ChangedSchedule:
        query = SaveScheduleQuery(only_new=only_new)
        return await self._call(schedule_api.SAVE_SCHEDULE, schedule, query=query, schedule=name)

    async def schedule(self, name: str, *, runs: int = RUNS_SHOWN_DEFAULT) -> ScheduleDetails:
        return await self._call(schedule_api.SHOW_SCHEDULE, query=ScheduleQuery(runs=runs), schedule=name)

    async def schedules(
        self, *, after: str | None = None, limit: int = SCHEDULES_PAGE_DEFAULT
    ) -> SchedulePage:
        return await self._call(schedule_api.LIST_SCHEDULES, query=SchedulesQuery(after=after, limit=limit))

    async def next_runs(self, timing: Timing, count: int = NEXT_RUNS_DEFAULT) -> list[NextRun]:
        answer = await self._call(schedule_api.NEXT_RUNS, timing, query=NextRunsQuery(count=count))
        return answer.runs

    async def pause_schedule(self, name: str) -> ChangedSchedule:
        return await self._call(schedule_api.PAUSE_SCHEDULE, schedule=name)

    async def resume_schedule(self, name: str) -> ChangedSchedule:
        return await self._call(schedule_api.RESUME_SCHEDULE, schedule=name)

    async def run_schedule(self, name: str) -> Produced:
        return await self._call(schedule_api.RUN_SCHEDULE, schedule=name)

    async def delete_schedule(self, name: str) -> None:
        await self._call(schedule_api.DELETE_SCHEDULE, schedule=name)
