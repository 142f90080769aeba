"""A queue's page: its verdict, charts, figures and settings, and the list of its messages; pause and resume."""

from collections.abc import Mapping
from math import inf
from typing import Any
from urllib.parse import urlsplit

import trio
from msgspec import Struct
from quart import Response, request

from forq_trio.drawing import format
from forq_trio.drawing.chart_views import RANGES, ChartLine, ChartView, make_chart
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import ForqError, QueueNotFound
from forq_trio.model.messages.types import QueueCounts, check_queue_name
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.model.queues.settings import QueueRules
from forq_trio.monitor.history import Range, TimeSeries
from forq_trio.monitor.totals import Now
from forq_trio.monitor.watched import Metric
from forq_trio.ui import content, curl
from forq_trio.ui.key_counts import KeyCount
from forq_trio.ui.key_words import MODE_WORDS
from forq_trio.ui.live.page_view import PageView
from forq_trio.ui.pages.message_list import ListedMessages, MessagePages, read_listed
from forq_trio.ui.queue_limits import limits_of
from forq_trio.ui.queue_workers import workers_of
from forq_trio.ui.routes import Routes
from forq_trio.ui.settings_words import default_ones, set_ones
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer

AGE_SECONDS_MAX = 5.0
CONSUMERS_SHOWN = 20


SETTING_OF = {
    "change_limit": ("Change the limit", "max_messages"),
    "change_rate": ("Change the rate", "rate"),
    "change_in_flight": ("Change the limit", "in_flight_max"),
}
"""The remedies that change a setting: their names, and the field of the form with the cursor."""


class Remedy(Struct, frozen=True):
    """What can be done about a verdict. kind: link, dialog (opened from `href`) or resume."""

    kind: str
    word: str
    href: str = ""


