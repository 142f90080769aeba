"""The values of a queue's counters at each of the last minutes, from which follows what has happened since."""

from operator import sub

from forq_trio.monitor.rings import NOTHING, Ring, Values

MARKED = ("sent", "delivered", "acked", "ended", "lost", "refused", "offered", "created", "ready", "total")
"""The columns: counters, then messages."""
COUNTERS = 8
_MARKS = 61


class Window:
    """How much happened in a queue within the last minutes."""

    __slots__ = ("acked", "created", "delivered", "ended", "lost", "offered", "refused", "seconds", "sent")

    def __init__(self, now: Values, then: Values | None, seconds: float) -> None:
        counts = now if then is None else list(map(sub, now, then))
        counters = map(int, counts[:COUNTERS])
        self.sent, self.delivered, self.acked, self.ended, self.lost, self.refused, *offers = counters
        self.offered, self.created = offers  # created: offers that were stored
        self.seconds = max(seconds, 1.0)  # the length of the window


class Marks:
    """The marks of one queue, of which there is one a minute."""

    __slots__ = ("_first", "_ring", "_started_at")

    def __init__(self, started_at: float, first: Values) -> None:
        """first: what the first mark has: no counts, and the messages that there were when the queue was found."""
        self._ring = Ring(_MARKS, len(MARKED), "d")
        self._started_at = started_at
        self._first = first

    def put(self, minute: int, snapshot: Values) -> bool:
        """Mark this minute with the counters' values; False if it has a mark already."""
        if minute <= self._ring.last:
            return False
        self._ring.put(minute, self._first if self._ring.last == NOTHING else snapshot)
        return True

    def window(self, minutes: int, now: float, snapshot: Values) -> Window:
        """What happened since the mark of `minutes` ago, or since the first one. now, snapshot: of the last sample."""
        minute = self._marked(minutes)
        return Window(snapshot, self._ring.get(minute), now - max(minute * 60, self._started_at))

    def before(self, minutes: int) -> tuple[int, int] | None:
        """How many messages were ready `minutes` ago, and how many there were; None if it was not watched then."""
        if self._marked(minutes) > self._ring.last - minutes:
            return None
        return self.at(minutes)

    def at(self, minutes: int) -> tuple[int, int]:
        """Like `before`; if the queue was not watched then, the numbers when it was first watched."""
        found = self._ring.get(self._marked(minutes))
        return (0, 0) if found is None else (int(found[COUNTERS]), int(found[COUNTERS + 1]))

    def _marked(self, minutes: int) -> int:
        """The first marked minute of the last `minutes`."""
        for minute in range(self._ring.last - minutes, self._ring.last):
            found = self._ring.get(minute)
            if found is not None and found[0] == found[0]:  # NaN: there was no sample
                return minute
        return self._ring.last
