"""The workbench of one dead-letter queue: its groups, its filter, a bounded search, and the rows that it found."""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct
from quart import Response, request

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.dead_letters.redrives import ChangedRedrive
from forq_trio.model.dead_letters.searches import ErrorTexts, FoundRows
from forq_trio.model.errors import DeadLettersOnly
from forq_trio.model.fingerprints import parts
from forq_trio.ui.live.page_view import PageView
from forq_trio.ui.pages.dead import AGES_SECONDS_MAX, DeadQueues, DeadRow
from forq_trio.ui.pages.workbench_actions import add_actions
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site, is_part, see_other
from forq_trio.ui.viewer import Viewer
from forq_trio.ui.workbench import search as searches
from forq_trio.ui.workbench.filter import AGES, REASONS, Filter, error_words, read_filter, read_number, splits
from forq_trio.ui.workbench.groups import Groups, key_of, largest
from forq_trio.ui.workbench.search import Search
from forq_trio.ui.workbench.tasks import Band, band

ROWS_A_PAGE = 50
BANDS_SHOWN_MAX = 3
SWITCH_MAX = 20


class WorkbenchPage(Struct):
    """A page of rows."""

    rows: list[Any]
    shown: int  # how many there are so far
    before: int | None
    # "": the end; "scroll": there are more below `before`; "search": there may be more when the search,
    # which goes on by itself, has come further; "later": the same, but the search has stopped
    goes_on: str


async def find_page(
    site: Site, queue: str, wanted: Filter, search: Search, before: int | None, shown: int, waits: bool
) -> WorkbenchPage:
    """The next matching rows among the messages searched so far. waits: whether the search goes on by itself."""
    found: FoundRows = await site.broker.lists.find_messages(
        queue, wanted.question(search.above), before_sequence=before, limit=ROWS_A_PAGE
    )
    shown += len(found.rows)
    if found.next_before is not None:
        return WorkbenchPage(found.rows, shown, found.next_before, "scroll")
    if search.at_end:
        return WorkbenchPage(found.rows, shown, None, "")
    return WorkbenchPage(found.rows, shown, search.down, "search" if waits else "later")


async def head_of(site: Site, viewer: Viewer, queue: str) -> DeadRow:
    """Facts about the queue."""
    sources = await site.directory.sources(viewer)
    queues = DeadQueues(site, viewer)
    tasks = await site.broker.redrives(queue)
    await site.monitor.refresh_ages([queue], AGES_SECONDS_MAX)
    return queues.row(queue, sources.get(queue, []), tasks)


async def bands_of(site: Site, queue: str) -> list[Band]:
    now_ms = site.clock.now_ms()
    return [band(task, now_ms) for task in await site.broker.redrives(queue)]


