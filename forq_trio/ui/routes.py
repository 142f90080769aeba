"""The routes of one part of the UI. Each must declare the rights that its viewer needs, so no check can be missing."""

from collections.abc import Awaitable, Callable
from functools import partial

from quart import Blueprint, Response

from forq_trio.model.access.types import Scope
from forq_trio.model.messages.types import check_queue_name
from forq_trio.ui.site import Site

Handler = Callable[..., Awaitable[Response]]


class Routes:
    """name: of the place; check: of the queue in a path, once its viewer is known to be allowed to."""

    def __init__(self, name: str, site: Site, check: Callable[[str], object] | None = None) -> None:
        self.blueprint = Blueprint(name, __name__)
        self._site = site
        self._check = check

    def get(self, path: str, scope: Scope | None) -> Callable[[Handler], Handler]:
        """Add a page, or a part of one.

        scope: what the viewer needs for the queue in the path, or without one for all queues; None: only a session.
        """
        return partial(self._add, "GET", path, scope)

    def post(self, path: str, scope: Scope | None) -> Callable[[Handler], Handler]:
        """Add an action; scope as in `get`."""
        return partial(self._add, "POST", path, scope)

    def _add(self, method: str, path: str, scope: Scope | None, handle: Handler) -> Handler:
        async def guarded(**names: str) -> Response:
            queue = names.get("queue")
            if queue is not None:
                check_queue_name(queue)
            if scope is not None:
                self._site.viewer.require(scope, queue)
            if queue is not None and self._check is not None:
                self._check(queue)
            return await handle(**names)

        self.blueprint.add_url_rule(path, f"{method} {path}", guarded, methods=[method])
        return handle
