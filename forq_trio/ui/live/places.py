"""Bounds how many live views each session, and each access token, has open."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from forq_trio.model import limits
from forq_trio.ui.live.hub import TooManyDashboards


class Places:
    """Bounds the different views of a session; how many of its pages show the same view does not matter.

    views_max: how many it may have. Another object does the same for tokens.
    """

    def __init__(self, views_max: int = limits.LIVE_VIEWS_A_SESSION_MAX) -> None:
        self._views_max = views_max
        self._until: dict[tuple[str, str], float] = {}
        self._streams: Counter[tuple[str, str]] = Counter()

    def check(self, session_id: str, key: str) -> None:
        """Raise TooManyDashboards if the session may not look at one more view."""
        now = trio.current_time()
        self._until = {place: until for place, until in self._until.items() if until > now}
        if (session_id, key) not in self._until:
            taken = sum(session == session_id for session, _ in self._until)
            if taken >= self._views_max:
                raise TooManyDashboards

    def poll(self, session_id: str, key: str) -> None:
        """Take a place until the time by which the next poll must come. Raises TooManyDashboards."""
        self.check(session_id, key)
        until = trio.current_time() + limits.LIVE_POLL_SECONDS
        self._until[session_id, key] = max(until, self._until.get((session_id, key), until))

    @contextmanager
    def stream(self, session_id: str, key: str) -> Iterator[None]:
        """Take a place while the body runs. Raises TooManyDashboards."""
        self.check(session_id, key)
        place = session_id, key
        self._streams[place] += 1
        self._until[place] = float("inf")
        try:
            yield
        finally:
            self._streams[place] -= 1
            if not self._streams[place]:
                del self._streams[place], self._until[place]
