"""Bind a queue to a table of an application, and unbind it."""

from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.types import check_queue_name
from forq_trio.ui.pages.queue import back_to
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site


def binding_routes(site: Site) -> Routes:
    routes = Routes("binding", site)

    async def dialog(queue: str, table: str = "", status: int = 200, error: str = "") -> Response:
        return await site.dialog(
            "queue/bind.html", f"Bind {queue} to a table", status, queue=queue, typed=table, error=error
        )

    @routes.get("/queue/<queue>/bind", Scope.ADMIN)
    async def ask_bind(queue: str) -> Response:
        check_queue_name(queue)
        site.viewer.require(Scope.ADMIN)
        return await dialog(queue)

    @routes.post("/queue/<queue>/bind", Scope.ADMIN)
    async def bind(queue: str) -> Response:
        """Bind a queue. As in the API, a token for some queues only is refused: it could read any table in this way."""
        site.viewer.require(Scope.ADMIN)
        table = (await request.form).get("table", "")
        try:
            await site.broker.bind(queue, table)
        except ForqError as error:
            shown = table[: limits.PGQ_NAME_BYTES_MAX + 1]
            return await dialog(queue, shown, 400, format.sentence(error.message))
        return site.done(f"Bound {queue} to its table", go=site.url(f"/queue/{queue}"))

    @routes.get("/queue/<queue>/unbind", Scope.ADMIN)
    async def ask_unbind(queue: str) -> Response:
        bound = await site.broker.bound_table(queue)
        return await site.dialog("queue/unbind.html", f"Unbind {queue}", queue=queue, table=bound.table)

    @routes.post("/queue/<queue>/unbind", Scope.ADMIN)
    async def unbind(queue: str) -> Response:
        await site.broker.unbind(queue)
        return site.done(f"Unbound {queue}. The table stays as it is.", go=back_to(site, queue))

    return routes
