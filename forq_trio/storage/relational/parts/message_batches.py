"""Message batches: how many there are, when the next is due, and what became of messages while there are members.

There may be many batches, so they themselves stay in their table. If the database keeps removed entries in its indexes
for a while, reads of batches begin at times before which none is due.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.storage.message_batches import BatchTotals, State, StoredMessageBatch, state_after
from forq_trio.storage.relational.parts.due import FROM_START, NEVER
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.row import Row
from forq_trio.storage.relational.statements import Query


class MessageBatchTotals(Struct, frozen=True, gc=False):
    """The totals of all batches."""

    active: BatchTotals = BatchTotals()  # those that are not over
    made: Mapping[str, BatchTotals] = {}  # the same by the token that made them
    stored: int = 0  # how many there are, with those that are over
    members: int = 0  # how many members there are at least; 0 only if there are none
    due_at: int | None = None  # when the next batch is due, without those in `due_times`
    counts_at: int | None = None  # when members that wait are counted next, or earlier
    first: int | None = None  # the number of the batch that is due next; None: it has to be read
    over_from: int = FROM_START  # no batch that is over is due before
    knows_members: bool = False  # whether `members` is their number


class MessageBatchTable(Part):
    """What a batch of the writer knows about message batches without a query."""

    shipped = MessageBatchTotals

    def __init__(self) -> None:
        self.committed = MessageBatchTotals()
        self.totals = MessageBatchTotals()  # as of the last command
        self.due_times: dict[int, int] = {}  # of batches that changed; NEVER: forgotten
        self.counts_changed = False  # when members that wait are counted next has to be read
        self.sends = False  # one has something to send now
        self.noted: list[tuple[int, State]] = []
        """Messages, and batches, that ended or moved: sequence number, and the state as a member."""

    @property
    def due_at(self) -> int | None:
        """When there is something to do for batches."""
        times = self.totals.due_at, self.totals.counts_at
        return min([time for time in times if time is not None], default=None)

    @property
    def due_from(self) -> int:
        """The time before which no batch is due."""
        due_at = self.totals.due_at
        return min([NEVER if due_at is None else due_at, *self.due_times.values()])

    def find_next(self, query: Query) -> None:
        """Find out what is due next, if this batch may have changed that."""
        totals = self.totals
        if self.counts_changed and totals.counts_at is not None:
            found = query("first_count", totals.counts_at)
            self.totals = totals = replace(totals, counts_at=found[0][0] if found else None)
        self.counts_changed = False
        if totals.due_at is not None and (totals.first is None or totals.first in self.due_times):
            times = [*query("first_message_batch", totals.due_at)]
        elif self.due_times:
            times = [] if totals.first is None else [(totals.due_at, totals.first)]
        else:
            return
        times += [(due_at, number) for number, due_at in self.due_times.items() if due_at != NEVER]
        due_at, first = min(times, default=(None, None))
        self.totals = replace(totals, due_at=due_at, first=first)
        self.due_times = {}

    def let_wait(self, at_ms: int) -> None:
        """Note that members wait to be counted at a time."""
        counts_at = self.totals.counts_at
        self.totals = replace(self.totals, counts_at=at_ms if counts_at is None else min(at_ms, counts_at))
        self.counts_changed = True

    def note_over(self, stored: StoredMessageBatch) -> None:
        """Note a batch that may be the oldest that is over now."""
        if stored.is_over and stored.due_at < self.totals.over_from:
            self.totals = replace(self.totals, over_from=stored.due_at)

    def note(self, change: str, reason: str, messages: Sequence[Row]) -> None:
        """Note a change that removes or moves messages, as `Transaction.transition` has it."""
        state = state_after(change, reason)
        self.noted += [(message.seq, state) for message in messages]

    def load(self, query: Query, path: str) -> None:
        made: dict[str | None, BatchTotals] = {}
        total, stored = BatchTotals(), 0
        for made_by, is_over, number, size in query("load_message_batches"):
            stored += number
            if not is_over:
                made[made_by] = BatchTotals(number, size)
                total = total.plus(number, size)
        of_tokens = {made_by: each for made_by, each in made.items() if made_by is not None}
        self.totals = MessageBatchTotals(total, of_tokens, stored, due_at=FROM_START, counts_at=FROM_START)
        self.count_members(query)
        self.counts_changed = True
        self.find_next(query)
        self.adopt()

    def count_members(self, query: Query) -> None:
        """Count the members, up to a bound."""
        most = limits.MESSAGE_BATCH_MEMBERS_COUNTED_MAX
        ((members,),) = query("count_batch_members", most)
        self.totals = replace(self.totals, members=members, knows_members=members < most)

    def copy(self) -> Any:
        return self.totals, self.due_times.copy(), self.counts_changed, self.sends, self.noted.copy()

    def restore(self, copied: Any) -> None:
        self.totals, self.due_times, self.counts_changed, self.sends, self.noted = copied

    def adopt(self) -> None:
        self.committed = self.totals
        self.discard()

    def discard(self) -> None:
        self.totals = self.committed
        self.counts_changed = self.sends = False
        if self.due_times:
            self.due_times = {}
        if self.noted:
            self.noted = []

    def ship(self) -> MessageBatchTotals | None:
        return None if self.totals is self.committed else self.totals

    def take_over(self, shipped: MessageBatchTotals) -> None:
        self.totals = shipped
