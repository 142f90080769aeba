"""The System page: the state of the server, its jobs, tokens, sessions, backups and settings."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from quart import Response

from forq_trio.config.report import shown_value
from forq_trio.config.settings import SETTINGS
from forq_trio.drawing import charts, format
from forq_trio.jobs.compaction import BYTES_MIN
from forq_trio.jobs.facts import SystemFacts
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.engine_facts import REFUSAL_WORDS
from forq_trio.model.errors import ServiceError
from forq_trio.model.messages.set_aside import SetAside
from forq_trio.model.server.compaction import CompactionInfo
from forq_trio.model.server.processes import is_newer
from forq_trio.telemetry.histogram import DISK_SECONDS, quantile
from forq_trio.telemetry.rejections import Cause
from forq_trio.ui.freeing import what_frees_space
from forq_trio.ui.live.page_view import PageView
from forq_trio.ui.pages.set_aside import SHOWN
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer

REFUSALS = {
    "Key missing or wrong": (Cause.UNAUTHORIZED, Cause.THROTTLED),
    "Scope or queue not allowed": (Cause.FORBIDDEN,),
    "Queue full": (Cause.QUEUE_FULL,),
    "Overloaded": (Cause.OVERLOADED,),
    "Too large or too slow": (Cause.TOO_LARGE, Cause.SLOW_REQUEST),
    "Disk full or database unavailable": (
        Cause.STORAGE_FULL,
        Cause.STORAGE_LOST,
        Cause.STORAGE_UNAVAILABLE,
        Cause.READ_TIMEOUT,
    ),
}


class UnreadableBackups(Struct, frozen=True):
    """Replaces `model.server.backups.Backups` if their directory cannot be read. problem: why."""

    directory: str
    problem: str
    keep: int = 0
    latest: None = None
    next_at: None = None
    files: tuple[()] = ()


COMPACTION_SHOWN_MS = 600_000
OFFERED_BYTES_MIN = BYTES_MIN
OFFERED_SHARE_MIN = 0.1


class CompactionView(Struct, frozen=True):
    """The compaction as shown.

    task: the one that runs or ended last. shown: whether its band is shown. offered: whether there is a button to begin
    one.
    """

    task: CompactionInfo
    shown: bool
    offered: bool


def compaction_view(task: CompactionInfo, now_ms: int) -> CompactionView:
    """Show the button if enough of the file is free, and the band until some time after the end."""
    is_active = task.state in ("running", "paused")
    much = max(OFFERED_BYTES_MIN, OFFERED_SHARE_MIN * task.file_bytes)
    ended_lately = task.finished_at is not None and now_ms - task.finished_at < COMPACTION_SHOWN_MS
    return CompactionView(
        task, is_active or ended_lately, task.possible and not is_active and task.free_bytes >= much
    )


class Bars(Struct, frozen=True):
    """A histogram of the last hour: the drawing, a label below every other bar, and a sentence."""

    drawing: Any
    labels: Sequence[str]
    sentence: str


def calls_bars(facts: SystemFacts) -> Bars:
    """How many calls shared a commit."""
    commits = facts.commits
    bounds = [int(bound) for bound in commits.calls_bounds]
    labels = [_thousands(bound) if place % 2 == 0 else "" for place, bound in enumerate(bounds)]
    marked = _place(bounds, commits.calls_median)
    sentence = (
        f"The median commit carries up to {format.whole(bounds[marked])} "
        f"{'call' if bounds[marked] == 1 else 'calls'}."
        if marked is not None
        else "No commit in the last hour."
    )
    return Bars(charts.histogram(_fitted(commits.calls_counts, len(bounds)), marked), labels, sentence)


def disk_bars(facts: SystemFacts) -> Bars:
    """How long a commit waited for the disk."""
    says = "The median takes up to {} ms. Above 100 ms the disk is slow."
    return _seconds_bars(facts.commits.seconds_counts, says, "No commit in the last hour.")


def gate_bars(facts: SystemFacts) -> Bars:
    """How long a batch waited until no other process ran one."""
    return _seconds_bars(facts.gate_counts, "The median waits up to {} ms.", "No batch in the last hour.")


def _seconds_bars(counts: Sequence[int], says: str, nothing: str) -> Bars:
    """Counts by bucket of DISK_SECONDS. says: a sentence with the median's milliseconds."""
    bounds = list(DISK_SECONDS)
    labels = [_milliseconds(bound) if place % 2 == 0 else "" for place, bound in enumerate(bounds)]
    marked = _place(bounds, quantile(bounds, counts, 0.5))
    sentence = nothing if marked is None else says.format(_milliseconds(bounds[marked]))
    return Bars(charts.histogram(_fitted(counts, len(bounds)), marked), labels, sentence)


def _fitted(counts: Sequence[int], bars: int) -> list[int]:
    """The counts for `bars` bars: the last bar also has those above the last bound."""
    return [*counts[: bars - 1], sum(counts[bars - 1 :])]


def _place(bounds: Sequence[float], value: float | None) -> int | None:
    """The place of the bar for a value; None if there is no value."""
    if value is None:
        return None
    return next((place for place, bound in enumerate(bounds) if value <= bound), len(bounds) - 1)


def _thousands(number: int) -> str:
    return f"{number // 1_024} k" if number >= 1_024 else str(number)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1_000:g}"


