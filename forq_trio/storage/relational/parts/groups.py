"""Grouped queues: their names, their rounds, and the groups whose held messages may become ready."""

from collections.abc import Iterable
from itertools import chain, islice
from typing import Any

from forq_trio.model import limits
from forq_trio.storage.relational.parts.counts import Counts
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.statements import Query

Group = tuple[str, str]
"""Queue and group."""
Round = tuple[str, int]
"""Queue and priority."""

ShippedGrouped = tuple[list[str], dict[str, int | None]]
ShippedFreed = tuple[list[Group], list[Group], list[Group]]
ShippedRounds = list[tuple[Round, int]]


class Grouped(Part):
    """The queues that got messages with a group, and those whose held messages all become ready.

    It is stored with the counts of a queue, so every change also touches those.
    """

    shipped = ShippedGrouped

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._queues: set[str] = set()  # as of the last commit
        self._new: set[str] = set()  # that this batch made grouped
        self._cursors: dict[str, int] = {}  # by queue, the last held message that became ready
        self._changed: dict[str, int | None] = {}  # the cursors that this batch moved; None: all are ready

    def __contains__(self, queue: str) -> bool:
        """True if messages with a group were sent to a queue while it was first in, first out."""
        return queue in self._new or (queue in self._queues and queue not in self._counts.forgotten)

    def add(self, queue: str) -> None:
        self._new.add(queue)
        self._counts.touch(queue)

    def unhold_cursor(self, queue: str) -> int | None:
        """The sequence number up to which all held messages became ready; None if they stay held."""
        return self._changed[queue] if queue in self._changed else self._cursors.get(queue)

    def move_unhold_cursor(self, queue: str, last: int | None) -> None:
        """Note the sequence number up to which held messages became ready; 0 to begin, None to end."""
        self._changed[queue] = last
        self._counts.touch(queue)

    def queues_unholding(self) -> list[str]:
        """The queues whose held messages all become ready, by name."""
        if not self._cursors and not self._changed:
            return []
        queues = {*self._cursors, *self._changed}
        return sorted(queue for queue in queues if self.unhold_cursor(queue) is not None)

    def forget(self, queue: str) -> None:
        """Drop what is known about a queue that is forgotten."""
        self._new.discard(queue)
        self._changed[queue] = None

    def load(self, query: Query, path: str) -> None:
        for queue, grouped, cursor, *_ in query("load_counts"):
            if grouped:
                self._queues.add(queue)
            if cursor is not None:
                self._cursors[queue] = cursor

    def copy(self) -> Any:
        return self._new.copy(), self._changed.copy()

    def restore(self, copied: Any) -> None:
        self._new, self._changed = copied

    def adopt(self) -> None:
        for queue in self._counts.forgotten:
            self._queues.discard(queue)
            self._cursors.pop(queue, None)
        self._queues |= self._new
        for queue, last in self._changed.items():
            if last is None:
                self._cursors.pop(queue, None)
            else:
                self._cursors[queue] = last
        self.discard()

    def discard(self) -> None:
        if self._new:
            self._new = set()
        if self._changed:
            self._changed = {}

    def ship(self) -> ShippedGrouped | None:
        return (list(self._new), self._changed) if self._new or self._changed else None

    def take_over(self, shipped: ShippedGrouped) -> None:
        new, self._changed = shipped
        self._new = set(new)


