"""A queue that serves callers round-robin: one item of each in turn, however many items a caller has waiting."""

from collections import OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class RoundRobin(Generic[T]):
    """Items in the order in which to serve them. Does not wait."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def count(self, caller: str) -> int:
        """How many items of the caller wait."""
        return len(self._waiting.get(caller, ()))

    def add(self, caller: str, item: T) -> None:
        """Put the item behind the caller's others; a caller who had none goes behind all callers."""
        self._waiting.setdefault(caller, deque()).append(item)

    def remove(self, caller: str, item: T) -> None:
        """Take out an item that waits."""
        items = self._waiting[caller]
        items.remove(item)
        if not items:
            del self._waiting[caller]

    def next(self) -> T:
        """Take out the first item of the first caller, who then goes behind all others."""
        caller, items = next(iter(self._waiting.items()))
        item = items.popleft()
        if items:
            self._waiting.move_to_end(caller)
        else:
            del self._waiting[caller]
        return item
