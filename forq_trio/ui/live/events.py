"""The live updates over HTTP: as server-sent events, and as JSON for browsers that events do not reach."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from quart import Blueprint, Response, request

from forq_trio.model.errors import MessageNotFound
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.ui.live.hub import TooManyDashboards, View
from forq_trio.ui.live.places import Places
from forq_trio.ui.live.views import VIEWS
from forq_trio.ui.site import Site

_RETRY_MS = 3_000


def live_routes(site: Site) -> Blueprint:
    blueprint = Blueprint("live", __name__)
    places = Places()

    def view_of(name: str) -> tuple[str, "View"]:
        make = VIEWS.get(name)
        if make is None:
            raise MessageNotFound("there is no such view")
        view = make(site, site.viewer, request.args)
        return f"{site.viewer.sees} {name} {request.query_string.decode('latin-1')}", view

    @blueprint.get("/live/<name>")
    async def events(name: str) -> Response:
        """The changes of a view, as server-sent events."""
        key, view = view_of(name)
        session_id = site.viewer.session_id
        site.hub.check_place(key)
        places.check(session_id, key)

        async def stream() -> AsyncIterator[bytes]:
            yield b"retry: %d\n\n" % _RETRY_MS
            try:
                with places.stream(session_id, key):
                    async with aclosing(site.hub.follow(key, lambda: view)) as changes:
                        async for data in changes:
                            if not site.sessions.holds(session_id):
                                return
                            yield b"data: " + (data or b"{}") + b"\n\n"
            except TooManyDashboards:
                pass  # one that came between the check and the stream; the browser tries again
            except Exception as error:
                log(LogEvent.UI_REQUEST_FAILED, exception=error, reference="", path=request.path)

        response = Response(stream(), content_type="text/event-stream")
        response.timeout = None
        response.headers["X-Accel-Buffering"] = "no"
        return response

    @blueprint.get("/live/poll/<name>")
    async def poll(name: str) -> Response:
        """All cells of a view, once."""
        key, view = view_of(name)
        places.poll(site.viewer.session_id, key)
        data = await site.hub.state(key, lambda: view)
        return Response(data, content_type="application/json")

    return blueprint
