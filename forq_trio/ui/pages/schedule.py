"""The page of a schedule: its next five runs, the outcomes of the last ones, and the actions."""

from collections.abc import Mapping
from typing import Any

from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import QueueFull, ScheduleNotFound
from forq_trio.model.messages.types import Produced
from forq_trio.model.schedules.types import ScheduleDetails, is_counted_in_part
from forq_trio.schedules.words import in_words, zone_words
from forq_trio.schedules.zones import local_of, zone_of
from forq_trio.ui.content import show
from forq_trio.ui.live.page_view import PageView
from forq_trio.ui.routes import Routes
from forq_trio.ui.schedule_form import KINDS, MISSED, PENDING
from forq_trio.ui.schedule_views import days_in, lacking, lateness, missed_words, verdict
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer


async def find(site: Site, viewer: Viewer, name: str, runs: int = limits.RUNS_KEPT_MAX) -> ScheduleDetails:
    """The schedule, if the viewer may see it. Raises ScheduleNotFound."""
    details = await site.broker.schedule(name, runs=runs)
    if not viewer.may_see(details.schedule.queue):
        raise ScheduleNotFound
    return details


async def require(site: Site, name: str, *scopes: Scope) -> ScheduleDetails:
    """The schedule, if the viewer has these scopes for its queue, and produce for the dead-letter queue that it names.

    Raises ScheduleNotFound, Forbidden.
    """
    details = await find(site, site.viewer, name, 0)
    for scope in scopes:
        site.viewer.require(scope, details.schedule.queue)
    named = details.schedule.dead_letter_queue
    if named and Scope.PRODUCE in scopes:
        site.viewer.require(Scope.PRODUCE, named)
    return details


def _context(site: Site, viewer: Viewer, details: ScheduleDetails, shown: int) -> dict[str, Any]:
    schedule = details.schedule
    zone, now_ms = zone_of(schedule.time_zone), site.clock.now_ms()
    results = {"sent": 0, "skipped": 0, "missed": 0, "refused": 0, "by_hand": 0}
    for run in details.runs[:shown]:
        results[run.result] += run.runs
    return {
        "schedule": schedule,
        "next_runs": details.next_runs if schedule.next_run is not None or schedule.paused else (),
        "runs": details.runs[:shown],
        "more_runs": max(0, len(details.runs) - shown),
        "results": results,
        "more_missed": any(map(is_counted_in_part, details.runs[:shown])),
        "said": verdict(schedule, details.runs, now_ms),
        "lateness": lateness,
        "missed_words": missed_words,
        "local": lambda at_ms: f"{(at := local_of(at_ms, zone)).day} {at:%b %H:%M:%S}",
        "day": days_in(zone, now_ms),
        "date": lambda at_ms: f"{(at := local_of(at_ms, zone)).day} {at:%b %Y}",
        "words": in_words(schedule.timing),
        "zone_words": zone_words(schedule.time_zone),
        "lacking": lacking(viewer, schedule),
        "now_ms": now_ms,
    }


def _shown(args: Mapping[str, str]) -> int:
    return limits.RUNS_KEPT_MAX if args.get("all") else limits.RUNS_SHOWN_DEFAULT


def schedule_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part of a schedule."""

    async def read() -> dict[str, Any]:
        return _context(site, viewer, await find(site, viewer, args.get("name", "")), _shown(args))

    return PageView(site, viewer, "schedules/one_live.html", read)


def schedule_routes(site: Site) -> Routes:
    routes = Routes("schedule", site)

    @routes.get("/schedules/<name>", None)
    async def schedule(name: str) -> Response:
        viewer, shown = site.viewer, _shown(request.args)
        details = await find(site, viewer, name)
        return await site.page(
            "schedules/one.html",
            "schedules",
            live=site.url("/live/schedule", name=name, all=request.args.get("all", "")[:1]),
            content=show(details.schedule.content, "pretty"),
            kinds=KINDS,
            missed=MISSED,
            pending=PENDING,
            **_context(site, viewer, details, shown),
        )

    @routes.post("/schedules/<name>/pause", None)
    async def pause(name: str) -> Response:
        if (await request.form).get("paused") == "1":
            await require(site, name, Scope.SCHEDULE)
            await site.broker.pause_schedule(name)
            return site.done(f"Paused {name}", go=site.url(f"/schedules/{name}"))
        await require(site, name, Scope.SCHEDULE, Scope.PRODUCE)
        await site.broker.resume_schedule(name)
        return site.done(f"Resumed {name}", go=site.url(f"/schedules/{name}"))

    @routes.post("/schedules/<name>/run", None)
    async def run(name: str) -> Response:
        queue = (await require(site, name, Scope.SCHEDULE, Scope.PRODUCE)).schedule.queue
        try:
            sent: Produced = await site.broker.run_schedule(name)
        except QueueFull:
            return site.done(f"Not sent: the queue {queue} is full")
        said = f"Sent message {format.whole(sent.sequence)} to {queue}"
        return site.done(said, link="Show it", href=site.url(f"/queue/{queue}/message/{sent.id}"))

    @routes.get("/schedules/<name>/delete", None)
    async def ask_delete(name: str) -> Response:
        details = await require(site, name, Scope.SCHEDULE)
        return await site.dialog(
            "schedules/delete.html", f"Delete {name}?", schedule=details.schedule, next_runs=details.next_runs
        )

    @routes.post("/schedules/<name>/delete", None)
    async def delete(name: str) -> Response:
        await require(site, name, Scope.SCHEDULE)
        await site.broker.delete_schedule(name)
        return site.done(f"Deleted {name}; messages already sent stay", go=site.url("/schedules"))

    return routes
