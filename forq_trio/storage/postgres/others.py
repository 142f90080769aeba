"""What a process knows of the batches of all processes: the last one that it took over, and what that means for it."""

import os
from collections.abc import Sequence
from itertools import count
from secrets import token_hex

from forq_trio.storage.engine import BatchResult, Elsewhere
from forq_trio.storage.postgres.shipped import Shipped
from forq_trio.storage.relational.transaction import Transaction

BatchRow = tuple[int, str, bytes]
"""A stored batch: its version, its maker, and what it changed (shipped.py)."""


class BatchPosition:
    """Up to which batch this process knows the database, and how its own batches are named."""

    def __init__(self) -> None:
        self.process = f"{os.getpid()}-{token_hex(4)}"
        self.last = (0, "")  # the last batch that the cache has: its version and its maker
        self.own = ""  # the maker of the batch that runs
        self.is_known = True  # the cache follows from the batches up to `last`; else tables have to be read
        self._numbers = count(1)  # of the batches of this process, for their makers' names

    @property
    def next_version(self) -> int:
        return self.last[0] + 1

    @property
    def known_version(self) -> int:
        """The last batch that this process took over; 0 while it does not know. May be read from any thread."""
        return self.last[0] if self.is_known else 0

    def name_own(self) -> str:
        """The maker's name of the next batch of this process."""
        self.own = f"{self.process}-{next(self._numbers)}"
        return self.own

    def note_own_commit(self) -> None:
        """The batch that ran is committed, and the cache has it."""
        self.last = self.next_version, self.own

    def behind_last(self, rows: Sequence[BatchRow]) -> Sequence[BatchRow] | None:
        """Those of these rows that are behind the last batch, which has to be the first; None where it is not."""
        if not self.last[0]:
            return rows
        return rows[1:] if rows and rows[0][:2] == self.last else None


class TakenOver:
    """What other processes did, until this one's callers are told of it with a batch, and what batches waited for."""

    def __init__(self) -> None:
        self.changes = _nothing()
        self.gate_seconds: float | None = None  # how long the batch waited for the gate
        self.lag_seconds: float | None = None  # how old the oldest batch was that was taken over

    def add(self, shipped: Shipped, tx: Transaction, now_ms: int) -> None:
        """A batch was taken over; tx: before it adopts that."""
        lag_seconds = max(0, now_ms - shipped.now_ms) / 1_000
        self.lag_seconds = max(lag_seconds, self.lag_seconds or 0.0)
        self.changes.woken |= tx.wakes.woken
        self.changes.logged |= shipped.logged
        self.changes.tokens |= bool(tx.tokens.changed)

    def add_all(self, queues: set[str]) -> None:
        """All tables were read anew: it is not known what was changed."""
        self.changes = Elsewhere(set(queues), set(queues), tokens=True)

    def write_into(self, result: BatchResult) -> None:
        """Tell the callers; what was taken over is told again until `clear`."""
        result.gate_seconds, self.gate_seconds = self.gate_seconds, None
        result.lag_seconds, self.lag_seconds = self.lag_seconds, None
        if self.changes.tokens or self.changes.woken or self.changes.logged:
            result.elsewhere = (self.changes,)

    def clear(self) -> None:
        """The callers were told."""
        self.changes = _nothing()


def _nothing() -> Elsewhere:
    return Elsewhere(set(), set(), tokens=False)
