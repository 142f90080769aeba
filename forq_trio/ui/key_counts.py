"""How many messages with a key queues have: counted by their index, at most every few seconds for each queue."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping

import trio
from msgspec import Struct

from forq_trio.model import limits

AGE_SECONDS_MAX = 5.0


class KeyCount(Struct, frozen=True):
    """The messages with a key, by kind, of the first KEYS_COUNTED_MAX that were counted."""

    kinds: Mapping[str, int] = {}

    @property
    def total(self) -> int:
        return sum(self.kinds.values())

    @property
    def is_all(self) -> bool:
        """Whether all messages with a key were counted."""
        return self.total < limits.KEYS_COUNTED_MAX


class KeyCounts:
    """The counts of queues that were shown recently. read: counts the keys of a queue by kind."""

    def __init__(self, read: Callable[[str], Awaitable[Mapping[str, int]]]) -> None:
        self._read = read
        self._counted: OrderedDict[str, tuple[float, KeyCount]] = OrderedDict()

    async def of(self, queue: str, *, fresh: bool = False) -> KeyCount:
        """The count of a queue, a few seconds old at most. Raises what reads raise."""
        now = trio.current_time()
        at, found = self._counted.get(queue, (float("-inf"), KeyCount()))
        if fresh or now - at > AGE_SECONDS_MAX:
            found = KeyCount(await self._read(queue))
            self._counted[queue] = now, found
            self._counted.move_to_end(queue)
            if len(self._counted) > limits.KEY_COUNTS_MAX:
                self._counted.popitem(last=False)
        return found
