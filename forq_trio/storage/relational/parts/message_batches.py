"""Message batches: how many there are, when the next is due, and what became of messages while there are members.

There may be many batches, so they themselves stay in their table.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.storage.message_batches import BatchTotals, State, state_after
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.row import Row
from forq_trio.storage.relational.statements import Query


class MessageBatchTotals(Struct, frozen=True, gc=False):
    """The totals of all batches."""

    active: BatchTotals = BatchTotals()  # those that are not over
    made: Mapping[str, BatchTotals] = {}  # the same by the token that made them
    stored: int = 0  # how many there are, with those that are over
    members: int = 0  # how many members there are at least; 0 only if there are none
    due_at: int | None = None  # when the next batch is due
    counts_at: int | None = None  # when members that wait are counted next


class MessageBatchTable(Part):
    """What a batch of the writer knows about message batches without a query."""

    shipped = MessageBatchTotals

    def __init__(self) -> None:
        self.committed = MessageBatchTotals()
        self.totals = MessageBatchTotals()  # as of the last command
        self.changed = False  # the time of the next one that is due may have changed
        self.sends = False  # one has something to send now
        self.noted: list[tuple[int, State]] = []
        """Messages, and batches, that ended or moved: sequence number, and the state as a member."""

    @property
    def due_at(self) -> int | None:
        """When there is something to do for batches."""
        times = self.totals.due_at, self.totals.counts_at
        return min([time for time in times if time is not None], default=None)

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
        ((members,),) = query("count_batch_members", limits.MESSAGE_BATCH_MEMBERS_COUNTED_MAX)
        ((due_at, counts_at),) = query("next_message_batch")
        self.totals = MessageBatchTotals(total, of_tokens, stored, members, due_at, counts_at)
        self.adopt()

    def copy(self) -> Any:
        return self.totals, self.changed, self.sends, self.noted.copy()

    def restore(self, copied: Any) -> None:
        self.totals, self.changed, self.sends, self.noted = copied

    def adopt(self) -> None:
        self.committed = self.totals
        self.discard()

    def discard(self) -> None:
        self.totals = self.committed
        self.changed = self.sends = False
        if self.noted:
            self.noted = []

    def ship(self) -> MessageBatchTotals | None:
        return None if self.totals is self.committed else self.totals

    def take_over(self, shipped: MessageBatchTotals) -> None:
        self.totals = shipped
