"""Damaged messages that are left alone for a while, so that all others go on."""

from typing import Any

from forq_trio.model import limits
from forq_trio.storage.engine import DamagedMessage
from forq_trio.storage.relational.parts.due import Due
from forq_trio.storage.relational.parts.part import Part

Shipped = tuple[int, list[DamagedMessage]]
"""The time of the batch (epoch ms), and what it set aside."""


class SetAsideMessages(Part):
    """Messages that could not be settled or delivered, until they are tried again. No table has them.

    When their retry is due, the batch that settles due messages tries them again and drops them from here.
    """

    shipped = Shipped

    def __init__(self, due: Due) -> None:
        self._due = due
        self._committed: dict[int, int] = {}  # by sequence, when to try it again (epoch ms)
        self.messages: list[DamagedMessage] = []  # of this batch
        self.retry_later = False  # the other due messages are tried again after DUE_RETRY_MS, not at once
        self.at_ms = 0  # the time of this batch

    def add(self, queue: str, seq: int, error: Exception) -> bool:
        """Leave a damaged message alone for a while. False if there are too many: all are tried again a bit later."""
        if self._committed.get(seq, 0) > self.at_ms:
            return True
        if len(self._committed) + len(self.messages) >= limits.SET_ASIDE_MESSAGES_MAX:
            self.retry_later = True
            return False
        self.messages.append(DamagedMessage(queue, seq, f"{type(error).__name__}: {error}"))
        return True

    def note(self, what: str, error: Exception) -> None:
        """Note that something other than a message failed."""
        self.messages.append(DamagedMessage("", 0, f"{what}: {type(error).__name__}: {error}"))

    def sequences(self) -> list[int]:
        """The messages that are set aside, by sequence."""
        if not self._committed and not self.messages:
            return []
        earlier = [seq for seq, retry_at in self._committed.items() if retry_at > self.at_ms]
        return earlier + [message.sequence for message in self.messages]

    def next_retry_ms(self) -> int:
        """When the first message that is set aside is tried again (epoch ms)."""
        retries = [retry_at for retry_at in self._committed.values() if retry_at > self.at_ms]
        return min(retries, default=self.at_ms + limits.SET_ASIDE_RETRY_MS)

    def copy(self) -> Any:
        return self.messages.copy(), self.retry_later

    def restore(self, copied: Any) -> None:
        self.messages, self.retry_later = copied

    def adopt(self) -> None:
        if self.messages or (self._committed and self._due.settled):
            kept = {seq: retry_at for seq, retry_at in self._committed.items() if retry_at > self.at_ms}
            again_at = self.at_ms + limits.SET_ASIDE_RETRY_MS
            self._committed = kept | dict.fromkeys([each.sequence for each in self.messages], again_at)
        self.discard()

    def discard(self) -> None:
        if self.messages:
            self.messages = []
        self.retry_later = False

    def ship(self) -> Shipped | None:
        if not self.messages and not (self._committed and self._due.settled):
            return None
        return self.at_ms, self.messages

    def take_over(self, shipped: Shipped) -> None:
        self.at_ms, self.messages = shipped
