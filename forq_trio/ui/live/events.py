"""Live updates over HTTP: as server-sent events, and as JSON for browsers to which events cannot get through."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial

import trio
from quart import Blueprint, Response, request
from quart.wrappers.response import ResponseBody

from forq_trio.model import limits
from forq_trio.model.errors import MessageNotFound
from forq_trio.ui.live.hub import TooManyDashboards, View, ViewReader
from forq_trio.ui.live.places import Places
from forq_trio.ui.loop_share import ACCOUNT
from forq_trio.ui.pages import VIEWS
from forq_trio.ui.site import Site

_RETRY_MS = 3_000


class EventStream(ResponseBody):
    """The body of an answer that goes on until the session ends, the server stops or the client leaves.

    follow: the reader of the view, while it is entered; place: the session's place for it; holds: False once the
    session has ended.
    """

    def __init__(
        self,
        follow: Callable[[], AbstractContextManager[ViewReader]],
        place: Callable[[], AbstractContextManager[None]],
        holds: Callable[[], bool],
    ) -> None:
        self._follow = follow
        self._place = place
        self._holds = holds
        self._entered = ExitStack()
        self._reader: ViewReader | None = None
        self._begun = False

    async def __aenter__(self) -> "EventStream":
        await trio.lowlevel.checkpoint()
        # If the place was taken since it was checked, the stream is empty and the browser tries again.
        with suppress(TooManyDashboards):
            self._entered.enter_context(self._place())
            self._reader = self._entered.enter_context(self._follow())
        account = ACCOUNT.get()
        if account is not None:
            account.share = None  # from now on the hub pays, from the share of all live updates
        return self

    async def __aexit__(self, *_: object) -> None:
        self._entered.close()

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> bytes:
        if not self._begun:
            self._begun = True
            await trio.lowlevel.checkpoint()
            return b"retry: %d\n\n" % _RETRY_MS
        data = None if self._reader is None else await self._reader.next()
        if data is None or not self._holds():
            raise StopAsyncIteration
        return b"data: " + (data or b"{}") + b"\n\n"


def live_routes(site: Site) -> Blueprint:
    blueprint = Blueprint("live", __name__)
    of_sessions, of_tokens = Places(), Places(limits.LIVE_VIEWS_A_TOKEN_MAX)

    def owners() -> list[tuple[Places, str]]:
        """The session, and the token if there is one, whose places a view of this request takes."""
        viewer = site.viewer
        token = [] if viewer.token is None else [(of_tokens, viewer.token.digest.hex)]
        return [(of_sessions, viewer.session_id), *token]

    @contextmanager
    def stream_places(taken: list[tuple[Places, str]], key: str) -> Iterator[None]:
        with ExitStack() as entered:
            for places, owner in taken:
                entered.enter_context(places.stream(owner, key))
            yield

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
        taken = owners()
        for places, owner in taken:
            places.check(owner, key)
        follows = partial(site.hub.follow, key, lambda: view)
        stream = EventStream(
            follows, partial(stream_places, taken, key), partial(site.sessions.holds, session_id)
        )
        response = Response(stream, content_type="text/event-stream")
        response.timeout = None
        response.headers["X-Accel-Buffering"] = "no"
        return response

    @blueprint.get("/live/poll/<name>")
    async def poll(name: str) -> Response:
        """All cells of a view, once."""
        key, view = view_of(name)
        for places, owner in owners():
            places.poll(owner, key)
        data = await site.hub.state(key, lambda: view)
        return Response(data, content_type="application/json")

    return blueprint
