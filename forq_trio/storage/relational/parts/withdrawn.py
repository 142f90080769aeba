"""The messages that were withdrawn: removed while a consumer had them, and not by that consumer.

Their positions grow in the order of the batches, whichever process runs them: each is later than the times of all
batches before it. So a process that has missed batches has a position up to which it knows nothing.
"""

from collections.abc import Sequence
from typing import Any, cast

from forq_trio.model import limits
from forq_trio.model.messages.types import Status
from forq_trio.model.workers.withdrawn import How, Withdrawal, Withdrawals
from forq_trio.storage.engine import ACKED
from forq_trio.storage.logs import DISCARDED_BY_CONSUMER, outcome_of
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.row import Row


class WithdrawalLog(Part):
    """The latest withdrawals. They are in no table: a process knows those since it has read the tables."""

    shipped = list[Withdrawal]

    def __init__(self) -> None:
        self.committed = Withdrawals()
        self.new: list[Withdrawal] = []
        self.others_ms = 0  # the latest time of a batch of another process
        self.reasons: dict[str, str] = {}  # of those that the batch cancels, by id

    def note(self, now_ms: int, messages: Sequence[Row], change: str, event_reason: str) -> None:
        """Note those of these messages, which are removed, that are in process, unless it is their consumer's doing.

        Too many of a queue are noted as one, without an id. change, event_reason: see `dead_letters.remove`.
        """
        if change == ACKED or event_reason == DISCARDED_BY_CONSUMER:
            return
        how = cast("How", outcome_of(change, event_reason)[0])  # in process nothing expires or is evicted
        ids: dict[str, list[str]] = {}
        for message in messages:
            if message.status == Status.PROCESSING:
                ids.setdefault(message.queue, []).append(message.id)
        position = self.committed.next_position(max(now_ms, self.others_ms + 1)) if ids else 0
        for queue, those in ids.items():
            found = [Withdrawal(position, queue, each, how, self.reasons.get(each, "")) for each in those]
            if len(self.new) + len(found) > limits.WITHDRAWALS_NAMED_MAX:
                unnamed = Withdrawal(position, queue, "", how)
                found = [] if unnamed in self.new else [unnamed]
            self.new += found

    def forget_until(self, position: int) -> None:
        """Note that batches were missed whose withdrawals may have positions up to this one."""
        self.committed = Withdrawals.unknown_until(position)
        self.others_ms = position

    def copy(self) -> Any:
        return self.new.copy()

    def restore(self, copied: Any) -> None:
        self.new = copied

    def adopt(self) -> None:
        if self.new:
            self.committed = self.committed.with_new(self.new)
        self.discard()

    def discard(self) -> None:
        if self.new or self.reasons:
            self.new, self.reasons = [], {}

    def ship(self) -> list[Withdrawal] | None:
        return self.new or None

    def take_over(self, shipped: list[Withdrawal]) -> None:
        self.new = shipped
