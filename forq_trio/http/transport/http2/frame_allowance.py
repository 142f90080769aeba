"""A bound on frames that cost us a little each and the client almost nothing.

It counts every frame that is not part of a request (pings, settings, resets, window updates, priorities, GOAWAY, empty,
unknown and late frames), continuations, errors that reset a stream, and requests that are refused by their head. A
request without a right key counts as HTTP2_ALLOWANCE_FRAMES_PER_KEYLESS frames. Requests that are served are not
counted; HTTP2_STREAMS_MAX run at a time.

A client's allowance grows with time and with every answer that it gets: a normal connection never uses it up, even in a
week, and a flood uses it up within a second.
"""

from forq_trio.http.transport.http2.frames import ENHANCE_YOUR_CALM, ConnectionFault
from forq_trio.model import limits


class FrameAllowance:
    """How many of the counted frames one connection may still send. now: trio's clock."""

    __slots__ = ("_frames", "_since")

    def __init__(self, now: float) -> None:
        self._frames = float(limits.HTTP2_ALLOWANCE_FRAMES_MAX)
        self._since = now

    def spend(self, now: float, frames: int = 1) -> None:
        """Count `frames`, or something that costs as much. Raises ConnectionFault when the allowance is used up."""
        self._frames -= frames
        if self._frames < 0:
            self._frames += (now - self._since) * limits.HTTP2_ALLOWANCE_FRAMES_PER_SECOND
            self._frames = min(self._frames, limits.HTTP2_ALLOWANCE_FRAMES_MAX)
            self._since = now
            if self._frames < 0:
                raise ConnectionFault(ENHANCE_YOUR_CALM)

    def earn(self, frames: int) -> None:
        """Allow more frames, because the client has got an answer or a part of one."""
        self._frames = min(self._frames + frames, limits.HTTP2_ALLOWANCE_FRAMES_MAX)
