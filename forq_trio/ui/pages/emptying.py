"""Purges a queue, or deletes an empty one. This cannot be undone, so the viewer has to type the queue's name."""

from typing import Any

from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import QueueNotEmpty, ServiceError
from forq_trio.ui.pages.queue import back_to, check_known
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site

_COUNT_SHARE_MAX = 0.01


def is_about(counted: str, count: int) -> bool:
    """Whether the number that the dialog named, as the form sends it, differs from `count` by at most 1 %."""
    if not counted.isascii() or not counted.isdigit() or len(counted) > 15:
        return False
    return abs(int(counted) - count) <= max(1, count) * _COUNT_SHARE_MAX


def emptying_routes(site: Site) -> Routes:
    routes = Routes("emptying", site)

    async def purge_dialog(queue: str, status: int = 200, error: str = "", typed: str = "") -> Response:
        counts = site.broker.known.counts_of(queue)
        context: dict[str, Any] = {"queue": queue, "counts": counts, "error": error, "typed": typed}
        return await site.dialog("queue/purge.html", f"Purge {queue}", status, **context)

    async def delete_dialog(queue: str, status: int = 200, error: str = "") -> Response:
        has_settings = bool(site.broker.known.settings().get(queue))
        return await site.dialog(
            "queue/delete.html",
            f"Delete {queue}",
            status,
            queue=queue,
            error=error,
            total=site.broker.known.counts_of(queue).total,
            has_settings=has_settings,
        )

    @routes.get("/queue/<queue>/purge", Scope.ADMIN)
    async def ask_purge(queue: str) -> Response:
        check_known(site, queue)
        return await purge_dialog(queue)

    @routes.post("/queue/<queue>/purge", Scope.ADMIN)
    async def purge(queue: str) -> Response:
        form = await request.form
        total = site.broker.known.counts_of(queue).total
        if form.get("name", "") != queue:
            return await purge_dialog(
                queue, 400, "This is not the name of the queue.", form.get("name", "")[:100]
            )
        if not is_about(form.get("count", ""), total):
            said = f"The queue holds {format.plural(total, 'message')} by now. Look at the numbers again."
            return await purge_dialog(queue, 400, said)
        try:
            site.purges.start(queue, site.viewer.name)
        except ServiceError as error:
            return await purge_dialog(queue, 503, format.sentence(error.message), queue)
        return site.done(f"Purging {format.plural(total, 'message')} of {queue}", go=back_to(site, queue))

    @routes.get("/queue/<queue>/delete", Scope.ADMIN)
    async def ask_delete(queue: str) -> Response:
        check_known(site, queue)
        return await delete_dialog(queue)

    @routes.post("/queue/<queue>/delete", Scope.ADMIN)
    async def delete(queue: str) -> Response:
        if (await request.form).get("name", "") != queue:
            return await delete_dialog(queue, 400, "This is not the name of the queue.")
        try:
            await site.broker.delete_queue(queue)
        except QueueNotEmpty:
            return await delete_dialog(queue, 400, "The queue is not empty any more.")
        return site.done(f"Deleted {queue}", go=site.url("/"))

    return routes
