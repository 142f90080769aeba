"""Slots: how many messages a queue's handler, and the worker, may have in process."""

from collections.abc import Callable

import anyio


class Slots:
    """The slots of one queue, of which `most` may be busy, and those of the worker if it has a bound of its own.

    weight: its share of the worker's slots while several queues want more than there are.
    """

    def __init__(self, most: int, shared: "SharedSlots | None" = None, weight: float = 1) -> None:
        self.most = most
        self.weight = weight
        self.busy = 0
        self.waits = False
        self.changed = anyio.Event()
        self.freed = anyio.Event()
        self._shared = shared
        if shared is not None:
            shared.members.append(self)

    @property
    def free(self) -> int:
        """How many could be taken now."""
        own = self.most - self.busy
        return own if self._shared is None else min(own, self._shared.free_for(self))

    async def take(self, wanted: int) -> int:
        """Take 1 to `wanted` slots, as soon as one is free. Cancelled: none is taken."""
        self.waits = True
        try:
            while self.free <= 0:
                await self.changed.wait()
        finally:
            self.waits = False
        taken = min(wanted, self.free)
        self.busy += taken
        if self._shared is not None:
            self._shared.changed()  # another queue that waits may be next now
        return taken

    def worth_asking(self, *, full: bool) -> int:
        """How many slots to ask for next. full: whether the last claim found as many messages as it asked for.

        A queue that waits for messages holds no more than one of the slots that it shares with others.
        """
        return self.most if full or self._shared is None else 1

    async def one_freed(self) -> None:
        """Wait until a slot is given back."""
        if self.freed.is_set():  # else others wait for it, too
            self.freed = anyio.Event()
        await self.freed.wait()

    def release(self, number: int) -> None:
        """Free this many slots."""
        self.busy -= number
        self.freed.set()
        if self._shared is None:
            self.notify()
        else:
            self._shared.changed()

    def notify(self) -> None:
        """Wake the tasks that wait for a slot, to check again."""
        if not self.waits:
            return
        self.changed.set()
        self.changed = anyio.Event()


class SharedSlots:
    """The slots of a worker, shared by its queues according to their weights.

    A free slot goes to the waiting queue that has the fewest for its weight. A queue that waits for messages has one.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.members: list[Slots] = []

    def free_for(self, slots: Slots) -> int:
        """How many slots this queue may take now: all, or one if others wait, none with fewer for its weight."""
        free = self.most - sum(each.busy for each in self.members)
        waiting = [
            each for each in self.members if each.waits and each is not slots and each.busy < each.most
        ]
        if free <= 0 or not waiting:
            return max(free, 0)
        share: Callable[[Slots], float] = lambda each: each.busy / each.weight  # noqa: E731
        return 1 if share(slots) <= min(map(share, waiting)) else 0

    def changed(self) -> None:
        for each in self.members:
            if each.waits:
                each.notify()
