"""Message batches: how many there are, when the next is due, and what became of messages while there are members.

There may be many batches, so they themselves stay in their table.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from forq_trio.storage.message_batches import Shares, State, state_after
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.row import Row
from forq_trio.storage.relational.statements import Query


class MessageBatchTotals(Struct, frozen=True, gc=False):
    """The totals of all batches."""

    shares: Shares = Shares()
    made: Mapping[str, Shares] = {}  # by the token that made them
    members: int = 0  # how many messages are members
    due_at: int | None = None  # when the next batch is due


class MessageBatchTable(Part):
    """What a batch of the writer knows about message batches without a query."""

    shipped = MessageBatchTotals

    def __init__(self) -> None:
        self.committed = MessageBatchTotals()
        self.totals = MessageBatchTotals()  # as of the last command
        self.changed = False  # the time of the next one that is due may have changed
        self.sends = False  # one has something to send now
        self.noted: list[tuple[int, State, bool]] = []
        """Messages that ended or moved: sequence number, the state as a member, and whether the message is gone."""

    @property
    def due_at(self) -> int | None:
        """When the next batch is due."""
        return self.totals.due_at

    def note(self, change: str, reason: str, messages: Sequence[Row], *, gone: bool) -> None:
        """Note a change that removes or moves messages, as `Transaction.transition` has it."""
        state = state_after(change, reason)
        self.noted += [(message.seq, state, gone) for message in messages]

    def load(self, query: Query, path: str) -> None:
        made = {made_by: Shares(count, size) for made_by, count, size in query("load_message_batches")}
        total = Shares(sum(each.number for each in made.values()), sum(each.size for each in made.values()))
        made.pop(None, None)
        ((members,),) = query("count_batch_members")
        found = query("next_message_batch")
        self.totals = MessageBatchTotals(total, made, members, found[0][0] if found else None)
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
