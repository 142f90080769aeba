"""A bounded table of the names of queues that have a label, or a histogram, in /metrics.

The place of a queue that is gone is given to another one, but only when all places are taken. Until then its counters
are still shown, and continue if the queue is made again. The queue that has been gone for longest loses its place
first.
"""

from collections.abc import Callable, Container


class MetricPlaces:
    """Names that have a place. count: returns how much was counted for a name. leave: called with a name that loses its
    place.

    If something was counted for a queue after it was found gone, it was made again, and keeps its place.
    """

    def __init__(self, count: Callable[[str], int], leave: Callable[[str], None]) -> None:
        self._names: set[str] = set()
        self._gone: dict[str, int] = {}
        self._count = count
        self._leave = leave

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._names)

    def admit(self, name: str, places_max: int) -> bool:
        """Whether the name has a place, or gets one now."""
        if name in self._names:
            return True
        if len(self._names) >= places_max and not self._free():
            return False
        self._names.add(name)
        return True

    def keep(self, queues: Container[str]) -> None:
        """Note that all queues but these are gone, so that their places may be given to others."""
        gone = {name: self._count(name) for name in self._names if name not in queues}
        kept = {name: count for name, count in self._gone.items() if gone.get(name) == count}
        self._gone = kept | gone

    def _free(self) -> bool:
        while self._gone:
            name = next(iter(self._gone))
            if self._gone.pop(name) == self._count(name):
                self._names.remove(name)
                self._leave(name)
                return True
        return False
