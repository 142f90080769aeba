"""The list of dead-letter queues: how many messages are in each, where they came from, and their redrives."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model.dead_letters.redrives import RedriveInfo
from forq_trio.model.messages.types import QueueCounts
from forq_trio.ui.directory import QueueNames
from forq_trio.ui.live.page_view import PageView
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer
from forq_trio.ui.workbench.filter import read_number

ROWS_A_PAGE = 50
SOURCES_SHOWN_MAX = 3
AGES_SECONDS_MAX = 5.0


class DeadRow(Struct):
    """A dead-letter queue."""

    name: str
    counts: QueueCounts
    health: Any
    sources: list[str]  # the queues that send here
    more: int  # how many it grew by in the last hour
    ttl_ms: int
    goes_in_ms: int | None  # when the oldest goes, None where that is not known
    tasks: int  # those that run or are paused


class DeadList(Struct):
    """The dead-letter queues. names: those with the most messages first. filled: how many queues have messages.
    messages: how many messages they have.
    """

    names: list[str]
    filled: int
    messages: int


class DeadQueues:
    """The dead-letter queues, from memory."""

    def __init__(self, site: Site, viewer: Viewer) -> None:
        self._site = site
        self._viewer = viewer

    async def all(self) -> DeadList:
        """The queues that the viewer may see; made once for all viewers who see the same ones."""
        known = await self._site.directory.known()
        return await known.answers.once(("dead", self._viewer.sees), lambda: self._find(known))

    async def _find(self, known: QueueNames) -> DeadList:
        directory = self._site.directory
        found = await directory.slices.over(
            await directory.seen_of(known, self._viewer),
            lambda part: [(-known.counts[name].total, name) for name in part if name in known.targets],
        )
        found = await directory.slices.in_order(found)
        totals = await directory.slices.over(found, lambda part: [-total for total, _ in part if total])
        names = await directory.slices.over(found, lambda part: [name for _, name in part])
        return DeadList(names, len(totals), sum(totals))

    async def rows(self, names: Sequence[str]) -> list[DeadRow]:
        """The rows of these queues as they are now."""
        sources = await self._site.directory.sources(self._viewer)
        tasks = await self._site.broker.redrives(None)
        await self._site.monitor.refresh_ages(names, AGES_SECONDS_MAX)
        return [self.row(name, sources.get(name, []), tasks) for name in names]

    def row(self, name: str, sources: list[str], tasks: Sequence[RedriveInfo]) -> DeadRow:
        site = self._site
        counts = site.broker.known.counts_of(name)
        ttl_ms = site.broker.known.rules(name).ttl_ms
        age_ms = site.monitor.oldest_age_ms(name) if counts.ready else None
        return DeadRow(
            name,
            counts,
            site.monitor.health(name),
            sources,
            site.monitor.grown(name),
            ttl_ms,
            None if age_ms is None else max(0, ttl_ms - age_ms),
            sum(task.queue == name and task.state in ("running", "paused") for task in tasks),
        )


def headline(rows: int, messages: int) -> str:
    """The answer in words."""
    if not messages:
        return "There are no dead letters"
    if rows == 1:
        return f"{format.plural(messages, 'dead letter')} in one queue"
    return f"{format.plural(messages, 'dead letter')} in {format.whole(rows)} queues"


def dead_context(site: Site, rows: list[DeadRow], found: DeadList) -> dict[str, Any]:
    """The context of the live part's template."""
    return {
        "rows": rows,
        "headline": headline(found.filled, found.messages),
        "sparkline": site.sparklines.of,
        "sources_max": SOURCES_SHOWN_MAX,
    }


def dead_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part of the list. Its rows are those of the page."""
    page = max(1, read_number(args, "page", 100_000))
    names = site.seen_rows(viewer, args)
    queues = DeadQueues(site, viewer)

    async def read() -> dict[str, Any]:
        nonlocal names
        found = await queues.all()
        if names is None:
            start = (page - 1) * ROWS_A_PAGE
            names = found.names[start : start + ROWS_A_PAGE]
        return dead_context(site, await queues.rows(names), found)

    return PageView(site, viewer, "dead/live.html", read)


def dead_routes(site: Site) -> Routes:
    routes = Routes("dead", site)

    @routes.get("/dead", None)
    async def dead() -> Response:
        viewer = site.viewer
        page = max(1, read_number(request.args, "page", 100_000))
        queues = DeadQueues(site, viewer)
        found = await queues.all()
        start = (page - 1) * ROWS_A_PAGE
        names = [*filter(site.broker.known.has_queue, found.names[start : start + ROWS_A_PAGE])]
        return await site.page(
            "dead/page.html",
            "dead",
            live=site.url("/live/dead", rows=site.row_lists.keep(names)),
            queues=len(found.names),
            page=page,
            pages=max(1, -(-len(found.names) // ROWS_A_PAGE)),
            start=start,
            **dead_context(site, await queues.rows(names), found),
        )

    return routes
