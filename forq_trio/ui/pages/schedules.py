"""The list of schedules: those that need attention first, then the paused ones, then the others."""

from collections.abc import Mapping, Sequence
from typing import Any

import trio
from msgspec import Struct
from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.errors import ScheduleNotFound
from forq_trio.model.schedules.types import SavedRun, Schedule
from forq_trio.ui.live.page_view import PageView
from forq_trio.ui.routes import Routes
from forq_trio.ui.schedule_views import GROUPS, ScheduleRow, needs_runs, row
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer

SHOWN = {"": "All", "attention": "Attention", "paused": "Paused"}
_GROUP_OF = {"attention": GROUPS[0], "paused": GROUPS[1]}


class WantedSchedules(Struct, frozen=True):
    """The part of the list to show: behind this name, with this text in the name or the queue, of this group."""

    after: str = ""
    q: str = ""
    show: str = ""


class ListedSchedules(Struct):
    """A page of the list."""

    rows: list[ScheduleRow]  # those that match, by group
    counts: dict[str, int]  # of the groups before `show` chose one
    next: str | None

    def of(self, group: str) -> list[ScheduleRow]:
        return [each for each in self.rows if each.group == group]


def read_wanted(args: Mapping[str, str]) -> WantedSchedules:
    show = args.get("show", "")
    longest = limits.SCHEDULE_NAME_LENGTH_MAX
    return WantedSchedules(
        args.get("after", "")[:longest], args.get("q", "").strip()[:longest], show if show in SHOWN else ""
    )


async def listed(
    site: Site, viewer: Viewer, wanted: WantedSchedules, *, with_strips: bool
) -> ListedSchedules:
    """A page of the schedules that the viewer may see."""
    page = await site.broker.schedules(after=wanted.after or None, limit=limits.SCHEDULES_PAGE_DEFAULT)
    now_ms = site.clock.now_ms()
    rows = []
    for schedule in page.schedules:
        if not viewer.may_see(schedule.queue) or not _matches(schedule, wanted.q):
            continue
        runs = await latest_runs(site, schedule)
        rows.append(row(schedule, runs, now_ms, with_strip=with_strips))
        await trio.lowlevel.checkpoint()
    counts = {group: sum(each.group == group for each in rows) for group in GROUPS}
    if wanted.show:
        rows = [each for each in rows if each.group == _GROUP_OF[wanted.show]]
    return ListedSchedules(rows, counts, page.next)


def _matches(schedule: Schedule, text: str) -> bool:
    return text.lower() in schedule.name.lower() or text.lower() in schedule.queue.lower()


async def latest_runs(site: Site, schedule: Schedule) -> Sequence[SavedRun]:
    """The schedule's latest runs, as many as its verdict needs."""
    last = () if schedule.last_run is None else (schedule.last_run,)
    count = needs_runs(schedule)
    if not count:
        return last
    try:
        return (await site.broker.schedule(schedule.name, runs=count)).runs
    except ScheduleNotFound:
        return last


def headline(found: ListedSchedules, wanted: WantedSchedules) -> tuple[str, str]:
    """The answer in words, and the line under it."""
    total = sum(found.counts.values())
    attention, paused, planned = (found.counts[group] for group in GROUPS)
    part = " shown here" if found.next or wanted.after or wanted.q else ""
    if attention:
        verb = "needs" if attention == 1 else "need"
        said = f"{format.whole(attention)} of {format.plural(total, 'schedule')}{part} {verb} attention"
    elif not total:
        said = "No schedule matches"
    else:
        verb = "runs" if planned == 1 else "run"
        said = f"{format.whole(planned)} of {format.plural(total, 'schedule')}{part} {verb} as planned"
    parts = []
    if attention:
        parts.append(f"{format.whole(planned)} {'runs' if planned == 1 else 'run'} as planned")
    if paused:
        parts.append(f"{format.whole(paused)} {'is' if paused == 1 else 'are'} paused")
    return said, format.sentence(", ".join(parts)) if parts else ""


def _context(found: ListedSchedules, wanted: WantedSchedules) -> dict[str, Any]:
    said, lede = headline(found, wanted)
    return {"found": found, "headline": said, "lede": lede, "groups": GROUPS}


def schedules_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part of the list. Its rows are those of the page; the next 24 hours move only with a refresh."""
    wanted = read_wanted(args)

    async def read() -> dict[str, Any]:
        found = await listed(site, viewer, wanted, with_strips=False)
        return _context(found, wanted) | {"now_ms": site.clock.now_ms()}

    return PageView(site, viewer, "schedules/live.html", read)


def schedules_routes(site: Site) -> Routes:
    routes = Routes("schedules", site)

    @routes.get("/schedules", None)
    async def schedules() -> Response:
        viewer = site.viewer
        wanted = read_wanted(request.args)
        if not site.broker.known.schedules.count:
            live = site.url("/live/empty")
            return await site.page("schedules/empty.html", "schedules", live=live, api=site.api_url)
        found = await listed(site, viewer, wanted, with_strips=True)
        query = {"after": wanted.after, "q": wanted.q, "show": wanted.show}
        return await site.page(
            "schedules/page.html",
            "schedules",
            live=site.url("/live/schedules", **query),
            wanted=wanted,
            shown=SHOWN,
            group_of=_GROUP_OF,
            **_context(found, wanted),
        )

    return routes
