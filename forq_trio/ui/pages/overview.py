"""The list of queues: totals, charts, and a row for each queue with its verdict."""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from quart import Response, request

from forq_trio.drawing import format
from forq_trio.drawing.chart_views import RANGES, ChartLine, ChartView, make_chart
from forq_trio.model.access.types import Scope
from forq_trio.model.messages.types import QueueCounts
from forq_trio.monitor.history import Range
from forq_trio.monitor.watched import Metric
from forq_trio.ui.directory import QueueNames
from forq_trio.ui.live.page_view import PageView
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site
from forq_trio.ui.summary import Summary
from forq_trio.ui.viewer import Viewer

ROWS_A_PAGE = 50
FILTER_LENGTH_MAX = 100
AGES_SECONDS_MAX = 5.0
KINDS = ("all", "attention", "standard", "dead")
LEVELS = ("broken", "attention", "paused", "fine")


class QueueListQuery(Struct, frozen=True):
    """What the URL asks for."""

    q: str  # a text or glob for the name
    kind: str
    sort: str  # a column
    descending: bool
    page: int  # from 1
    range: str  # of the charts
    range_default: str  # the one without asking

    def query(self, **changes: object) -> dict[str, object]:
        """The URL's parameters, without those that have their default; `changes` override."""
        values: dict[str, object] = {
            "q": self.q,
            "kind": self.kind if self.kind != "all" else "",
            "sort": self.sort if self.sort != "health" else "",
            "desc": "1" if self.descending else "",
            "page": self.page if self.page > 1 else "",
            "range": self.range if self.range != self.range_default else "",
        }
        return {**values, **changes}


def read_wanted(site: Site, args: Mapping[str, str]) -> QueueListQuery:
    """The parameters of a request; what is not valid is the default."""
    page = args.get("page", "1")
    kind, sort = args.get("kind", ""), args.get("sort", "")
    return QueueListQuery(
        args.get("q", "").strip()[:FILTER_LENGTH_MAX],
        kind if kind in KINDS else "all",
        sort if sort in COLUMNS else "health",
        args.get("desc") == "1",
        max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 6 else 1,
        *site.range_of(args),
    )


class QueueRow(Struct):
    """A queue of the list. dead: messages in its dead-letter queue; None for one that takes dead letters itself."""

    name: str
    counts: QueueCounts
    health: Any
    now: Any
    dead: int | None
    dead_letter_queue: str
    oldest_ms: int | None
    waiting: int


def _dead_of(site: Site, known: QueueNames, name: str) -> int:
    """How many messages are in its dead-letter queue."""
    target = (
        None if name in known.targets else known.counts.get(site.broker.known.rules(name).dead_letter_queue)
    )
    return 0 if target is None else target.total


COLUMNS: Mapping[str, Callable[[Site, QueueNames, str], float]] = {
    "health": lambda site, known, name: LEVELS.index(site.monitor.health(name).level),
    "name": lambda site, known, name: 0,
    "ready": lambda site, known, name: known.counts[name].ready,
    "delayed": lambda site, known, name: known.counts[name].delayed,
    "processing": lambda site, known, name: known.counts[name].processing,
    "held": lambda site, known, name: known.counts[name].held,
    "dead": _dead_of,
    "sent": lambda site, known, name: site.monitor.rates(name)[0],
    "acked": lambda site, known, name: site.monitor.rates(name)[2],
    "oldest": lambda site, known, name: site.monitor.oldest_age_ms(name) or 0,
    "waiting": lambda site, known, name: site.broker.known.waiting(name),
}
"""The sort keys of the list by column; queues with equal keys are sorted by name."""


class QueuePage(Struct):
    """A page of the queues that match, by name."""

    names: list[str]
    kinds: dict[str, int]  # how many there are of each kind
    found: int  # how many match
    pages: int


def matches(name: str, text: str) -> bool:
    """True if the name contains the text or, where it has a `*`, `?` or `[`, matches it as a glob."""
    if any(sign in text for sign in "*?["):
        return fnmatchcase(name, text)
    return text.lower() in name.lower()