class FreedGroups(Part):
    """The groups that may be below their limit again, so that their held messages may become ready.

    A batch takes some of those that earlier batches left, and then of those that it freed itself.
    """

    shipped = ShippedFreed

    def __init__(self, counts: Counts, grouped: Grouped) -> None:
        self._counts, self._grouped = counts, grouped
        self._committed: dict[Group, None] = {}  # in the order in which they are taken
        self._freed: set[Group] = set()  # by this batch
        self._taken: dict[Group, None] = {}  # of `_committed`, by this batch
        self._left: dict[Group, None] = {}  # for the next batch

    def __bool__(self) -> bool:
        """True if the next batch has groups to take, as of the last command."""
        return bool(self._freed or self._left or len(self._committed) > len(self._taken))

    def add(self, group: Group) -> None:
        """Note that a group may be below its limit again."""
        self._freed.add(group)

    def update(self, groups: Iterable[Group]) -> None:
        """`add` for many groups."""
        self._freed.update(groups)

    def take(self, most: int) -> list[Group]:
        """The first groups: those that earlier batches left, then those freed so far. The next batch has the rest."""
        left = self._committed
        if not left and not self._freed:
            return []
        freed = [group for group in sorted(self._freed) if group not in left]
        self._freed.clear()
        groups = list(islice(chain(left, freed), most))
        self._taken = dict.fromkeys(groups[: len(left)])
        self._left = dict.fromkeys(freed[max(most - len(left), 0) :])
        return groups

    def leave(self, group: Group) -> None:
        """Leave a group that was taken to the next batch."""
        self._left[group] = None

    def is_left(self, group: Group) -> bool:
        """True if the held messages of a freed group are left to the next batch."""
        left = self._committed
        if group in self._left:
            return True
        return len(left) > len(self._taken) and group in left and group not in self._taken

    def load(self, query: Query, path: str) -> None:
        """Take all groups with held messages: if the process crashed after the batch that freed a group, nothing else
        would make its held messages ready."""
        for queue, counts in self._counts.committed.items():
            if counts.held and self._grouped.unhold_cursor(queue) is None:
                groups = query("held_groups", queue)
                self._committed |= dict.fromkeys((queue, group_id) for (group_id,) in groups)

    def copy(self) -> Any:
        return self._freed.copy(), self._taken.copy(), self._left.copy()

    def restore(self, copied: Any) -> None:
        self._freed, self._taken, self._left = copied

    def adopt(self) -> None:
        for group in self._taken:
            self._committed.pop(group, None)
        if self._left or self._freed:
            self._committed |= self._left | dict.fromkeys(sorted(self._freed))
        self.discard()

    def discard(self) -> None:
        if self._freed:
            self._freed = set()
        if self._taken or self._left:
            self._taken, self._left = {}, {}

    def ship(self) -> ShippedFreed | None:
        if not (self._freed or self._taken or self._left):
            return None
        return sorted(self._freed), list(self._taken), list(self._left)

    def take_over(self, shipped: ShippedFreed) -> None:
        freed, taken, left = shipped
        self._freed, self._taken, self._left = set(freed), dict.fromkeys(taken), dict.fromkeys(left)


class Rounds(Part):
    """The round that each grouped queue has reached: a new message of a group joins the round behind its last one.

    After a start the rounds are not known, and begin again with the first ready message (`rules.group_position`).
    """

    shipped = ShippedRounds

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._committed: dict[Round, int] = {}  # the highest position that was claimed
        self._reached: dict[Round, int] = {}  # the same, of this batch

    def of(self, queue: str, priority: int) -> int | None:
        """The round that a grouped queue has reached in this priority, None if nothing was claimed since the start."""
        reached = self._reached.get((queue, priority))
        return self._committed.get((queue, priority)) if reached is None else reached

    def reach(self, queue: str, priority: int, position: int) -> None:
        """Note that a message of a grouped queue, at this position, is claimed."""
        reached = self.of(queue, priority)
        if reached is None or position > reached:
            self._reached[queue, priority] = position

    def copy(self) -> Any:
        return self._reached.copy()

    def restore(self, copied: Any) -> None:
        self._reached = copied

    def adopt(self) -> None:
        if self._counts.forgotten:
            for gone in [each for each in self._committed if each[0] in self._counts.forgotten]:
                del self._committed[gone]
        if self._reached:
            if len(self._committed) + len(self._reached) > limits.ROUNDS_CACHED_MAX:
                self._committed.clear()
            self._committed.update(self._reached)
        self.discard()

    def discard(self) -> None:
        if self._reached:
            self._reached = {}

    def ship(self) -> ShippedRounds | None:
        return list(self._reached.items()) or None

    def take_over(self, shipped: ShippedRounds) -> None:
        self._reached = dict(shipped)
