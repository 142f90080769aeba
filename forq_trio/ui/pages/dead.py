"""The list of dead-letter queues: how many messages are in each, where they came from, and what is done about them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import trio
from msgspec import Struct
from quart import Blueprint, Response, request

from forq_trio.model.messages import QueueCounts
from forq_trio.ui import format
from forq_trio.ui.cells import Cells
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer
from forq_trio.ui.workbench.filter import read_number
from forq_trio.wire.dead_letters import RedriveInfo

ROWS_A_PAGE = 50
SOURCES_SHOWN_MAX = 3
AGES_SECONDS_MAX = 5.0
_AT_ONCE = 500


class DeadRow(Struct):
    """A dead-letter queue. sources: the queues that send here; more: how many it grew by in the last hour.

    goes_in_ms: when the oldest goes, None where that is not known. tasks: those that run or are paused.
    """

    name: str
    counts: QueueCounts
    health: Any
    sources: list[str]
    more: int
    ttl_ms: int
    goes_in_ms: int | None
    tasks: int


class DeadQueues:
    """What is known about dead-letter queues, from memory."""

    def __init__(self, site: Site, viewer: Viewer) -> None:
        self._site = site
        self._viewer = viewer

    def names(self) -> list[str]:
        """Those that the viewer may see, those with the most messages first."""
        broker = self._site.broker
        seen = [name for name in broker.dead_letter_queues() if self._viewer.may_see(name)]
        return sorted(seen, key=lambda name: (-broker.counts_of(name).total, name))

    async def sources(self) -> Mapping[str, list[str]]:
        """The queues that send to each, by name; other tasks run now and then meanwhile."""
        broker = self._site.broker
        targets = broker.dead_letter_queues()
        found: dict[str, list[str]] = defaultdict(list)
        for place, name in enumerate(sorted(broker.counts())):
            if place % _AT_ONCE == _AT_ONCE - 1:
                await trio.lowlevel.checkpoint()
            if name not in targets:
                found[broker.rules(name).dead_letter_queue].append(name)
        return found

    async def sources_of(self, queue: str) -> list[str]:
        """The queues that send to this one."""
        return (await self.sources()).get(queue, [])

    async def rows(self, names: Sequence[str], sources: Mapping[str, list[str]]) -> list[DeadRow]:
        """The rows of these queues as they are now."""
        tasks = await self._site.broker.redrives(None)
        await self._site.monitor.refresh_ages(names, AGES_SECONDS_MAX)
        return [self.row(name, sources.get(name, []), tasks) for name in names]

    def row(self, name: str, sources: list[str], tasks: Sequence[RedriveInfo]) -> DeadRow:
        site = self._site
        counts = site.broker.counts_of(name)
        ttl_ms = site.broker.rules(name).ttl_ms
        age_ms = site.monitor.oldest_age_ms(name) if counts.ready else None
        return DeadRow(
            name,
            counts,
            site.monitor.health(name),
            [source for source in sources if self._viewer.may_see(source)],
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


def dead_context(site: Site, viewer: Viewer, rows: list[DeadRow]) -> dict[str, Any]:
    """What the live part needs."""
    names = DeadQueues(site, viewer).names()
    counts = [site.broker.counts_of(name).total for name in names]
    return {
        "rows": rows,
        "headline": headline(sum(count > 0 for count in counts), sum(counts)),
        "sparkline": site.sparklines.of,
        "sources_max": SOURCES_SHOWN_MAX,
        "system_verdict": site.summaries.system_verdict(),
        "viewer": viewer,
    }


class DeadView:
    """The live part of the list. Its rows are those of the page."""

    def __init__(self, site: Site, viewer: Viewer, args: Mapping[str, str]) -> None:
        self._site = site
        self._viewer = viewer
        self._page = max(1, read_number(args, "page", 100_000))
        names = site.row_lists.find(args.get("rows", ""))
        self._names = names if names is None or not viewer.token else [*filter(viewer.may_see, names)]
        self._sources: Mapping[str, list[str]] = {}
        self._context: dict[str, Any] = {}

    async def refresh(self) -> None:
        queues = DeadQueues(self._site, self._viewer)
        if self._names is None:
            start = (self._page - 1) * ROWS_A_PAGE
            self._names = queues.names()[start : start + ROWS_A_PAGE]
        if not self._sources:
            self._sources = await queues.sources()
        rows = await queues.rows(self._names, self._sources)
        self._context = dead_context(self._site, self._viewer, rows)
        self._context["summary"] = await self._site.summaries.of(self._viewer)

    def cells(self) -> Mapping[str, str]:
        cells = Cells()
        self._site.templates.render("dead/live.html", cells, **self._context)
        return cells.html


def dead_routes(site: Site) -> Blueprint:
    blueprint = Blueprint("dead", __name__)

    @blueprint.get("/dead")
    async def dead() -> Response:
        viewer = site.viewer
        page = max(1, read_number(request.args, "page", 100_000))
        queues = DeadQueues(site, viewer)
        names = queues.names()
        start = (page - 1) * ROWS_A_PAGE
        rows = await queues.rows(names[start : start + ROWS_A_PAGE], await queues.sources())
        context = dead_context(site, viewer, rows)
        del context["viewer"], context["system_verdict"]
        return await site.page(
            "dead/page.html",
            "dead",
            live=site.url("/live/dead", rows=site.row_lists.keep(names[start : start + ROWS_A_PAGE])),
            queues=len(names),
            page=page,
            pages=max(1, -(-len(names) // ROWS_A_PAGE)),
            start=start,
            **context,
        )

    return blueprint
