"""A bound on frames that do no work: pings, settings, resets, window updates, empty and unknown frames.

Each of them costs us a little and the client almost nothing. So a client has an allowance of them, which grows with
time and with every answer that it gets: a connection of a week that does honest work never uses it up, and a flood has
used it up within a second.
"""

from forq_trio.http.transport.http2.frames import ENHANCE_YOUR_CALM, ConnectionFault
from forq_trio.model import limits


class Allowance:
    """How many such frames one connection may send yet. now: trio's clock."""

    __slots__ = ("_frames", "_since")

    def __init__(self, now: float) -> None:
        self._frames = float(limits.HTTP2_IDLE_FRAMES_MAX)
        self._since = now

    def spend(self, now: float) -> None:
        """Count a frame. Raises ConnectionFault when the allowance is used up."""
        self._frames -= 1
        if self._frames < 0:
            self._frames += (now - self._since) * limits.HTTP2_IDLE_FRAMES_PER_SECOND
            self._frames = min(self._frames, limits.HTTP2_IDLE_FRAMES_MAX)
            self._since = now
            if self._frames < 0:
                raise ConnectionFault(ENHANCE_YOUR_CALM)

    def earn(self, frames: int) -> None:
        """Allow more of them, because the client has got an answer or a part of one."""
        self._frames = min(self._frames + frames, limits.HTTP2_IDLE_FRAMES_MAX)
