"""Counts the newest dead letters of a queue by reason and by what their errors have in common, step by step.

Rules
- A step reads 10,000 messages, and is a request of its own, so that no request takes long. Two readers of a queue share
  a count.
- A complete count is used for GROUPS_SECONDS; then the next reader begins a new one. The same holds for a count that
  nobody has continued.
- At most GROUPS_QUEUES_MAX counts are stored, with at most ERROR_GROUPS_MAX groups; further groups are summed by
  reason.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TypeVar

import trio
from msgspec import Struct

from forq_trio.broker.broker import Broker
from forq_trio.model import limits
from forq_trio.model.dead_letters.searches import ErrorGroup
from forq_trio.model.fingerprints import fingerprint
from forq_trio.ui.workbench.filter import reason_words
from forq_trio.ui.workbench.search import SPAN

GROUPS_SECONDS = 10.0
GROUPS_QUEUES_MAX = 16
_SHOWN_MAX = 8

Key = tuple[str | None, str | None]
KeyT = TypeVar("KeyT")


class Group(Struct):
    """A row of the list: messages whose errors have the same fingerprint, or that have no error."""

    error: str | None  # one of the errors; None for messages without one
    count: int
    last_at: int
    errors: int = 1  # how many different errors there are at least
    is_exact: bool = True  # there are not more than `errors`
    link: bool = True  # False for a row that sums several groups, whose number `errors` then is

    @property
    def several(self) -> bool:
        return self.link and self.errors > 1

    @property
    def title(self) -> str | None:
        """What the errors have in common; the error itself if there is only one."""
        return fingerprint(self.error) if self.several and self.error else self.error

    def add(self, found: ErrorGroup) -> None:
        """Add further messages. Errors that are in one step only cannot be told from those in both."""
        self.count += found.count
        self.last_at = max(self.last_at, found.last_at)
        if (self.error, 1, 1) != (found.error, self.errors, found.errors) and found.errors:
            self.errors, self.is_exact = max(self.errors, found.errors, 2), False


class ReasonGroups(Struct):
    """The groups of one reason, the largest first."""

    reason: str | None
    words: str
    count: int
    groups: list[Group]


class Count:
    """The groups of one queue that are counted so far."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.searched = 0
        self.total = 0
        self.next_before: int | None = None
        self.complete = False
        self.lock = trio.Lock()
        self._groups: dict[Key, Group] = {}
        self._others: dict[str | None, tuple[int, int]] = {}

    async def step(self, broker: Broker, queue: str) -> None:
        """Count the next messages."""
        found = await broker.lists.error_groups(queue, before_sequence=self.next_before)
        self.searched += found.searched
        self.total = found.total
        self.next_before = found.next_before
        self.complete = found.next_before is None or self.searched >= SPAN
        for group in found.groups:
            known = self._groups.get(key := key_of(group.reason, group.error))
            if known is None:
                self._groups[key] = Group(group.error, group.count, group.last_at, group.errors)
            else:
                known.add(group)
        for group in found.others:
            _add(self._others, group.reason, group.count, group.last_at)
        for (reason, common), small in self._largest()[limits.ERROR_GROUPS_MAX :]:
            del self._groups[reason, common]
            _add(self._others, reason, small.count, small.last_at)

    def _largest(self) -> list[tuple[Key, Group]]:
        return sorted(self._groups.items(), key=lambda item: (-item[1].count, item[0][1] or ""))

    def reasons(self, chosen: Key | None = None) -> list[ReasonGroups]:
        """The groups by reason, the largest first. Small groups are summed, except the chosen one."""
        by_reason: dict[str | None, list[Group]] = {}
        for (reason, _), group in self._largest():
            by_reason.setdefault(reason, []).append(group)
        made = []
        for reason in by_reason.keys() | self._others.keys():
            groups = by_reason.get(reason, [])
            shown = groups[:_SHOWN_MAX]
            rest = groups[_SHOWN_MAX:]
            if chosen is not None and chosen[0] == reason:
                shown += [each for each in rest if key_of(reason, each.error) == chosen]
                rest = [each for each in rest if key_of(reason, each.error) != chosen]
            other, last_at = self._others.get(reason, (0, 0))
            if rest or other:
                last_at = max([last_at, *(each.last_at for each in rest)])
                summed = other + sum(each.count for each in rest)
                shown.append(Group(None, summed, last_at, 0 if other else len(rest), link=False))
            made.append(ReasonGroups(reason, reason_words(reason), sum(each.count for each in shown), shown))
        return sorted(made, key=lambda each: (-each.count, each.words))


def key_of(reason: str | None, error: str | None) -> Key:
    """The key of a group: the reason, and the fingerprint of its errors."""
    return reason, fingerprint(error) if error else None


def _add(sums: dict[KeyT, tuple[int, int]], key: KeyT, more: int, last_at: int) -> None:
    count, before = sums.get(key, (0, 0))
    sums[key] = count + more, max(before, last_at)


def largest(reasons: Iterable[ReasonGroups]) -> int:
    """The count of the largest group: the others' bars are shares of it."""
    return max((group.count for each in reasons for group in each.groups), default=1)


class Groups:
    """The counts of the queues that were shown last."""

    def __init__(self, broker: Broker, now: Callable[[], float] = trio.current_time) -> None:
        self._broker = broker
        self._now = now
        self._counts: OrderedDict[str, Count] = OrderedDict()

    async def next(self, queue: str) -> Count:
        """The count of a queue, continued by a step unless it is complete and recent."""
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
        """Drop the count of a queue, because messages were moved or deleted."""
        self._counts.pop(queue, None)
