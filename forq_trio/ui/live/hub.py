"""The live hub: renders what is being looked at, once for all who look at it, and hands the changes out.

Rules
- A view is rendered at most once a second, and only while somebody looks at it. All its subscribers get the same
  bytes.
- All of it together takes at most LIVE_SHARE_MAX of the event loop's time: what rendering took, and what sending is
  known to take, is paid for with a pause. So with many dashboards each is updated less often, and the queue does not
  notice.
- A subscriber that does not keep up gets the newest state instead of a backlog: nothing is queued for it.
- A view that cannot be rendered (the database is busy) keeps its last state, and is tried again.
"""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from time import perf_counter
from typing import Protocol

import trio

from forq_trio.model import limits
from forq_trio.model.errors import ForqError, ServiceError, Stopping
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.ui.cells import changed


class TooManyDashboards(ServiceError):
    """As many pages are open and live as may be at once"""


class View(Protocol):
    """A part of a page that is live."""

    async def refresh(self) -> None:
        """Read what `cells` needs, at most a few reads of the database. May raise a ForqError."""
        ...

    def cells(self) -> Mapping[str, str]:
        """The HTML of all cells by key."""
        ...


class _Watched:
    """A view that somebody looks at. history: the latest patches by number, so that a reader may skip some."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.readers = 0
        self.number = 0
        self.cells: Mapping[str, str] = {}
        self.patch = b""
        self.patched_from = 0
        self.updated = trio.Event()
        self.rendered_at = float("-inf")

    def update(self, cells: Mapping[str, str]) -> bool:
        """Take these cells; True if any of them has changed."""
        patch = changed(self.cells, cells)
        self.rendered_at = trio.current_time()
        if not patch:
            return False
        self.patched_from = self.number
        self.number += 1
        self.cells = cells
        self.patch = _encode(patch)
        updated, self.updated = self.updated, trio.Event()
        updated.set()
        return True

    def since(self, number: int) -> bytes:
        """What to send to a reader who has seen `number`."""
        return self.patch if number and number == self.patched_from else _encode(self.cells)


def _encode(cells: Mapping[str, str]) -> bytes:
    return json.dumps(cells, ensure_ascii=False, separators=(",", ":")).encode()


class LiveHub:
    """`run` is its task. Callers `follow` a view, or take its `state` once."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watched] = {}
        self._wanted = trio.Event()
        self._readers = 0
        self._closed = False

    @property
    def readers(self) -> int:
        """How many dashboards are open."""
        return self._readers

    async def run(self) -> None:
        """Render the views that are looked at, until cancelled."""
        while True:
            await self._wanted.wait()
            started = trio.current_time()
            spent = 0.0
            for watched in list(self._watched.values()):
                spent += await self._render(watched)
            pause = max(started + 1.0 - trio.current_time(), spent / limits.LIVE_SHARE_MAX, 0.05)
            await trio.sleep(pause)
            if not self._watched:
                self._wanted = trio.Event()

    async def _render(self, watched: _Watched) -> float:
        """Render a view and wake its readers; returns the seconds that this takes from the event loop."""
        try:
            await watched.view.refresh()
        except Stopping:
            return 0.0
        except ForqError as error:
            log(LogEvent.UI_VIEW_FAILED, error=str(error))
            return 0.0
        if not watched.readers:
            return 0.0
        started = perf_counter()
        has_changed = watched.update(watched.view.cells())
        spent = perf_counter() - started
        return spent + (watched.readers * limits.LIVE_PUSH_SECONDS if has_changed else 0.0)

    async def follow(self, key: str, make_view: Callable[[], View]) -> AsyncGenerator[bytes, None]:
        """Yield the state of a view, then each change of it, as JSON objects: HTML by the key of a cell.

        key: views with the same key are the same. Raises TooManyDashboards. Cancelled or closed, it ends.
        """
        watched = self._watched.get(key)
        if self._readers >= limits.LIVE_READERS_MAX:
            raise TooManyDashboards
        if watched is None:
            if len(self._watched) >= limits.LIVE_VIEWS_MAX:
                raise TooManyDashboards
            watched = self._watched[key] = _Watched(make_view())
        watched.readers += 1
        self._readers += 1
        self._wanted.set()
        seen = 0
        try:
            while not self._closed:
                updated = watched.updated
                if watched.number > seen:
                    data, seen = watched.since(seen), watched.number
                    yield data
                else:
                    await updated.wait()
        finally:
            watched.readers -= 1
            self._readers -= 1
            if not watched.readers:
                self._watched.pop(key, None)

    async def state(self, key: str, make_view: Callable[[], View]) -> bytes:
        """All cells of a view now: those that were just rendered, else rendered for this call."""
        watched = self._watched.get(key)
        if watched is not None and trio.current_time() - watched.rendered_at < 2.0:
            return _encode(watched.cells)
        view = make_view()
        await view.refresh()
        return _encode(view.cells())

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        for watched in self._watched.values():
            watched.updated.set()