class Queues:
    """Makes the list from memory, once for all viewers who see the same queues and ask for the same page."""

    def __init__(self, site: Site, viewer: Viewer) -> None:
        self._site = site
        self._viewer = viewer

    async def page(self, wanted: QueueListQuery) -> QueuePage:
        """The page that is wanted."""
        known = await self._site.directory.known()
        kinds = await known.answers.once(("kinds", self._viewer.sees), lambda: self._kinds(known))
        question = replace(wanted, range="")
        names, found = await known.answers.once(
            ("list", self._viewer.sees, question), lambda: self._find(known, question)
        )
        names = [*filter(self._site.broker.known.has_queue, names)]
        return QueuePage(names, kinds, found, max(1, -(-found // ROWS_A_PAGE)))

    async def rows(self, names: Sequence[str]) -> list[QueueRow]:
        """The rows of these queues as they are now; zeros for queues that are gone."""
        targets = (await self._site.directory.known()).targets
        return [self._row(name, targets) for name in names]

    async def _kinds(self, known: QueueNames) -> dict[str, int]:
        directory = self._site.directory
        seen = await directory.seen_of(known, self._viewer)
        attention = await directory.slices.over(seen, lambda part: [sum(map(self._needs_attention, part))])
        dead = await directory.slices.over(seen, lambda part: [sum(name in known.targets for name in part)])
        kinds = {"all": len(seen), "attention": sum(attention), "dead": sum(dead)}
        return {**kinds, "standard": kinds["all"] - kinds["dead"]}

    async def _find(self, known: QueueNames, wanted: QueueListQuery) -> tuple[list[str], int]:
        """The names of the page, and how many match."""
        slices = self._site.directory.slices
        value = COLUMNS[wanted.sort]
        sign = -1 if wanted.descending else 1
        found = await slices.over(
            await self._site.directory.seen_of(known, self._viewer),
            lambda part: [
                (sign * value(self._site, known, name), name)
                for name in part
                if self._is_wanted(name, wanted, known.targets)
            ],
        )
        start = (wanted.page - 1) * ROWS_A_PAGE
        if wanted.sort == "name":  # they are sorted so already
            page = [*reversed(found)] if wanted.descending else found
            page = page[start : start + ROWS_A_PAGE]
        else:
            page = await slices.in_order(found, start, start + ROWS_A_PAGE)
        return [name for _, name in page], len(found)

    def _is_wanted(self, name: str, wanted: QueueListQuery, targets: frozenset[str]) -> bool:
        if wanted.q and not matches(name, wanted.q):
            return False
        if wanted.kind == "attention":
            return self._needs_attention(name)
        return wanted.kind == "all" or (name in targets) == (wanted.kind == "dead")

    def _needs_attention(self, name: str) -> bool:
        return self._site.monitor.health(name).level in ("broken", "attention")

    def _row(self, name: str, targets: frozenset[str]) -> QueueRow:
        site = self._site
        count = site.broker.known.counts_of(name)
        target = "" if name in targets else site.broker.known.rules(name).dead_letter_queue
        return QueueRow(
            name,
            count,
            site.monitor.health(name),
            site.monitor.now(name),
            site.broker.known.counts_of(target).total if target else None if name in targets else 0,
            target,
            site.monitor.oldest_age_ms(name) if count.ready else None,
            site.broker.known.waiting(name),
        )


def headline(summary: Summary) -> str:
    """The answer in words: how many queues need attention."""
    if not summary.need_attention:
        if summary.levels.get("paused"):
            return "No queue needs attention"
        return f"All {summary.queues} queues are healthy" if summary.queues > 1 else "The queue is healthy"
    needs = "needs" if summary.need_attention == 1 else "need"
    queues = "queue" if summary.queues == 1 else "queues"
    return f"{summary.need_attention} of {format.whole(summary.queues)} {queues} {needs} attention"


def levels_in_words(summary: Summary) -> str:
    """How many queues are healthy and paused; "" if the headline says so already."""
    paused = summary.levels.get("paused", 0)
    if not (paused or summary.need_attention):
        return ""
    parts = [
        f"{count} {'is' if count == 1 else 'are'} {word}"
        for count, word in ((summary.levels.get("fine", 0), "healthy"), (paused, "paused"))
        if count or word == "healthy"
    ]
    return f"{', '.join(parts)}."


def total_charts(site: Site, range_: str, summary: Summary) -> list[ChartView]:
    """The three charts of all queues."""
    now = site.monitor.total_now()

    def line(css: str, word: str, metric: Metric, words: str) -> ChartLine:
        return ChartLine(css, word, site.monitor.history.total(metric, Range(range_)), words)

    sent = line("ln-a", "Sent", Metric.SENT, format.rate(now.sent_per_second))
    acked = line("ln-b", "Acked", Metric.ACKED, format.rate(now.acked_per_second))
    ready = line("ln-a", "Ready", Metric.READY, format.figure(summary.ready))
    oldest = line(
        "ln-a", summary.oldest_queue or "Oldest", Metric.OLDEST_SECONDS, format.duration(summary.oldest_ms)
    )
    return [
        make_chart("sent", "Messages a second", "rate", [sent, acked]),
        make_chart("ready", "Ready messages", "count", [ready], filled=True),
        make_chart("oldest", "Oldest to claim", "seconds", [oldest], filled=True),
    ]


def empty_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part of the page before there is a queue: it changes when there is one."""
    return PageView(site, viewer, "nav_live.html")


def overview_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part of the page, for all who see the same rows. args: rows, seen: what `live_path` made of the page."""
    wanted = read_wanted(site, args)
    queues = Queues(site, viewer)
    names = site.seen_rows(viewer, args)
    given = args.get("seen", "")
    seen = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else None

    async def read() -> dict[str, Any]:
        nonlocal names
        if names is None:
            names = (await queues.page(wanted)).names
        await site.monitor.refresh_ages(names, AGES_SECONDS_MAX)
        summary = await site.summaries.of(viewer)
        return {
            **overview_context(site, viewer, wanted, summary),
            "rows": await queues.rows(names),
            "new_queues": 0 if seen is None else summary.queues - seen,
        }

    return PageView(site, viewer, "overview/live.html", read)


def overview_context(site: Site, viewer: Viewer, wanted: QueueListQuery, summary: Summary) -> dict[str, Any]:
    """What the live part needs besides its rows."""
    return {
        "summary": summary,
        "headline": headline(summary),
        "levels_in_words": levels_in_words(summary),
        "charts_shown": total_charts(site, wanted.range, summary) if viewer.sees_all else [],
        "sparkline": site.sparklines.of,
        "range_words": f"last {RANGES[wanted.range]}",
        "show_groups": wanted.sort == "health" and not wanted.descending,
    }


def overview_routes(site: Site) -> Routes:
    routes = Routes("overview", site)

    @routes.get("/", None)
    async def overview() -> Response:
        viewer = site.viewer
        wanted = read_wanted(site, request.args)
        queues = Queues(site, viewer)
        found = await queues.page(wanted)
        if not found.kinds["all"] and not wanted.q:
            return await site.page(
                "empty.html",
                "queues",
                live=site.url("/live/empty"),
                may_send=viewer.may(Scope.PRODUCE),
                api=site.api_url,
            )
        await site.monitor.refresh_ages(found.names, AGES_SECONDS_MAX)
        summary = await site.summaries.of(viewer)
        seen = max(summary.queues, found.kinds["all"])  # the summary may be a moment older than the list
        return await site.page(
            "overview/page.html",
            "queues",
            live=site.url(
                "/live/overview",
                **wanted.query(range=wanted.range),
                rows=site.row_lists.keep(found.names),
                seen=seen,
            ),
            wanted=wanted,
            found=found,
            range_choices=RANGES,
            rows_a_page=ROWS_A_PAGE,
            rows=await queues.rows(found.names),
            new_queues=0,
            **overview_context(site, viewer, wanted, summary),
        )

    return routes