class QueueFacts:
    """The facts about a queue that the page and its live view show, from memory; `refresh` reads its age."""

    def __init__(self, site: Site, viewer: Viewer, queue: str, args: Mapping[str, str]) -> None:
        self.site = site
        self.viewer = viewer
        self.queue = queue
        self.keys = KeyCount()
        self.table = site.broker.known.settings_of(queue).table
        self.table_problem = ""
        self._counted_at = -inf
        self.range, self.range_default = site.range_of(args)

    async def refresh(self) -> None:
        self.keys = await self.site.key_counts.of(self.queue)
        await self.site.monitor.refresh_ages([self.queue], AGE_SECONDS_MAX)
        if self.table is not None and trio.current_time() >= self._counted_at + AGE_SECONDS_MAX:
            self._counted_at = trio.current_time()
            try:
                await self.site.broker.queue_stats(self.queue)
                self.table_problem = ""
            except ForqError as error:
                self.table_problem = error.message

    def context(self) -> dict[str, Any]:
        """What the live part of the page needs."""
        site, queue = self.site, self.queue
        rules = site.broker.known.rules(queue)
        counts = site.broker.known.counts_of(queue)
        health = site.monitor.health(queue)
        now = site.monitor.now(queue)
        takes_dead_letters = site.broker.known.takes_dead_letters(queue)
        target = "" if takes_dead_letters or self.table else rules.dead_letter_queue
        shows_dead = bool(target) and self.viewer.may_see(target)
        consumers = site.broker.leases.of(queue)
        return {
            "queue": queue,
            "counts": counts,
            "table": self.table,
            "table_problem": self.table_problem,
            "paused": rules.paused,
            "health": health,
            "remedy": self._remedy(health, counts),
            "now": now,
            "keys": self.keys,
            "is_keyed": self._is_keyed,
            "offers_line": self._offers_line(now) if health.level == "fine" else "",
            "oldest_ms": site.monitor.oldest_age_ms(queue) if counts.ready else None,
            "waiting": site.broker.known.waiting(queue),
            "queue_workers": workers_of(site, queue),
            "consumers": consumers[:CONSUMERS_SHOWN],
            "consumers_more": max(len(consumers) - CONSUMERS_SHOWN, 0),
            "may_consume": self.viewer.may(Scope.CONSUME, queue),
            "consumers_at": site.clock.now_ms(),
            "takes_dead_letters": takes_dead_letters,
            "dead_letter_queue": target if shows_dead else "",
            "dead": site.broker.known.counts_of(target).total if shows_dead else 0,
            "charts_shown": self._charts(now, rules),
            "limits": limits_of(site, queue),
            "range_words": f"last {RANGES[self.range]}",
            "range": self.range,
            "range_default": self.range_default,
            "purge": site.purges.of(queue),
            "finished": site.broker.known.history_of(queue).messages,
            "keeps_history": site.broker.known.log("history").enabled,
            "may_administer": self.viewer.may(Scope.ADMIN, queue),
            "may_bind": self.table is None and not takes_dead_letters and may_bind(site, self.viewer),
        }

    @property
    def _is_keyed(self) -> bool:
        """Whether the queue has messages with a key, or had some since the start."""
        return self.keys.total > 0 or self.site.monitor.now(self.queue).offers_of_hour > 0

    def _offers_line(self, now: Now) -> str:
        """A sentence about the outcomes of offers, for a queue with keys."""
        if not self._is_keyed:
            return ""
        words = "At most one message waits for each key."
        offered, delivered = now.offered_per_second, now.delivered_per_second
        if offered < delivered or format.rate(offered) == "0":
            return words
        return (
            f"{words} Of {format.rate(offered)} offers a second {format.rate(delivered)} become a delivery, the others "
            "replace or postpone the one that waits."
        )

    def _remedy(self, health: Any, counts: QueueCounts) -> Remedy | None:
        """The remedy of a verdict, unless the viewer may not use it."""
        place = f"/queue/{self.queue}"
        url = self.site.url
        if health.remedy in SETTING_OF or health.remedy in ("set_lease", "resume"):
            if not self.viewer.may(Scope.ADMIN, self.queue):
                return None
            if health.remedy == "resume":
                return Remedy("resume", "Resume")
            if health.remedy in SETTING_OF:
                words, at = SETTING_OF[health.remedy]
                return Remedy("dialog", words, url(f"{place}/settings", at=at))
            lease = format.setting(health.remedy_value or 0)
            return Remedy("dialog", f"Set the lease to {lease}", url(f"{place}/settings", lease_ms=lease))
        failed = "failed" if counts.failed else "delayed"
        links = {
            "show_oldest": ("Show the oldest", url(place, state="ready", range=self._range())),
            "show_in_flight": ("Show in flight", url(place, state="processing", range=self._range())),
            "show_failed": ("Show them", url(place, state=failed, range=self._range())),
            "show_consumers": ("Show consumers", "#now"),
            "show_workers": ("Show workers", url("/workers", q=self.queue)),
            "open_workbench": ("Open the workbench", url(f"/dead/{self.queue}")),
        }
        return Remedy("link", *links[health.remedy]) if health.remedy in links else None

    def _range(self) -> str:
        return self.range if self.range != self.range_default else ""

    def _charts(self, now: Any, rules: QueueRules) -> list[ChartView]:
        history = self.site.monitor.history

        def series(metric: Metric) -> TimeSeries:
            return history.queue(self.queue, metric, Range(self.range))

        if self._is_keyed:
            sent = ChartLine("ln-a", "Offered", series(Metric.OFFERED), format.rate(now.offered_per_second))
        else:
            sent = ChartLine("ln-a", "Sent", series(Metric.SENT), format.rate(now.sent_per_second))
        rate = rules.queue_rate
        if rate is None:
            out = ChartLine("ln-b", "Acked", series(Metric.ACKED), format.rate(now.acked_per_second))
            charts = [make_chart("sent", "Messages a second", "rate", [sent, out])]
        else:
            out = ChartLine(
                "ln-b", "Delivered", series(Metric.DELIVERED), format.rate(now.delivered_per_second)
            )
            limit = ("Rate", rate.count * limits.SECOND_MS / rate.period_ms)
            charts = [make_chart("sent", "Messages a second", "rate", [sent, out], limit=limit, raised=3)]
        times = series(Metric.ACK_P90_SECONDS)
        if rules.rate is not None:
            words = format.whole(limits_of(self.site, self.queue).held_by_rate)
            line = ChartLine("ln-a", "Held", series(Metric.HELD_BY_RATE), words)
            title = "Held by the rate" if rate is not None else "Held by groups"
            charts.append(make_chart("held", title, "count", [line], filled=True))
        elif any(value is not None for value in times.values):
            line = ChartLine("ln-a", "p90", times, format.duration(now.ack_p90_ms))
            lease = ("Lease", rules.lease_ms / limits.SECOND_MS)
            charts.append(make_chart("ack", "Time to ack", "seconds", [line], filled=True, limit=lease))
        else:
            ended = series(Metric.LEASES_ENDED)
            latest = next((value for value in reversed(ended.values) if value is not None), None)
            line = ChartLine("ln-a", "Ended", ended, format.NOTHING if latest is None else f"{latest:,.0f}")
            charts.append(make_chart("ended", "Leases ended a minute", "count", [line], filled=True))
        return charts