class SystemContext:
    """The contents of the page, as far as the viewer may see them."""

    def __init__(self, site: Site, viewer: Viewer) -> None:
        self._site = site
        self._viewer = viewer

    async def live(self) -> dict[str, Any]:
        """The part of the context that changes by itself."""
        site = self._site
        facts = site.system.facts(site.api_connections())
        rejections = site.counters.rejections
        return {
            "facts": facts,
            "lost_ms": limits.PROCESS_LOST_MS,
            "is_newer": is_newer,
            "verdict": site.summaries.system_verdict(),
            "processing": (await site.summaries.of(self._viewer)).processing,
            "reports": site.system.reports(),
            "calls": calls_bars(facts),
            "disk": disk_bars(facts),
            "gate": gate_bars(facts),
            "refusals": {
                word: sum(rejections[cause] for cause in causes) for word, causes in REFUSALS.items()
            },
            "dashboards": site.hub.readers,
            "events": site.broker.known.log("events"),
            "staging": site.broker.known.staging(),
            "backup": await self._backup(),
            "freeing": await what_frees_space(site, self._viewer, facts) if facts.sends_refused else [],
            "compaction": compaction_view(site.system.compaction.state(), facts.now_ms),
            "now_ms": facts.now_ms,
        }

    async def _backup(self) -> Any:
        """The backups; None if the viewer may not see them, or if none can be made."""
        backups = self._site.system.backups
        if backups.directory is None or not self._viewer.may(Scope.ADMIN):
            return None
        try:
            return await backups.state()
        except ServiceError as error:
            return UnreadableBackups(str(backups.directory), error.message)

    async def fixed(self) -> dict[str, Any]:
        """The part that changes only by actions; empty if the viewer may not administer."""
        site, viewer = self._site, self._viewer
        if not viewer.may(Scope.ADMIN):
            return {"tokens": None, "sessions": None, "settings": None, "set_aside": None}
        config = site.config
        return {
            "set_aside": await self._set_aside(),
            "tokens": await site.broker.tokens(),
            "sessions": sorted(
                site.broker.sessions.all(), key=lambda session: session.last_used_at or 0, reverse=True
            ),
            "settings": [
                (setting, shown_value(setting, getattr(config, name))) for name, setting in SETTINGS.items()
            ],
        }

    async def _set_aside(self) -> Sequence[SetAside]:
        """The first messages that were set aside, if the database is shared; none while it cannot be read."""
        if not self._site.system.engine.facts().shared:
            return ()
        try:
            return await self._site.broker.set_aside(limit=SHOWN)
        except ServiceError:
            return ()


def system_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part of the System page."""
    viewer.require(Scope.BROWSE)
    return PageView(site, viewer, "system/live.html", SystemContext(site, viewer).live)


def system_routes(site: Site) -> Routes:
    routes = Routes("system", site)

    @routes.get("/system", Scope.BROWSE)
    async def system() -> Response:
        viewer = site.viewer
        context = SystemContext(site, viewer)
        values = await context.live() | await context.fixed()
        return await site.page("system/page.html", "system", live=site.url("/live/system"), **values)

    @routes.post("/system/jobs/<name>/run", Scope.ADMIN)
    async def run_job(name: str) -> Response:
        report = await site.system.jobs.run_now(name)
        return site.done(f"{report.title}: {report.result or 'done'}")

    @routes.post("/system/space", Scope.ADMIN)
    async def check_space() -> Response:
        if site.system.housekeeping.disk_guard is not None:
            site.system.housekeeping.disk_guard.check_disk()
        refused = site.broker.known.sends_refused
        return site.done("Sends are accepted" if refused is None else REFUSAL_WORDS[refused])

    @routes.post("/system/backup", Scope.ADMIN)
    async def back_up() -> Response:
        await site.system.backups.start(site.viewer.started_by)
        return site.done("The backup has begun", go=site.url("/system") + "#backups")

    @routes.post("/system/compaction/start", Scope.ADMIN)
    async def start_compaction() -> Response:
        site.system.compaction.start(site.viewer.started_by)
        return site.done("The compaction has begun", go=site.url("/system"))

    @routes.post("/system/compaction/pause", Scope.ADMIN)
    async def pause_compaction() -> Response:
        site.system.compaction.pause()
        return site.done("Paused", go=site.url("/system"))

    @routes.post("/system/compaction/stop", Scope.ADMIN)
    async def stop_compaction() -> Response:
        site.system.compaction.stop()
        return site.done("Stopped; what was freed stays free", go=site.url("/system"))

    @routes.post("/system/sessions/<digest>/end", Scope.ADMIN)
    async def end_session(digest: str) -> Response:
        await site.broker.sessions.end(digest)
        return site.done("The session has ended", go=site.url("/system") + "#sessions")

    @routes.post("/system/sessions/end", Scope.ADMIN)
    async def end_sessions() -> Response:
        count = await site.broker.sessions.end_all()
        return site.done(f"{format.plural(count, 'session')} ended", go=site.url("/login", ended="1"))

    @routes.get("/system/sessions/end", Scope.ADMIN)
    async def ask_end_sessions() -> Response:
        return site.part("system/end_sessions.html", count=len(site.broker.sessions.all()))

    return routes
