"""What a connection of HTTP/2 has beside its streams: deadlines, its end, and what the client told. No I/O."""

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
        """Something has to be done then."""
        self.next = min(self.next, deadline)

    def note_end_of_handler(self, now: float) -> None:
        self.idle_since = now
        self.add(now + self.idle_seconds)

    def note_idle(self, now: float) -> bool:
        """Everything is answered; True if that has been so for too long."""
        if now >= self.idle_since + self.idle_seconds:
            return True
        self.add(self.idle_since + self.idle_seconds)
        return False

    def time_headers(
        self, blocks: BlockReader, kind: int, bytes_left: int, *, advanced: bool, at: float
    ) -> None:
        """A header block, and a frame that is not DATA, has to be whole in time, however it trickles in.

        kind, bytes_left: of the frame that is not whole yet. advanced: whole frames were read before it. at: when it
        has to be whole if it has just begun.
        """
        if not blocks.open_stream and (not bytes_left or kind == frames.DATA):
            self.header = inf
        elif self.header == inf or (advanced and not blocks.open_stream):
            self.header = at
            self.add(at)


class ConnectionEnd:
    """Whether more requests are served."""

    __slots__ = ("_last_served", "is_near", "when_idle")

    def __init__(self) -> None:
        self.is_near = False  # what is under way is served, and nothing more
        self.when_idle = False  # it ends once all is answered, after at least one request
        self._last_served = frames.STREAM_ID_MAX

    def goaway(self, highest: int, code: int) -> bytes:
        """Say which streams were not served, and may be sent again elsewhere: never more than was said before."""
        self._last_served = min(self._last_served, highest)
        return frames.goaway_frame(self._last_served, code)


class ClientSettings:
    """What the client has told of itself."""

    __slots__ = ("are_known", "window")

    def __init__(self) -> None:
        self.are_known = False  # its first frame has to tell them
        self.window = frames.WINDOW_BYTES_DEFAULT  # of each stream at its beginning, for what we send