def workbench_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part: the head and the bands of the tasks that the page has."""
    queue = args.get("queue", "")
    viewer.require(Scope.BROWSE, queue)
    site.broker.known.check_dead_letter_queue(queue)

    async def read() -> dict[str, Any]:
        return {
            "queue": queue,
            "row": await head_of(site, viewer, queue),
            "bands": await bands_of(site, queue),
        }

    return PageView(site, viewer, "workbench/live.html", read)


class Workbench:
    """The pages and parts of the workbench."""

    def __init__(self, site: Site, groups: Groups) -> None:
        self._site = site
        self._groups = groups

    async def page(self, queue: str) -> Response:
        site = self._site
        viewer = site.viewer
        wanted = read_filter(request.args, site.clock.now_ms())
        if "attr_name" in request.args:
            return see_other(site.url(f"/dead/{queue}", **wanted.query()))
        search = await searches.step(site.broker, queue, wanted, Search())
        page = await find_page(site, queue, wanted, search, None, 0, search.searching)
        dead = (await DeadQueues(site, viewer).all()).names
        others = [name for name in dead[: SWITCH_MAX + 1] if name != queue][:SWITCH_MAX]
        return await site.page(
            "workbench/page.html",
            "dead",
            live=site.url("/live/workbench", queue=queue),
            row=await head_of(site, viewer, queue),
            bands=await bands_of(site, queue),
            bands_max=BANDS_SHOWN_MAX,
            others=others,
            others_more=len(dead) - site.broker.known.has_queue(queue) - SWITCH_MAX,
            may_change=viewer.may(Scope.REDRIVE, queue),
            choices={"ages": AGES, "reasons": REASONS},
            texts=await self._texts(queue, wanted),
            limits=limits,
            **self._common(queue, wanted, search, page),
        )

    async def _texts(self, queue: str, wanted: Filter) -> ErrorTexts | None:
        """The most frequent errors of the chosen group; None if no group is chosen."""
        if wanted.error_like is None:
            return None
        return await self._site.broker.lists.error_texts(queue, wanted.question())

    async def rows(self, queue: str) -> Response:
        """More rows of the list."""
        site = self._site
        wanted = read_filter(request.args, site.clock.now_ms())
        search = searches.read_search(request.args)
        before = read_number(request.args, "before", limits.SEQUENCE_MAX) or None
        shown = read_number(request.args, "shown", limits.SEQUENCE_MAX)
        waits = request.args.get("searching", "") == "1"
        page = await find_page(site, queue, wanted, search, before, shown, waits)
        return site.part(
            "workbench/rows.html",
            may_change=site.viewer.may(Scope.REDRIVE, queue),
            **self._common(queue, wanted, search, page),
        )

    async def search(self, queue: str) -> Response:
        """The next step of the search, the first one where the request says nothing of earlier ones."""
        site = self._site
        wanted = read_filter(request.args, site.clock.now_ms())
        search = searches.read_search(request.args)
        search = await searches.step(site.broker, queue, wanted, search)
        response = site.part(
            "workbench/bound.html",
            swapped=True,
            may_change=site.viewer.may(Scope.REDRIVE, queue),
            **self._common(queue, wanted, search, None),
        )
        response.headers["HX-Trigger-After-Settle"] = "forq:searched"
        return response

    async def groups(self, queue: str) -> Response:
        """The groups counted so far; the part of the page then asks for the next step by itself."""
        site = self._site
        wanted = read_filter(request.args, site.clock.now_ms())
        if "anew" in request.args:
            self._groups.forget(queue)
        count = await self._groups.next(queue)
        error = wanted.error_like or wanted.error
        chosen = None if error is None else key_of(wanted.reason, error)
        reasons = count.reasons(chosen)
        return site.part(
            "workbench/groups.html",
            queue=queue,
            wanted=wanted,
            count=count,
            span=searches.SPAN,
            reasons=reasons,
            chosen=chosen,
            has_gaps=any(group.several for each in reasons for group in each.groups),
            key_of=key_of,
            largest=largest(reasons),
            error_words=error_words,
            swapped=True,
        )

    def _common(
        self, queue: str, wanted: Filter, search: Search, page: WorkbenchPage | None
    ) -> dict[str, Any]:
        return {
            "queue": queue,
            "wanted": wanted,
            "search": search,
            "page": page,
            "span": searches.SPAN,
            "splits": splits,
            "error_parts": parts,
            "again": lambda **changes: {**search.query(), **changes},
        }


def workbench_routes(site: Site) -> Routes:
    routes = Routes("workbench", site, site.broker.known.check_dead_letter_queue)
    groups = Groups(site.broker)
    workbench = Workbench(site, groups)
    routes.get("/dead/<queue>", Scope.BROWSE)(workbench.page)
    routes.get("/dead/<queue>/rows", Scope.BROWSE)(workbench.rows)
    routes.get("/dead/<queue>/search", Scope.BROWSE)(workbench.search)
    routes.get("/dead/<queue>/groups", Scope.BROWSE)(workbench.groups)
    add_actions(routes, site, groups)
    _add_tasks(routes, site)

    @routes.blueprint.errorhandler(DeadLettersOnly)
    async def dead_letters_only(error: DeadLettersOnly) -> Response:
        """Answer as Forq does, with the code in the text."""
        title, text = "That cannot be done", f"{error.message}. ({error.code})"
        if is_part():
            return site.part("error_part.html", 400, title=title, text=text)
        return await site.page("error.html", "dead", status=400, title=title, text=text)

    return routes


def _add_tasks(routes: Routes, site: Site) -> None:
    """Pause, resume, cancel and dismiss a redrive or deletion: each answers with its band as it is then."""
    broker = site.broker

    async def change(
        queue: str, task_id: str, work: Callable[[str, str], Awaitable[ChangedRedrive]], said: str
    ) -> Response:
        await work(queue, task_id)
        if not is_part():
            return site.done(None, go=site.url(f"/dead/{queue}"))
        shown = band(await broker.redrive_info(queue, task_id), site.clock.now_ms())
        response = site.part("workbench/task_part.html", queue=queue, band=shown, may_change=True)
        response.headers["HX-Trigger"] = json.dumps({"forq:done": {"toast": said, "go": None}})
        return response

    for verb, work, said in (
        ("pause", broker.pause_redrive, "Paused"),
        ("resume", broker.resume_redrive, "Goes on from where it was"),
        ("cancel", broker.cancel_redrive, "Cancelled; what was done stays done"),
    ):
        routes.post(f"/dead/<queue>/tasks/<task_id>/{verb}", Scope.REDRIVE)(
            partial(change, work=work, said=said)
        )

    @routes.post("/dead/<queue>/tasks/<task_id>/dismiss", Scope.REDRIVE)
    async def dismiss(queue: str, task_id: str) -> Response:
        await broker.dismiss_redrive(queue, task_id)
        if not is_part():
            return site.done(None, go=site.url(f"/dead/{queue}"))
        return Response("", 200, content_type="text/html; charset=utf-8")