def queue_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part of the page."""
    queue = check_queue_name(args.get("queue", ""))
    viewer.require(Scope.BROWSE, queue)
    facts = QueueFacts(site, viewer, queue, args)
    state = read_listed(args).state

    async def read() -> dict[str, Any]:
        await facts.refresh()
        return facts.context() | {"listed": ListedMessages(state=state)}

    return PageView(site, viewer, "queue/live.html", read)


def queue_routes(site: Site) -> Routes:
    routes = Routes("queue", site)

    @routes.get("/queue/<queue>", Scope.BROWSE)
    async def page(queue: str) -> Response:
        viewer = site.viewer
        if not site.broker.known.has_queue(queue):
            return await _unknown(site, queue)
        listed = read_listed(request.args)
        facts = QueueFacts(site, viewer, queue, request.args)
        rows = await MessagePages(site, viewer, queue).page(listed)
        await facts.refresh()
        settings, rules = site.broker.known.settings_of(queue), site.broker.known.rules(queue)
        details = settings.details(queue)
        context = facts.context()
        return await site.page(
            "queue/page.html",
            "queues",
            live=site.url("/live/queue", queue=queue, range=facts.range, state=listed.state),
            listed=listed,
            rows=rows,
            rules=rules,
            mode_words=MODE_WORDS,
            range_choices=RANGES,
            set_ones=set_ones(settings, rules),
            default_ones=default_ones(settings, rules),
            details=details,
            documents={}
            if details is None
            else {name: content.show(text).html for name, text in details.documents},
            curl=None if is_dead_letter_queue(queue) else curl.first_message(site.api_url, queue),
            **context,
        )

    @routes.post("/queue/<queue>/pause", Scope.ADMIN)
    async def pause(queue: str) -> Response:
        """Pause or resume: the form's `paused` says which."""
        if (await request.form).get("paused") == "1":
            await site.broker.pause(queue)
            return site.done(f"Paused {queue}. Sends go on.", go=back_to(site, queue))
        await site.broker.resume(queue)
        return site.done(f"Resumed {queue}", go=back_to(site, queue))

    return routes


async def _unknown(site: Site, queue: str) -> Response:
    may_send = site.viewer.may(Scope.PRODUCE, queue) and not is_dead_letter_queue(queue)
    may_be_bound = may_bind(site, site.viewer) and not is_dead_letter_queue(queue)
    return await site.page(
        "queue/unknown.html", "queues", status=404, queue=queue, may_send=may_send, may_bind=may_be_bound
    )


def may_bind(site: Site, viewer: Viewer) -> bool:
    """Whether queues can be bound to tables here, and by this viewer."""
    return site.broker.has_tables and viewer.may(Scope.ADMIN)


def back_to(site: Site, queue: str) -> str:
    """The page of the queue as it was when the action was sent, with its tab and range."""
    place = site.url(f"/queue/{queue}")
    said = request.headers.get("HX-Current-URL", "")
    try:
        parts = urlsplit(said)
    except ValueError:
        return place
    if parts.netloc != request.host or parts.path != place:
        return place
    return f"{place}?{parts.query}" if parts.query else place


def check_known(site: Site, queue: str) -> None:
    """Raise QueueNotFound for a queue that nobody ever used."""
    if not site.broker.known.has_queue(check_queue_name(queue)):
        raise QueueNotFound(f"there is no queue called {queue}")
