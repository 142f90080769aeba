"""How far a process has followed the batches of all processes, and what it took over from them."""

import os
from collections.abc import Sequence
from itertools import count
from secrets import token_hex

from forq_trio.storage.engine import BatchResult, Elsewhere
from forq_trio.storage.postgres.shipped import Shipped
from forq_trio.storage.relational.transaction import Transaction

BatchRow = tuple[int, str, bytes]
"""A stored batch: its version, its maker, and its changes (shipped.py)."""


class BatchPosition:
    """The last batch that this process knows of, and the names of its own batches."""

    def __init__(self) -> None:
        self.process = f"{os.getpid()}-{token_hex(4)}"
        self.last = (0, "")  # version and maker of the last batch that the cache contains
        self.own = ""  # the maker of the running batch
        self.is_known = True  # the cache is as of `last`; False: all tables have to be read
        self._numbers = count(1)  # numbers of this process's batches, to name their makers

    @property
    def next_version(self) -> int:
        return self.last[0] + 1

    @property
    def known_version(self) -> int:
        """The version of the last batch in the cache; 0 while that is not known. May be read from any thread."""
        return self.last[0] if self.is_known else 0

    def name_own(self) -> str:
        """Make and return the maker's name for the next batch of this process."""
        self.own = f"{self.process}-{next(self._numbers)}"
        return self.own

    def note_own_commit(self) -> None:
        """Note that the batch that ran is committed and in the cache."""
        self.last = self.next_version, self.own

    def behind_last(self, rows: Sequence[BatchRow]) -> Sequence[BatchRow] | None:
        """The rows after the last known batch; None unless that batch is the first row."""
        if not self.last[0]:
            return rows
        return rows[1:] if rows and rows[0][:2] == self.last else None


class TakenOver:
    """The changes of other processes that this process's callers have not been told of, and how long batches waited."""

    def __init__(self) -> None:
        self.changes = _nothing()
        self.gate_seconds: float | None = None  # how long the batch waited for the gate
        self.lag_seconds: float | None = None  # the age of the oldest batch that was taken over

    def add(self, shipped: Shipped, tx: Transaction, now_ms: int) -> None:
        """Add a batch that was taken over. tx: has its changes, but has not adopted them yet."""
        lag_seconds = max(0, now_ms - shipped.now_ms) / 1_000
        self.lag_seconds = max(lag_seconds, self.lag_seconds or 0.0)
        self.changes.woken |= tx.wakes.woken
        self.changes.logged |= shipped.logged
        self.changes.tokens |= bool(tx.tokens.changed)
        self.changes.ended |= tx.endings.noted

    def add_all(self, queues: set[str]) -> None:
        """Note that all tables were read again, so that anything may have changed."""
        self.changes = Elsewhere(set(queues), set(queues), tokens=True, reread=True)

    def write_into(self, result: BatchResult) -> None:
        """Put this into the result of a batch; the changes stay for later results until `clear`."""
        result.gate_seconds, self.gate_seconds = self.gate_seconds, None
        result.lag_seconds, self.lag_seconds = self.lag_seconds, None
        changes = self.changes
        if changes.tokens or changes.woken or changes.logged or changes.ended:
            result.elsewhere = (changes,)

    def clear(self) -> None:
        """Drop the changes: the callers were told of them."""
        self.changes = _nothing()


def _nothing() -> Elsewhere:
    return Elsewhere(set(), set(), tokens=False)
