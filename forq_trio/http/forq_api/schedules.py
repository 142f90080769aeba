"""Schedules. Our additions to Forq's API.

No path of a schedule names its queue, so the endpoints read the schedule and check the key's rights on its queue.
"""

from contextlib import suppress

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.possible_errors import INVALID
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import InvalidCron, InvalidSchedule, ScheduleNotFound
from forq_trio.model.schedules import endpoints as api
from forq_trio.model.schedules.bodies import (
    NextRuns,
    NextRunsQuery,
    SaveScheduleQuery,
    ScheduleQuery,
    SchedulesQuery,
)
from forq_trio.model.schedules.types import NewSchedule, Schedule, SchedulePage, Timing

_read_schedule = BodyReader(NewSchedule)
_read_timing = BodyReader(Timing)
_read_page = QueryReader(SchedulesQuery)
_read_save = QueryReader(SaveScheduleQuery)
_read_show = QueryReader(ScheduleQuery)
_read_count = QueryReader(NextRunsQuery)

INVALID["cron"] = (InvalidCron,)
for _name in ("every", "daily", "timeZone", "jitter", "start", "end"):
    INVALID[_name] = (InvalidSchedule.about(_name),)

_SENDING = (Scope.SCHEDULE, Scope.PRODUCE)
"""The scopes that a key needs to do what lets a schedule send."""


class ScheduleEndpoints:
    """A token that may schedule for a queue but not send to it can only pause and delete its schedules."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def list(self, request: Request) -> Response:
        """A page of the schedules of queues that the key covers, by name."""
        page = await self._broker.schedules(**_read_page(request.query).arguments())
        may = request.principal.may
        seen = [each for each in page.schedules if may(Scope.BROWSE, each.queue)]
        return json_response(SchedulePage(seen, page.next))

    async def save(self, request: Request, name: str) -> Response:
        """Store a schedule, which replaces the one with its name."""
        wanted = _read_schedule(request.body)
        only_new = _read_save(request.query).only_new
        for scope in _SENDING:
            request.principal.check(scope, wanted.queue)
        if wanted.dead_letter_queue:
            request.principal.check(Scope.PRODUCE, wanted.dead_letter_queue)
        with suppress(ScheduleNotFound):
            await self.may_change(request, name)
        return json_response(await self._broker.save_schedule(name, wanted, only_new=only_new))

    async def show(self, request: Request, name: str) -> Response:
        """A schedule with its next runs and the last ones."""
        details = await self._broker.schedule(name, runs=_read_show(request.query).runs)
        request.principal.check(Scope.BROWSE, details.schedule.queue)
        return json_response(details)

    async def next_runs(self, request: Request) -> Response:
        """The next times of a timing that need not be stored; no queue is involved."""
        count = _read_count(request.query).count
        return json_response(NextRuns(await self._broker.next_runs(_read_timing(request.body), count)))

    async def may_change(self, request: Request, name: str) -> None:
        """Raise Forbidden unless the key may schedule for the queue of a schedule; ScheduleNotFound without one."""
        await self._check(request, name, Scope.SCHEDULE)

    async def may_send(self, request: Request, name: str) -> None:
        """Like `may_change`, for changes that let a schedule send: the key needs PRODUCE, too."""
        schedule = await self._check(request, name, *_SENDING)
        if schedule is not None and schedule.dead_letter_queue:
            request.principal.check(Scope.PRODUCE, schedule.dead_letter_queue)

    async def _check(self, request: Request, name: str, *scopes: Scope) -> Schedule | None:
        """The schedule; None, without a read, for the server's secret, which may do everything.

        Raises Forbidden unless the key has all `scopes` for the schedule's queue.
        """
        if request.principal.token is None:
            return None
        schedule = (await self._broker.schedule(name, runs=0)).schedule
        for scope in scopes:
            request.principal.check(scope, schedule.queue)
        return schedule


def schedule_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of schedules. route: makes one of an endpoint and its function."""
    schedules = ScheduleEndpoints(broker)
    return [
        route(api.LIST_SCHEDULES, schedules.list),
        route(api.SAVE_SCHEDULE, schedules.save),
        route(api.SHOW_SCHEDULE, schedules.show),
        calling(route, api.DELETE_SCHEDULE, broker.delete_schedule, check=schedules.may_change),
        calling(route, api.PAUSE_SCHEDULE, broker.pause_schedule, check=schedules.may_change),
        calling(route, api.RESUME_SCHEDULE, broker.resume_schedule, check=schedules.may_send),
        calling(route, api.RUN_SCHEDULE, broker.run_schedule, check=schedules.may_send),
        route(api.NEXT_RUNS, schedules.next_runs),
    ]
