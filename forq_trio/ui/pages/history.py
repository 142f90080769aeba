"""The history of a queue: its finished messages, one of them, and the purge of all."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.errors import ForqError, ServiceError
from forq_trio.model.logs.history import OUTCOMES, Outcome
from forq_trio.ui import content
from forq_trio.ui.attributes import attribute_context
from forq_trio.ui.event_timeline import event_timeline
from forq_trio.ui.pages.emptying import is_about
from forq_trio.ui.pages.message import attachment, events_of
from forq_trio.ui.pages.message_list import marked
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site
from forq_trio.ui.workbench.filter import read_number

WORDS: Mapping[Outcome, str] = {
    "acked": "Acked",
    "discarded": "Discarded",
    "expired": "Expired",
    "deleted": "Deleted",
    "cancelled": "Cancelled",
}
MARKS: Mapping[Outcome, str] = {
    "acked": "acked",
    "discarded": "failed",
    "expired": "delayed",
    "deleted": "dead",
    "cancelled": "dead",
}
"""How messages ended: in words, and the mark beside them."""
RESULT_LENGTH_MAX = 2_000
"""How many characters of a result are shown."""


class HistoryQuery(Struct, frozen=True):
    """What the page lists."""

    outcome: Outcome | None  # None for any
    q: str  # text of the content
    before: int  # where the page begins, 0: newest

    def query(self, **changes: object) -> dict[str, object]:
        """The parameters of the URL, with changes; a changed list begins with its newest message."""
        return {"outcome": self.outcome or "", "q": self.q, **changes}


def read_wanted(args: Mapping[str, str]) -> HistoryQuery:
    """The parameters of a request; invalid ones are ignored."""
    outcomes: dict[str, Outcome] = {outcome: outcome for outcome in OUTCOMES}
    return HistoryQuery(
        outcomes.get(args.get("outcome", "")),
        args.get("q", "")[: limits.SEARCH_TEXT_LENGTH_MAX],
        read_number(args, "before", limits.SEQUENCE_MAX),
    )


def preview(text: str, wanted: str) -> str:
    """The beginning of a content, or the surroundings of the text of a search if that comes later."""
    start = text.find(wanted) if wanted else 0
    start = 0 if start < limits.PREVIEW_MATCH_LATE else start - limits.PREVIEW_LEAD
    return ("…" if start else "") + text[start : start + limits.PREVIEW_LENGTH_MAX]


def history_routes(site: Site) -> Routes:
    routes = Routes("history", site)
    base = "/queue/<queue>/history"

    @routes.get(base, Scope.BROWSE)
    async def page(queue: str) -> Response:
        viewer = site.viewer
        wanted = read_wanted(request.args)
        found = await site.broker.lists.find_finished(
            queue, MessageFilter(text=wanted.q or None), outcome=wanted.outcome, before=wanted.before or None
        )
        return await site.page(
            "history/page.html",
            "queues",
            queue=queue,
            wanted=wanted,
            found=found,
            words=WORDS,
            marks=MARKS,
            preview=lambda message: marked(preview(message.content, wanted.q), wanted.q),
            is_on=site.broker.known.log("history").enabled,
            kept=site.broker.known.history_of(queue),
            purge=site.history_purges.of(queue),
            may_administer=viewer.may(Scope.ADMIN, queue),
        )

    @routes.get(f"{base}/message/<message_id>", Scope.BROWSE)
    async def message(queue: str, message_id: str) -> Response:
        """A page; with part=content only the content in another view."""
        found = await site.broker.finished_message(queue, message_id)
        text = request.args.get("q", "")[: limits.SEARCH_TEXT_LENGTH_MAX]
        context: dict[str, Any] = {
            "message": found,
            "path": f"/queue/{queue}/history/message/{found.id}",
            "shown": content.show(found.content, request.args.get("view", ""), text),
            "views": content.VIEWS,
            "text": text,
            "in_place": False,
            "damaged_attributes": False,
            **attribute_context(found.attributes),
            "may_redrive": site.viewer.may(Scope.REDRIVE, queue),
        }
        if request.args.get("part") == "content":
            return site.part("message/content.html", **context)
        context["steps"] = event_timeline(await events_of(site, site.viewer, queue, found.id))
        context["forgotten"] = False
        context["result_length_max"] = RESULT_LENGTH_MAX
        return await site.page("history/message.html", "queues", words=WORDS, marks=MARKS, **context)

    @routes.get(f"{base}/message/<message_id>/content", Scope.BROWSE)
    async def file(queue: str, message_id: str) -> Response:
        """The content as a file, as it was sent."""
        found = await site.broker.finished_message(queue, message_id)
        return attachment(
            content.to_bytes(found.content), "application/octet-stream", f"message-{found.sequence}.bin"
        )

    @routes.post(f"{base}/message/<message_id>/requeue", Scope.REDRIVE)
    async def requeue(queue: str, message_id: str) -> Response:
        """Send the message again, as a new one."""
        found = await site.broker.finished_message(queue, message_id)
        (sent,) = await site.broker.requeue_finished(queue, [message_id])
        if isinstance(sent, ForqError):
            raise sent
        target = found.source_queue or queue
        href = site.url(f"/queue/{target}/message/{sent.id}")
        return site.done(f"Sent to {target} again", link=f"Message {format.whole(sent.sequence)}", href=href)

    _add_purge(routes, site, base)
    return routes


def _add_purge(routes: Routes, site: Site, base: str) -> None:
    """Add the purge of a queue's history: the queue's name has to be typed."""

    async def dialog(queue: str, status: int = 200, error: str = "") -> Response:
        count = site.broker.known.history_of(queue).messages
        title = f"Purge the history of {queue}"
        return await site.dialog("history/purge.html", title, status, queue=queue, count=count, error=error)

    @routes.get(f"{base}/purge", Scope.ADMIN)
    async def ask(queue: str) -> Response:
        return await dialog(queue)

    @routes.post(f"{base}/purge", Scope.ADMIN)
    async def purge(queue: str) -> Response:
        form = await request.form
        count = site.broker.known.history_of(queue).messages
        if form.get("name", "") != queue:
            return await dialog(queue, 400, "This is not the name of the queue.")
        if not is_about(form.get("count", ""), count):
            said = f"The history has {format.plural(count, 'message')} by now. Look at the number again."
            return await dialog(queue, 400, said)
        try:
            site.history_purges.start(queue, site.viewer.name)
        except ServiceError as error:
            return await dialog(queue, 503, format.sentence(error.message))
        toast = f"Purging {format.plural(count, 'message')} from the history of {queue}"
        return site.done(toast, go=site.url(f"/queue/{queue}/history"))
