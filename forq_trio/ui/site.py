"""What all pages share: the sources of their data, the current viewer, and their forms of answers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from quart import Response, g, request

from forq_trio.broker.broker import Broker
from forq_trio.config.settings import Config
from forq_trio.drawing.chart_views import RANGES, range_default
from forq_trio.model.access.types import Scope
from forq_trio.model.clock import Clock
from forq_trio.monitor.monitor import Monitor
from forq_trio.system import System
from forq_trio.telemetry.counters import Counters
from forq_trio.ui import csrf
from forq_trio.ui.cells import Cells
from forq_trio.ui.directory import Directory
from forq_trio.ui.key_counts import KeyCounts
from forq_trio.ui.live.hub import LiveHub
from forq_trio.ui.purges import Purges
from forq_trio.ui.rendering import Templates, html_response
from forq_trio.ui.row_lists import RowLists
from forq_trio.ui.sessions import UiSessions
from forq_trio.ui.sparklines import Sparklines
from forq_trio.ui.summary import Summaries
from forq_trio.ui.viewer import Viewer
from forq_trio.ui.worker_directory import WorkerDirectory

THEME_COOKIE = "ForqTheme"


class GoneMessage(NamedTuple):
    """A message that an action has removed from its queue."""

    sequence: int
    word: str  # what became of it


@dataclass(frozen=True)
class Site:
    """The site. broker: for reads and commands. monitor, counters: measurements. api_url: the API for clients."""

    broker: Broker
    monitor: Monitor
    counters: Counters
    clock: Clock
    config: Config
    api_url: str
    version: str
    templates: Templates
    sessions: UiSessions
    directory: Directory
    summaries: Summaries
    hub: LiveHub
    sparklines: Sparklines
    row_lists: RowLists
    key_counts: KeyCounts
    system: System
    purges: Purges
    history_purges: Purges
    workers: WorkerDirectory
    api_connections: Callable[[], int]

    @property
    def viewer(self) -> Viewer:
        """The viewer of the current request; there is one for every path but /login and /static."""
        return cast("Viewer", g.viewer)

    def range_of(self, args: Mapping[str, str]) -> tuple[str, str]:
        """The range of charts for a request, and the default range."""
        default = range_default(self.clock.now_ms() - self.system.started_at)
        wanted = args.get("range", "")
        return (wanted if wanted in RANGES else default), default

    def seen_rows(self, viewer: Viewer, args: Mapping[str, str]) -> list[str] | None:
        """The rows of the page that a live view belongs to; None if they are no longer known."""
        names = self.row_lists.find(args.get("rows", ""))
        return names if names is None or not viewer.token else [*filter(viewer.may_see, names)]

    def url(self, path: str, **query: object) -> str:
        return self.templates.url(path, **query)

    async def page(
        self, template: str, here: str, live: str | None = None, status: int = 200, **context: Any
    ) -> Response:
        """A whole page; one is made at a time. here: the place in the navigation.

        live: the path of its live view, None for none.
        """
        values = {**self.common(), **await self.navigation(self.viewer), **context}
        async with self.directory.slices.lock:
            text = self.templates.render(template, Cells(), here=here, live_path=live, **values)
            return html_response(text, accepts_gzip(), status)

    async def navigation(self, viewer: Viewer) -> dict[str, Any]:
        """What the navigation of every page shows."""
        return {
            "viewer": viewer,
            "Scope": Scope,
            "summary": await self.summaries.of(viewer),
            "schedule_count": self.broker.known.schedules.count if viewer.sees_all else None,
            "workers_seen": await self.workers.seen(viewer),
            "system_verdict": self.summaries.system_verdict(),
        }

    def part(self, template: str, status: int = 200, cells: Cells | None = None, **context: Any) -> Response:
        """A part of a page, for htmx."""
        text = self.templates.render(template, cells, **self.common(), **context)
        return html_response(text, accepts_gzip(), status)

    async def dialog(self, template: str, title: str, status: int = 200, **context: Any) -> Response:
        """A dialog: a part for htmx, a page of its own for a browser that opens its link by itself.

        title: of the page, or of the dialog if it uses it.
        """
        if is_part():
            return self.part(template, status, title=title, **context)
        return await self.page(
            "dialog_page.html", "queues", status=status, dialog=template, title=title, **context
        )

    def common(self) -> dict[str, Any]:
        """What every template may use."""
        viewer: Viewer | None = g.get("viewer")
        return {
            "viewer": viewer,
            "theme": theme(),
            "csrf": csrf.make_token(viewer.session_id) if viewer else "",
            "config": self.config,
            "version": self.version,
            "served_by": None if self.config.db_url is None else self.broker.known_processes.name,
            "one_of": len(self.broker.known_processes.all()),
            "now_ms": self.clock.now_ms(),
            "started_at": self.system.started_at,
            "Scope": Scope,
        }

    def done(
        self,
        toast: str | None,
        *,
        go: str | None = None,
        link: str | None = None,
        href: str | None = None,
        gone: GoneMessage | None = None,
    ) -> Response:
        """The answer to an action that was carried out.

        toast: what to say; link, href: a link in it. go: the page to show, None for the one that is open. A browser
        without JavaScript is sent there. gone: a message that left its queue; a list that shows it strikes it out.
        """
        if request.headers.get("HX-Request") != "true":
            return see_other(go or request.headers.get("Referer", self.url("/")))
        left = None if gone is None else gone._asdict()
        event = {"forq:done": {"toast": toast, "go": go, "link": link, "href": href, "gone": left}}
        return Response(b"", 204, headers={"HX-Trigger": json.dumps(event)})


def see_other(url: str) -> Response:
    """Sends the browser to another page, by GET."""
    return Response(b"", 303, headers={"Location": url})


def theme() -> str | None:
    """light or dark if the reader chose one, None for what the system has."""
    chosen = request.cookies.get(THEME_COOKIE)
    return chosen if chosen in ("light", "dark") else None


def accepts_gzip() -> bool:
    return "gzip" in request.headers.get("Accept-Encoding", "")


def is_part() -> bool:
    """True if htmx asks, for a part of a page."""
    return request.headers.get("HX-Request") == "true"
