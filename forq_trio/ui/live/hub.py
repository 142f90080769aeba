"""The live hub: renders each open view once for all its readers, and sends them the changes.

Rules
- A view is rendered at most once a second, and only while somebody looks at it. All its readers get the same bytes.
- All live updates together take at most LIVE_SHARE_MAX of the event loop's time. A pause pays for the loop's work while
  views were read and rendered, and for the known cost of sending. So with many dashboards each is updated less often,
  and queues are not slowed down.
- A reader that does not keep up gets the newest state instead of a backlog: nothing is queued for it.
- A view that fails (the database is busy, a template is wrong) keeps its last state and is tried again; the others are
  not affected. It is logged when it begins to fail.
- Readers that poll share what is rendered for those that follow; a view is rendered for LIVE_POLL_SECONDS after a poll.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import thread_time
from typing import Protocol

import trio

from forq_trio.model import limits
from forq_trio.model.errors import ForqError, ServiceError, Stopping
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.ui.cells import changed


class TooManyDashboards(ServiceError):
    """As many pages are open and live as may be at once"""


class View(Protocol):
    """A live part of a page."""

    async def refresh(self) -> None:
        """Read the data for `cells`, with a few reads of the database at most. May raise a ForqError."""
        ...

    def cells(self) -> Mapping[str, str]:
        """The HTML of all cells by key."""
        ...


class _Watched:
    """A view that has readers.

    number: that of its state, 0 before the first state. patch: the changes from state `patched_from` to this one.
    updated: set when there is a new state. polled_until: until when the next poll is expected, on trio's clock. fails:
    whether it failed the last time.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.readers = 0
        self.polled_until = float("-inf")
        self.number = 0
        self.cells: Mapping[str, str] = {}
        self.patch = b""
        self.patched_from = 0
        self.updated = trio.Event()
        self.fails = False

    @property
    def wanted(self) -> bool:
        return self.readers > 0 or trio.current_time() < self.polled_until

    def update(self, cells: Mapping[str, str]) -> bool:
        """Take these cells; True if any of them has changed."""
        patch = changed(self.cells, cells)
        if not patch and self.number:
            return False
        self.patched_from = self.number
        self.number += 1
        self.cells = cells
        self.patch = _encode(patch)
        updated, self.updated = self.updated, trio.Event()
        updated.set()
        return True

    def since(self, number: int) -> bytes:
        """What to send to a reader that has state `number`: the patch, or everything."""
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
        """Render the views that have readers, until cancelled."""
        while True:
            await self._wanted.wait()
            started = trio.current_time()
            spent = 0.0
            for watched in list(self._watched.values()):
                spent += await self._render(watched)
            self._forget_unwanted()
            rest = started + limits.LIVE_SECONDS_MIN - trio.current_time()
            owed = min(spent / limits.LIVE_SHARE_MAX, limits.LIVE_SECONDS_MAX)
            await trio.sleep(max(rest, owed, limits.LIVE_SECONDS_MIN / 20))
            if not self._watched:
                self._wanted = trio.Event()

    async def _render(self, watched: _Watched) -> float:
        """Render a view and wake its readers; returns the seconds that this took from the event loop."""
        started = thread_time()
        has_changed = False
        try:
            await watched.view.refresh()
            if watched.wanted:
                has_changed = watched.update(watched.view.cells())
            watched.fails = False
        except Stopping:
            pass
        except Exception as error:
            if not watched.fails:
                is_fault = not isinstance(error, ForqError)
                text = f"{type(error).__name__}: {error}" if is_fault else str(error)
                log(LogEvent.UI_VIEW_FAILED, error=text, exception=error if is_fault else None)
            watched.fails = True
        return thread_time() - started + (watched.readers * limits.LIVE_PUSH_SECONDS if has_changed else 0.0)

    def _forget_unwanted(self) -> None:
        for key in [key for key, watched in self._watched.items() if not watched.wanted]:
            del self._watched[key]

    def check_place(self, key: str) -> None:
        """Raise TooManyDashboards if there are already as many readers, or views, as allowed."""
        if self._readers >= limits.LIVE_READERS_MAX:
            raise TooManyDashboards
        if key not in self._watched and len(self._watched) >= limits.LIVE_VIEWS_MAX:
            raise TooManyDashboards

    def _watch(self, key: str, make_view: Callable[[], View]) -> _Watched:
        self.check_place(key)
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = _Watched(make_view())
        return watched

    @contextmanager
    def follow(self, key: str, make_view: Callable[[], View]) -> Iterator["ViewReader"]:
        """Yield a reader of a view. key: identifies the view; views with the same key are shared.

        Raises TooManyDashboards.
        """
        watched = self._watch(key, make_view)
        watched.readers += 1
        self._readers += 1
        self._wanted.set()
        try:
            yield ViewReader(self, watched)
        finally:
            watched.readers -= 1
            self._readers -= 1
            if not watched.wanted and self._watched.get(key) is watched:
                del self._watched[key]

    @property
    def closed(self) -> bool:
        return self._closed

    async def state(self, key: str, make_view: Callable[[], View]) -> bytes:
        """All cells of a view, as they were rendered last; waits for the first time. Raises TooManyDashboards."""
        watched = self._watch(key, make_view)
        watched.polled_until = trio.current_time() + limits.LIVE_POLL_SECONDS
        self._wanted.set()
        while not watched.number and not self._closed:
            await watched.updated.wait()
        await trio.lowlevel.checkpoint()
        return _encode(watched.cells)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        for watched in self._watched.values():
            watched.updated.set()


class ViewReader:
    """Follows a view: each `next` is its state, or what has changed since the one before."""

    def __init__(self, hub: LiveHub, watched: _Watched) -> None:
        self._hub = hub
        self._watched = watched
        self._seen = 0

    async def next(self) -> bytes | None:
        """Wait for a change, as a JSON object of HTML by the key of a cell; None once the hub is closed.

        Returns b"" if nothing has changed for LIVE_BEAT_SECONDS, so that the connection is used. Cancelled, nothing is
        lost.
        """
        watched = self._watched
        with trio.move_on_after(limits.LIVE_BEAT_SECONDS):
            while watched.number <= self._seen and not self._hub.closed:
                await watched.updated.wait()
        await trio.lowlevel.checkpoint()
        if self._hub.closed:
            return None
        if watched.number <= self._seen:
            return b""
        data, self._seen = watched.since(self._seen), watched.number
        return data
