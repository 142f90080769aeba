"""Dead letters by reason and error, in the newest of a queue: counted step by step, and kept for a moment for all.

Rules
- A step looks at 10,000 messages, and each is a request of its own, so that none takes long. Two readers of a queue go
  on with the same count.
- A count that is complete holds for GROUPS_SECONDS; then the next reader begins another one. So does one that nobody
  went on with.
- At most GROUPS_QUEUES_MAX counts are kept, of at most ERROR_GROUPS_MAX groups; what is beyond is summed by reason.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TypeVar

import trio
from msgspec import Struct

from forq_trio.broker.broker import Broker
from forq_trio.model import limits
from forq_trio.model.messages import ErrorGroup
from forq_trio.ui.workbench.filter import reason_words
from forq_trio.ui.workbench.search import SPAN

GROUPS_SECONDS = 10.0
GROUPS_QUEUES_MAX = 16
_SHOWN_MAX = 8

Key = tuple[str | None, str | None]
KeyT = TypeVar("KeyT")


class Group(Struct):
    """A row of the list. link: False for one that stands for several errors."""

    error: str | None
    count: int
    last_at: int
    link: bool = True
    errors: int = 1


class Reason(Struct):
    """The groups of one reason, the largest first."""

    reason: str | None
    words: str
    count: int
    groups: list[Group]


class Count:
    """The groups of one queue, as far as they are counted."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.searched = 0
        self.total = 0
        self.next_before: int | None = None
        self.complete = False
        self.lock = trio.Lock()
        self._groups: dict[Key, tuple[int, int]] = {}
        self._others: dict[str | None, tuple[int, int]] = {}

    async def step(self, broker: Broker, queue: str) -> None:
        """Look at the next messages."""
        found = await broker.error_groups(queue, before_sequence=self.next_before)
        self.searched += found.searched
        self.total = found.total
        self.next_before = found.next_before
        self.complete = found.next_before is None or self.searched >= SPAN
        for group in found.groups:
            _add(self._groups, (group.reason, group.error), group)
        for group in found.others:
            _add(self._others, group.reason, group)
        for (reason, error), (count, last_at) in self._largest()[limits.ERROR_GROUPS_MAX :]:
            del self._groups[reason, error]
            _add(self._others, reason, ErrorGroup(reason, None, count, last_at))

    def _largest(self) -> list[tuple[Key, tuple[int, int]]]:
        return sorted(self._groups.items(), key=lambda item: (-item[1][0], item[0][1] or ""))

    def reasons(self, chosen: Key | None = None) -> list[Reason]:
        """The groups by reason, the largest first; small ones are summed, but not the one that is chosen."""
        by_reason: dict[str | None, list[Group]] = {}
        for (reason, error), (count, last_at) in self._largest():
            by_reason.setdefault(reason, []).append(Group(error, count, last_at))
        made = []
        for reason in by_reason.keys() | self._others.keys():
            groups = by_reason.get(reason, [])
            shown = groups[:_SHOWN_MAX]
            rest = groups[_SHOWN_MAX:]
            if chosen is not None and chosen[0] == reason:
                shown += [each for each in rest if each.error == chosen[1]]
                rest = [each for each in rest if each.error != chosen[1]]
            other, last_at = self._others.get(reason, (0, 0))
            if rest or other:
                last_at = max([last_at, *(each.last_at for each in rest)])
                summed = other + sum(each.count for each in rest)
                shown.append(Group(None, summed, last_at, link=False, errors=0 if other else len(rest)))
            made.append(Reason(reason, reason_words(reason), sum(each.count for each in shown), shown))
        return sorted(made, key=lambda each: (-each.count, each.words))


def _add(sums: dict[KeyT, tuple[int, int]], key: KeyT, group: ErrorGroup) -> None:
    count, last_at = sums.get(key, (0, 0))
    sums[key] = count + group.count, max(last_at, group.last_at)


def largest(reasons: Iterable[Reason]) -> int:
    """The count of the largest group: the others' bars are shares of it."""
    return max((group.count for each in reasons for group in each.groups), default=1)


class Groups:
    """The counts of the queues that were looked at last."""

    def __init__(self, broker: Broker, now: Callable[[], float] = trio.current_time) -> None:
        self._broker = broker
        self._now = now
        self._counts: OrderedDict[str, Count] = OrderedDict()

    async def next(self, queue: str) -> Count:
        """The count of a queue, one step further unless it is complete and holds."""
        count = self._counts.get(queue)
        if count is None or self._now() - count.started > GROUPS_SECONDS:
            count = self._counts[queue] = Count(self._now())
        self._counts.move_to_end(queue)
        if len(self._counts) > GROUPS_QUEUES_MAX:
            self._counts.popitem(last=False)
        async with count.lock:
            if not count.complete:
                await count.step(self._broker, queue)
                count.started = self._now()
        return count

    def forget(self, queue: str) -> None:
        """Messages of a queue were moved or deleted: count anew."""
        self._counts.pop(queue, None)
