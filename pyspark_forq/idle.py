"""Pauses for a stream without new data: Spark asks a hundred times a second, and each time costs a request."""

import time

PAUSE_SECONDS_MIN = 0.01
PAUSE_SECONDS_MAX = 0.5


class Idle:
    """Waits longer each time that there was nothing to read."""

    def __init__(self) -> None:
        self._pause = PAUSE_SECONDS_MIN

    def nothing(self) -> None:
        """There was nothing to read: wait."""
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, PAUSE_SECONDS_MAX)

    def something(self) -> None:
        """There was something to read: reset the next wait to the shortest."""
        self._pause = PAUSE_SECONDS_MIN
