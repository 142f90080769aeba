"""The page of workers: who is there, by worker or by queue, and what one of them holds."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from quart import Response, request

from forq_trio.model import limits
from forq_trio.model.errors import ForqError, MessageNotFound
from forq_trio.model.messages.types import MessageInfo
from forq_trio.model.workers.types import HeldMessage, WorkerInfo
from forq_trio.ui.live.page_view import PageView
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer
from forq_trio.ui.worker_directory import SeenWorkers, within
from forq_trio.ui.worker_views import GROUP_NOTES, GROUPS, QueueLine, WorkerRow, busiest, held_words

ROWS_A_PAGE = 50
HOLDS_SHOWN = 10
"""How many messages of a worker are shown; the content of each is read."""

BUSY_NAMED = 3
"""How many queues whose slots are all busy the page names."""

_PAGE_MAX = 1_000
_TEXT_LENGTH_MAX = 128


class WantedWorkers(Struct, frozen=True):
    """The part of the list to show: by queue or worker, with a text in name, host or queue, and the page from 1."""

    q: str = ""
    by: str = ""
    page: int = 1

    def query(self, **changed: object) -> dict[str, object]:
        return {"q": self.q, "by": self.by, "page": self.page if self.page > 1 else "", **changed}


class ListedWorkers(Struct):
    """A page of the list: rows by worker, or lines by queue."""

    rows: Sequence[WorkerRow]
    lines: Sequence[QueueLine]
    found: int  # how many match
    groups: Mapping[str, int] = {}  # in each group

    @property
    def keys(self) -> list[str]:
        return [row.id for row in self.rows] + [line.queue for line in self.lines]


class HeldByWorker(Struct, frozen=True):
    """A message that a worker has in process. message: None if it is gone, or another worker has it."""

    queue: str
    held: HeldMessage
    attempts_max: int
    message: MessageInfo | None

    @property
    def line(self) -> str:
        """The first part of the content, in one line."""
        content = "" if self.message is None else self.message.content
        return " ".join(content[: limits.PREVIEW_LENGTH_MAX].split())


def read_wanted(args: Mapping[str, str]) -> WantedWorkers:
    page = args.get("page", "")
    number = int(page) if page.isascii() and page.isdigit() and len(page) <= len(str(_PAGE_MAX)) else 1
    by = "queue" if args.get("by") == "queue" else ""
    return WantedWorkers(args.get("q", "").strip()[:_TEXT_LENGTH_MAX], by, min(max(number, 1), _PAGE_MAX))


def listed(seen: SeenWorkers, wanted: WantedWorkers) -> ListedWorkers:
    """The page that is wanted, in its order."""
    start = (wanted.page - 1) * ROWS_A_PAGE
    page = slice(start, start + ROWS_A_PAGE)
    if wanted.by:
        names = sorted(name for name in seen.lines if wanted.q.lower() in name.lower())
        return ListedWorkers((), [seen.lines[name] for name in names[page]], len(names))
    rows = [row for row in seen.rows.values() if not wanted.q or row.matches(wanted.q)]
    rows.sort(key=lambda row: row.order)
    return ListedWorkers(rows[page], (), len(rows), Counter(row.group for row in rows))


async def _context(site: Site, viewer: Viewer, seen: SeenWorkers) -> dict[str, Any]:
    """What the head of the page shows."""
    now_ms = site.clock.now_ms()
    busy = [] if seen.verdict.level == "fine" else busiest(seen.lines.values(), now_ms)
    return {
        "seen": seen,
        "held_words": held_words(seen.totals, now_ms),
        "busy_queues": [(line, line.busy_for(now_ms)) for line in busy[:BUSY_NAMED]],
        "unnamed": unnamed((await site.summaries.of(viewer)).waiting, seen.lines.values()),
        "now_ms": now_ms,
    }


def unnamed(waiting: int, lines: Iterable[QueueLine]) -> int:
    """How many waiting consumers belong to no known worker: all but one for each worker and queue."""
    return max(0, waiting - sum(line.workers - line.silent for line in lines))


def workers_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part of the page. args: `rows` is what the page was made of, `seen` how many workers were known then."""
    wanted = read_wanted(args)
    given = args.get("seen", "")
    before = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else limits.WORKERS_MAX
    keys = site.row_lists.find(args.get("rows", ""))

    async def read() -> dict[str, Any]:
        nonlocal keys
        seen = await site.workers.seen(viewer)
        if keys is None:
            keys = listed(seen, wanted).keys
        return await _context(site, viewer, seen) | {
            "wanted": wanted,
            "live_keys": keys,
            "new_workers": max(0, seen.totals.workers - before),
        }

    return PageView(site, viewer, "workers/live.html", read)


async def holds_of(site: Site, info: WorkerInfo) -> tuple[list[HeldByWorker], int]:
    """The first messages that a worker holds, those for longest first, and how many it holds in all."""
    parts = info.report.queues
    reported = sorted(
        ((part.queue, held) for part in parts for held in part.holds),
        key=lambda each: (each[1].since, each[1].sequence),
    )
    shown = []
    for queue, held in reported[:HOLDS_SHOWN]:
        message = await _read(site, queue, held)
        most = site.broker.known.rules(queue).max_attempts
        if message is not None and message.max_attempts:
            most = message.max_attempts
        shown.append(HeldByWorker(queue, held, most, message))
    return shown, max(sum(part.busy for part in parts), len(reported))


async def _read(site: Site, queue: str, held: HeldMessage) -> MessageInfo | None:
    """The message, while it is in flight with the attempt that the worker reported."""
    try:
        message = await site.broker.message(queue, held.message_id)
    except ForqError:
        return None
    return message if message.status == "processing" and message.attempts == held.attempt else None


def workers_routes(site: Site) -> Routes:
    routes = Routes("workers", site)

    @routes.get("/workers", None)
    async def workers() -> Response:
        viewer = site.viewer
        wanted = read_wanted(request.args)
        seen = await site.workers.seen(viewer)
        context = await _context(site, viewer, seen)
        if not seen.totals.workers:
            live = site.url("/live/empty")
            return await site.page("workers/empty.html", "workers", live=live, api=site.api_url, **context)
        async with site.directory.slices.lock:
            found = listed(seen, wanted)
        rows = site.row_lists.keep(found.keys)
        live = site.url("/live/workers", **wanted.query(rows=rows, seen=seen.totals.workers))
        return await site.page(
            "workers/page.html",
            "workers",
            live=live,
            wanted=wanted,
            found=found,
            rows_a_page=ROWS_A_PAGE,
            groups=GROUPS,
            new_workers=0,
            notes=GROUP_NOTES,
            **context,
        )

    @routes.get("/workers/<worker>", None)
    async def worker(worker: str) -> Response:
        """What a worker holds."""
        found = site.broker.known_workers.find(worker)
        info = None if found is None else within(found, site.viewer)
        if info is None:
            raise MessageNotFound("this worker is gone")
        holds, total = await holds_of(site, info)
        return site.part("workers/holds.html", info=info, holds=holds, total=total)

    return routes
