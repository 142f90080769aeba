"""A queue's limits on the messages of one group: how many are in process, its rate, and whether it keeps an order.

- With strict groups a claim gets messages of a group only if no other claim has one of them, and no earlier one of them
  is delayed. It may get several of a group, in their order.
- A claim that meets a message above a limit sets it to HELD and goes on. The message leaves the claim index, so no
  later claim meets it again. Held messages become ready in one step (unhold.py), after the commands, before the claims.
- A group is freed when one of its messages is no longer in process, or stops being ready without having been claimed
  (it expired, was moved or removed). Then held messages of the group become ready, in claim order, as many as the limit
  permits besides those in process. A batch processes at most DUE_BATCH_MAX groups: first those that earlier batches
  left, then the others by name. A group with further messages to make ready is left to the next batch.
- A group without a token is freed as soon as it has one; in the next batch if it already has tokens by then and is
  below its limit. Before a claim delivers a message of a group with a rate, or of a group that was left to the next
  batch, held messages of the group that come first and may be delivered by now become ready.
- When a limit was changed or removed, all messages that are held at that time become ready, in order of sequence
  numbers, queue by queue by name. Messages that claims hold again in the meantime stay held.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from forq_trio.model import limits
from forq_trio.model.messages.types import Status
from forq_trio.storage.allowance import Allowance, Step, within
from forq_trio.storage.relational.operations.rate_limit import look_up_buckets, tokens
from forq_trio.storage.relational.parts.groups import Group
from forq_trio.storage.relational.row import GROUP_ID, SEQ, Place, ReadyRow, place_of
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.transitions import HELD_BACK, UNHELD


class HeldRow(NamedTuple):
    """A held message."""

    seq: int
    bytes: int
    place: Place


class GroupLimit:
    """How many messages of each group a queue may deliver in a batch, by its group limit and its rate.

    in_flight_max, rate: None where there is none.
    """

    def __init__(self, tx: Transaction, queue: str) -> None:
        self.queue = queue
        self.rules = rules = tx.rules(queue)
        self.in_flight_max = rules.group_in_flight_max
        self.rate = rules.group_rate
        self.strict = rules.strict_groups
        self._tx = tx
        self._is_unholding = tx.grouped.unhold_cursor(queue) is not None
        self._left: dict[str, int] = {}  # how many more of each group may be delivered
        # with strict groups: those of which the present claim has messages, and whether it was given more of them
        self._claimed_here: dict[str, bool] = {}
        self._claimed_elsewhere: dict[str, bool] = {}  # whether another claim has some of a group
        self._delayed: dict[str, Place | None] = {}  # the places of their first delayed messages
        self._held: dict[
            str, tuple[int, Sequence[HeldRow]]
        ] = {}  # how many were read, and those that there are

    @property
    def has_no_limit(self) -> bool:
        """True if groups are not limited."""
        return not self.rules.limits_groups

    @property
    def has_no_limit_nor_held(self) -> bool:
        """True if groups are not limited, and none still waits for its held messages to become ready."""
        return self.has_no_limit and not self._is_unholding

    def begin_claim(self) -> None:
        """From now on messages are for the next claim."""
        for group_id in self._claimed_here:
            self._claimed_elsewhere[group_id] = True
        self._claimed_here.clear()

    def admits(self, row: ReadyRow) -> bool:
        """Whether this message may be delivered as far as its group is concerned. If so, it is counted."""
        group_id = row[GROUP_ID]
        if self.has_no_limit or not group_id:
            return True
        if self.strict and not self._is_open(group_id, row):
            return False
        left = self._left_now(group_id)
        self._left[group_id] = max(0, left - 1)
        if left > 0 and self.strict:
            self._claimed_here.setdefault(group_id, False)
        return left > 0

    def _is_open(self, group_id: str, row: ReadyRow) -> bool:
        """With strict groups: whether neither another claim nor an earlier message is in the way."""
        if group_id not in self._claimed_here and self.is_claimed_elsewhere(group_id):
            return False
        delayed = self._first_delayed(group_id)
        try:
            return delayed is None or place_of(row) < delayed
        except TypeError:
            return True  # a damaged message, which fails later, when it is delivered

    def is_claimed_elsewhere(self, group_id: str) -> bool:
        """Whether another claim has messages of this group."""
        claimed = self._claimed_elsewhere.get(group_id)
        if claimed is None:
            claimed = self._claimed_elsewhere[group_id] = self._in_process(group_id, 1) > 0
        return claimed

    def _first_delayed(self, group_id: str) -> Place | None:
        if group_id not in self._delayed:
            found = self._tx.query("first_delayed_of_group", self.queue, group_id)
            self._delayed[group_id] = (*found[0],) if found else None
        return self._delayed[group_id]

    def _left_now(self, group_id: str) -> int:
        left = self._left.get(group_id)
        if left is None:
            left = self._left[group_id] = self.left(group_id, limits.RATE_COUNT_MAX)
        return left

    def look_up(self, rows: Sequence[ReadyRow], count: int) -> None:
        """Read at once what `admits` and `held_before` need for these rows, of which up to `count` are delivered."""
        tx = self._tx
        if self.has_no_limit or not tx.connection.is_distant:
            return
        new = [group_id for group_id in dict.fromkeys(row[GROUP_ID] for row in rows) if group_id]
        new = [group_id for group_id in new if group_id not in self._left]
        if not new:
            return
        if self.strict:
            self._look_up_strict(new)
        look_up_groups(tx, [(self.queue, group_id) for group_id in new])
        for group_id in new:
            self._left_now(group_id)
        if self.rate is not None and tx.counts.of(self.queue).held:
            most = {group_id: min(self._left[group_id], count) for group_id in new if self._left[group_id]}
            bindings = [(self.queue, group_id, left) for group_id, left in most.items()]
            for (group_id, left), held in zip(most.items(), _held_each(tx, bindings), strict=True):
                self._held[group_id] = left, held

    def _look_up_strict(self, group_ids: Sequence[str]) -> None:
        """What `_is_open` needs, read at once."""
        tx, queue = self._tx, self.queue
        counts = tx.query_each("count_in_process", [(queue, each, 1) for each in group_ids])
        delayed = tx.query_each("first_delayed_of_group", [(queue, each) for each in group_ids])
        for group_id, ((count,),), found in zip(group_ids, counts, delayed, strict=True):
            self._claimed_elsewhere.setdefault(group_id, count > 0)
            self._delayed.setdefault(group_id, (*found[0],) if found else None)

    def held_before(self, row: ReadyRow, most: int) -> Sequence[HeldRow]:
        """At most `most` held messages of its group that have to be delivered before this ready one.

        There may be some, because a group is freed with its first token: if no claim took that, more tokens have come,
        and perhaps more messages. And not all held messages become ready in the batch that frees their group or changes
        the limit.
        """
        group_id = row[GROUP_ID]
        if not group_id or not self._tx.counts.of(self.queue).held:
            return ()
        is_behind = self._is_unholding or self._tx.freed.is_left((self.queue, group_id))
        if self.rate is None and not is_behind and not self.strict:
            return ()
        if self.strict and group_id not in self._claimed_here and self.is_claimed_elsewhere(group_id):
            return ()
        left = min(self._left_now(group_id), most)
        if left <= 0:
            return ()
        read, held = self._held.get(group_id, (0, ()))
        if read < left:
            held = read_held(self._tx, "select_held_of_group", self.queue, group_id, left)
            self._held[group_id] = left, held
        try:
            return [
                each for each in self._not_behind_delayed(group_id, held[:left]) if each.place < place_of(row)
            ]
        except TypeError:
            return ()  # a damaged message, which fails later, when it is delivered

    def unhold_behind(self, row: ReadyRow, most: int, allowance: Allowance) -> bool:
        """With strict groups: make held messages ready that may go to the claim that gets this message, too.

        Returns whether there were some. most: how many more it takes. Once for each group of a claim.
        """
        group_id = row[GROUP_ID]
        if not self.strict or not group_id or self._claimed_here[group_id] or most <= 0:
            return False
        self._claimed_here[group_id] = True
        left = min(self._left_now(group_id), most) if self._tx.counts.of(self.queue).held else 0
        if left <= 0:
            return False
        held = read_held(self._tx, "select_held_of_group", self.queue, group_id, left)
        self._held.clear()
        return bool(make_ready(self._tx, self.queue, self._not_behind_delayed(group_id, held), allowance))

    def _not_behind_delayed(self, group_id: str, held: Sequence[HeldRow]) -> Sequence[HeldRow]:
        """Those of these messages for which, with strict groups, no earlier one is delayed."""
        delayed = self._first_delayed(group_id) if self.strict else None
        return held if delayed is None else [each for each in held if each.place < delayed]

    def unhold_before(self, held: Sequence[HeldRow], allowance: Allowance) -> None:
        """Make the messages that `held_before` found ready, as the allowance permits; the next batch does the rest."""
        self._tx.wakes.next.add(self.queue)
        make_ready(self._tx, self.queue, held, allowance)
        self._held.clear()

    def left(self, group_id: str, most: int) -> int:
        """How many messages of a group may be delivered now, counted up to `most`."""
        group = self.queue, group_id
        if self.in_flight_max is not None:
            most = min(most, self.in_flight_max - self._in_process(group_id, self.in_flight_max))
        return most if self.rate is None else min(most, tokens(self._tx, group, self.rate))

    def _in_process(self, group_id: str, bound: int) -> int:
        known = self._tx.lookups.in_process.pop((self.queue, group_id), None)
        return count_in_process(self._tx, (self.queue, group_id), bound) if known is None else known

    def to_unhold(self, group_id: str) -> tuple[Sequence[HeldRow], int]:
        """The held messages of a freed group that may become ready, and how many of the group may."""
        free = self.left(group_id, limits.DUE_BATCH_MAX + 1)
        if self.strict:  # the claim that gets it gets those behind it, too
            free = 0 if self.is_claimed_elsewhere(group_id) else min(free, 1)
        held = read_held(self._tx, "select_held_of_group", self.queue, group_id, free) if free > 0 else ()
        return self._not_behind_delayed(group_id, held), free

    def set_aside(self, row: ReadyRow, error: Exception) -> None:
        """Set aside a message that was admitted but cannot be delivered; another of its group may take its place."""
        allowance = self._tx.allowances.of(Step.SET_ASIDE)
        allowance.charge(1 if self._tx.set_aside.add(self.queue, row[SEQ], error) else allowance.messages, 0)
        if row[GROUP_ID]:
            self._tx.freed.add((self.queue, row[GROUP_ID]))

    def hold(self, rows: Sequence[ReadyRow]) -> None:
        """Set these ready messages to held."""
        if not rows:
            return
        tx = self._tx
        tx.run("hold", [(tx.now_ms, row[SEQ]) for row in rows])
        tx.transition(HELD_BACK, self.queue, Status.READY, Status.HELD, rows)
        self.note_limited(*(row[GROUP_ID] for row in rows))

    def note_limited(self, *group_ids: str | None) -> None:
        """Note that messages of these groups may be held because a token is missing."""
        if self.rate is not None:
            self._tx.rates.limited.update((self.queue, group_id) for group_id in group_ids if group_id)


def count_in_process(tx: Transaction, group: Group, bound: int) -> int:
    """How many messages of a group are processing, counted up to `bound`."""
    ((count,),) = tx.query("count_in_process", *group, bound)
    return int(count)


def look_up_groups(tx: Transaction, groups: Sequence[Group]) -> None:
    """Read at once how many messages of these groups are processing, and their tokens, if they are limited."""
    rules = {queue: tx.rules(queue) for queue in {queue for queue, _ in groups}}
    counted = [
        (*group, limit) for group in groups if (limit := rules[group[0]].group_in_flight_max) is not None
    ]
    for bindings, ((count,),) in zip(counted, tx.query_each("count_in_process", counted), strict=True):
        tx.lookups.in_process[bindings[0], bindings[1]] = count
    look_up_buckets(
        tx, [(group, rate) for group in groups if (rate := rules[group[0]].group_rate) is not None]
    )


def read_held(tx: Transaction, statement: str, *bindings: Any) -> list[HeldRow]:
    """The held messages that a statement finds."""
    return _held_rows(tx.query(statement, *bindings))


def _held_each(tx: Transaction, bindings: Sequence[tuple[Any, ...]]) -> list[list[HeldRow]]:
    return [_held_rows(rows) for rows in tx.query_each("select_held_of_group", bindings)]


def _held_rows(rows: Sequence[Any]) -> list[HeldRow]:
    return [HeldRow(seq, size, (*place,)) for seq, size, *place in rows]


def make_ready(
    tx: Transaction, queue: str, held: Sequence[HeldRow], allowance: Allowance
) -> Sequence[HeldRow]:
    """Make the first of these held messages ready, as many as the allowance permits; returns those."""
    ready = within(allowance, held)
    if ready:
        tx.run("unhold", [(tx.now_ms, message.seq) for message in ready])
        tx.transition(UNHELD, queue, Status.HELD, Status.READY, ready)
    return ready
