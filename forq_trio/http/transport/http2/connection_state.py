"""The state of an HTTP/2 connection beside its streams: deadlines, its end, and the client's settings. No I/O."""

from math import inf

from forq_trio.http.transport.http2 import frames
from forq_trio.http.transport.http2.block_reader import BlockReader


class Deadlines:
    """When something takes too long, on trio's clock."""

    __slots__ = ("header", "idle_seconds", "idle_since", "next")

    def __init__(self, now: float, idle_seconds: float) -> None:
        self.idle_seconds = idle_seconds
        self.idle_since = now  # when the last handler ended
        self.header = inf  # when a frame, or a header block, that has begun has to be whole
        self.next = now + idle_seconds  # no later than the earliest of all

    def add(self, deadline: float) -> None:
        """Make `next` no later than `deadline`."""
        self.next = min(self.next, deadline)

    def note_end_of_handler(self, now: float) -> None:
        self.idle_since = now
        self.add(now + self.idle_seconds)

    def note_idle(self, now: float) -> bool:
        """Note that every request is answered; returns True if that has been so for too long."""
        if now >= self.idle_since + self.idle_seconds:
            return True
        self.add(self.idle_since + self.idle_seconds)
        return False

    def time_headers(
        self, blocks: BlockReader, kind: int, bytes_left: int, *, advanced: bool, at: float
    ) -> None:
        """Set the deadline by which an unfinished header block, or frame other than DATA, has to be whole.

        Bytes that trickle in do not extend it. kind, bytes_left: of the frame that is not whole yet. advanced: whole
        frames were read before it. at: when it has to be whole if it has just begun.
        """
        if not blocks.open_stream and (not bytes_left or kind == frames.DATA):
            self.header = inf
        elif self.header == inf or (advanced and not blocks.open_stream):
            self.header = at
            self.add(at)


class ConnectionEnd:
    """Whether and when the connection ends."""

    __slots__ = ("_last_served", "is_near", "when_idle")

    def __init__(self) -> None:
        self.is_near = False  # running requests are served, and no new ones
        self.when_idle = False  # the connection ends once all requests are answered, and at least one was
        self._last_served = frames.STREAM_ID_MAX

    def goaway(self, highest: int, code: int) -> bytes:
        """The frame that tells the client which requests were not served and may be sent again on another connection.

        highest: the last stream that was served; a later GOAWAY never names a higher one than an earlier one did.
        """
        self._last_served = min(self._last_served, highest)
        return frames.goaway_frame(self._last_served, code)


class ClientSettings:
    """The settings that the client has sent."""

    __slots__ = ("are_known", "window")

    def __init__(self) -> None:
        self.are_known = False  # the client has to send them in its first frame
        self.window = frames.WINDOW_BYTES_DEFAULT  # how many bytes of DATA it first accepts on each stream
