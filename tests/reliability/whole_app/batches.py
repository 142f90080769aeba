"""Message batches in the books: each sends its message in the commit in which its last member ends, or later, and once.

Later: while sends are refused, or others go first. Who asked for what is taken from the commits themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from forq_trio.model.commands import AddToMessageBatch, CloseMessageBatch, OpenMessageBatch
from forq_trio.model.messages.types import Produced
from forq_trio.storage.engine import Batch, BatchResult, Deferred
from reliability.whole_app.stores import Stored, Table
from reliability.whole_app.violations import Clause, hold

REPORTS = "reports"
"""The queue to which batches send. Nobody changes its settings, so it takes every message."""


@dataclass
class Followed:
    """A batch. members: sequences of its messages. ended: none was left when it was closed, or at a commit since."""

    then: str
    members: set[int] = field(default_factory=set)
    closed: bool = False
    abandoned: bool = False
    ended: bool = False
    sent: bool = False

    def has_left(self, table: Table) -> bool:
        """Whether a member is in a queue, and no dead letter."""
        return any(seq in table and table[seq].source_queue is None for seq in self.members)


class BatchBooks:
    """All batches of a trial, by their ids."""

    def __init__(self) -> None:
        self._batches: dict[str, Followed] = {}

    def committed(self, batch: Batch, result: BatchResult, after: Table) -> None:
        """Note what a commit did with batches."""
        for command, outcome in zip(batch.commands, result.outcomes, strict=True):
            if not isinstance(outcome, Exception | Deferred):
                self._note(command, outcome)
        for each in self._batches.values():
            if each.closed and not each.abandoned and not each.has_left(after):
                each.ended = True

    def _note(self, command: object, outcome: object) -> None:
        match command:
            case OpenMessageBatch():
                assert command.new.then is not None
                self._batches.setdefault(command.id, Followed(command.new.then.message.content))
            case AddToMessageBatch():
                assert isinstance(outcome, tuple)
                added = [each for each in outcome if isinstance(each, Produced) and not each.duplicate]
                self._batches[command.id].members.update(each.sequence for each in added)
            case CloseMessageBatch():
                followed = self._batches[command.id]
                followed.closed = True
                followed.abandoned = getattr(outcome, "outcome", None) == "abandoned"

    def appeared(self, rows: Iterable[Stored]) -> dict[str, int]:
        """The messages of batches among new rows: their contents, with their sequences."""
        waiting = {each.then: each for each in self._batches.values()}
        found: dict[str, int] = {}
        for row in rows:
            followed = waiting.get(row.content)
            if followed is None or row.queue != REPORTS:
                continue
            hold(Clause.DOUBLED, not followed.sent, "sent again: {} of {}", row, followed)
            hold(Clause.EARLY, followed.ended, "sent before the end: {} of {}", row, followed)
            followed.sent = True
            found[row.content] = row.seq
        return found

    def check_end(self) -> None:
        """All is consumed: every batch that was closed has sent its message."""
        for each in self._batches.values():
            waits = each.closed and not each.abandoned and not each.sent
            hold(Clause.LOST, not waits, "nothing was sent: {}", each)
