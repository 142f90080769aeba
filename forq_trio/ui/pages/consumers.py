"""Releases the lease of a pipeline's consumer."""

from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model.access.types import Scope
from forq_trio.model.consumers.bodies import ConsumerInfo
from forq_trio.model.errors import ConsumerNotFound, MessageNotFound
from forq_trio.ui.pages.queue import back_to
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site


def consumer_routes(site: Site) -> Routes:
    routes = Routes("consumers", site)

    async def find(queue: str, name: str) -> ConsumerInfo:
        try:
            return await site.broker.consumer(queue, name)
        except ConsumerNotFound:
            raise MessageNotFound(f"there is no consumer called {name}") from None

    @routes.get("/queue/<queue>/consumers/<name>/release", Scope.CONSUME)
    async def ask_release(queue: str, name: str) -> Response:
        consumer = await find(queue, name)
        return await site.dialog("queue/release.html", f"Release {name}", consumer=consumer)

    @routes.post("/queue/<queue>/consumers/<name>/release", Scope.CONSUME)
    async def release(queue: str, name: str) -> Response:
        """Release the lease of the number that the dialog named."""
        consumer = await find(queue, name)
        if (await request.form).get("number", "") != str(consumer.leased):
            return site.done("The consumer has gone on to another lease", go=back_to(site, queue))
        await site.broker.release_consumer(queue, name)
        said = f"Gave back {format.plural(consumer.open_messages, 'message')} of {name}"
        return site.done(said, go=back_to(site, queue))

    return routes
