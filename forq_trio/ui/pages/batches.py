"""The list of message batches, the newest first: how far each is, its members by state, and what it has sent."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.message_batches.types import MessageBatch
from forq_trio.ui.live.page_view import PageView
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer

_NAME_LENGTH_MAX = 24
_HEAD, _TAIL = 10, 8
"""How much of a longer id is shown."""
_DEAD_SHARE_MIN = 2.0
_OUTCOMES = {
    "sent": ("fine", "all ended"),
    "nothing_to_send": ("fine", "all ended"),
    "unmet": ("attention", "not all done, nothing sent"),
    "refused": ("broken", "its queue took no message"),
    "expired": ("attention", "expired, nothing sent"),
    "abandoned": ("paused", "abandoned"),
}


class BatchRow(Struct, frozen=True):
    """A batch as the list shows it."""

    batch: MessageBatch
    level: str  # of its verdict
    said: str  # the verdict

    @property
    def name(self) -> str:
        """Its id, or the ends of a long one."""
        return _short(self.batch.id)

    @property
    def outer_name(self) -> str:
        """The same of the batch that has it as a member; "" without one."""
        return _short(self.batch.outer or "")

    @property
    def ended(self) -> int:
        """How many of its members have ended."""
        return self.batch.members - self.batch.left

    @property
    def ended_share(self) -> float:
        """The length of its bar, of 100."""
        return 100 * self.ended / max(self.batch.members, 1)

    @property
    def dead_share(self) -> float:
        """The length of the end of the bar that is for dead members; a single one of very many can be seen."""
        return max(100 * self.batch.dead / self.batch.members, _DEAD_SHARE_MIN) if self.batch.dead else 0

    @property
    def counts(self) -> str:
        """Its members by state, in words."""
        found = self.batch
        parts = {"left": found.left, "done": found.done, "dead": found.dead, "removed": found.removed}
        return " · ".join(
            f"{format.whole(count)} {word}"
            for word, count in parts.items()
            if count or word in ("left", "done")
        )


class ListedBatches(Struct, frozen=True):
    """A page of the list."""

    rows: list[BatchRow]
    next: int | None  # the `before` of the next page


def _short(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH_MAX else f"{name[:_HEAD]}…{name[-_TAIL:]}"


def row_of(batch: MessageBatch) -> BatchRow:
    """The row of a batch, with its verdict."""
    if batch.outcome is not None:
        level, said = _OUTCOMES[batch.outcome]
        if batch.dead and level == "fine":
            level, said = "attention", f"all ended, {format.whole(batch.dead)} dead"
    elif batch.dead:
        level, said = "attention", f"{format.whole(batch.dead)} dead"
    else:
        level, said = "fine", "open" if batch.state == "open" else "waits for its members"
    if batch.refused is not None and batch.outcome != "refused":
        level, said = "attention", "its queue takes no message now"
    return BatchRow(batch, level, said)


def read_before(args: Mapping[str, str]) -> int | None:
    """Where the page begins; None for the first."""
    given = args.get("before", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 16 else None


async def listed(site: Site, viewer: Viewer, before: int | None) -> ListedBatches:
    """A page of the batches that the viewer may see: those of its token, or all with the secret."""
    page = await site.broker.batches(before=before, limit=limits.MESSAGE_BATCHES_PAGE_DEFAULT)
    seen = [each for each in page.batches if viewer.token is None or each.made_by == viewer.token.name]
    return ListedBatches([row_of(each) for each in seen], page.next)


def headline(found: ListedBatches, before: int | None) -> str:
    """The answer in words. before: where the page begins; None for the first."""
    going = sum(row.batch.ended_at is None for row in found.rows)
    here = "" if found.next is None and before is None else " on this page"
    if not found.rows:
        return f"No batch{here}"
    if not going:
        return f"No batch{here} waits"
    return f"{format.plural(going, 'batch', 'batches')}{here} {'waits' if going == 1 else 'wait'} for members"


async def _context(site: Site, viewer: Viewer, before: int | None) -> dict[str, Any]:
    found = await listed(site, viewer, before)
    return {"found": found, "headline": headline(found, before), "now_ms": site.clock.now_ms()}


def batches_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part of the list; new batches come with a refresh."""
    before = read_before(args)
    return PageView(site, viewer, "batches/live.html", lambda: _context(site, viewer, before))


def batches_routes(site: Site) -> Routes:
    routes = Routes("batches", site)

    @routes.get("/batches", None)
    async def batches() -> Response:
        before = read_before(request.args)
        context = await _context(site, site.viewer, before)
        live = site.url("/live/batches", before=before or "")
        return await site.page("batches/page.html", "workers", live=live, before=before, **context)

    return routes
