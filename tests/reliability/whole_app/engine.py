"""An engine that fails where it is told to, and tells the books what it committed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from forq_trio.model.commands import Claim, OfferMany, Produce, ProduceMany, Resubmit
from forq_trio.model.errors import StorageFull, StorageUnavailable
from forq_trio.model.queues.settings import QueueRules
from forq_trio.storage.engine import Batch, BatchResult, Engine, Receiver
from reliability.whole_app.books import Books
from reliability.whole_app.deeds import queues_reconfigured
from reliability.whole_app.stores import Store
from reliability.whole_app.violations import Clause, Violation
from support.actors import ObservedEngine

BATCHES_MAX = 5_000
SENDS = (Produce, ProduceMany, OfferMany, Resubmit)


class Faults(NamedTuple):
    """By the numbers of the batches of a life.

    refused: by the database, at once; undone: when they are committed; full: for want of room, if they hold sends.
    failing_commit: the one whose commit fails so that nobody knows, None for none; durable: whether its changes are on
    disk all the same.
    """

    refused: frozenset[int] = frozenset()
    undone: frozenset[int] = frozenset()
    full: frozenset[int] = frozenset()
    failing_commit: int | None = None
    durable: bool = False


NO_FAULTS = Faults()


class LabEngine(ObservedEngine):
    """killed: the process is meant to end at once, so closing must not help the next one. failed: the commit did."""

    def __init__(self, engine: Engine, store: Store, books: Books, faults: Faults) -> None:
        super().__init__(engine)
        self._store = store
        self._books = books
        self.faults = faults
        self.killed = False
        self.failed = False
        self._count = 0
        self._batch = Batch((), 0)
        self._result = BatchResult([], [], None, [])
        self._served: dict[int, Claim] = {}
        self._old_rules: dict[str, QueueRules] = {}

    def execute_batch(self, batch: Batch) -> BatchResult:
        self._count += 1
        if self._count == BATCHES_MAX:
            self._books.violations.append(Violation(Clause.HUNG, f"{BATCHES_MAX} batches and no end"))
        self.refusals = self._count in self.faults.refused
        if self._count in self.faults.full and any(isinstance(each, SENDS) for each in batch.commands):
            raise StorageFull
        self._old_rules = {
            queue: self._engine.snapshot().rules(queue) for queue in queues_reconfigured(batch)
        }
        self._result = super().execute_batch(batch)
        self._batch = Batch(batch.commands, batch.now_ms)
        self._served = _served(batch.receivers, self._result)
        return self._result

    def commit(self) -> bool:
        fails = self._count == self.faults.failing_commit
        self.failed = fails
        if fails and not self.faults.durable:
            raise OSError("the disk went away")
        if self._count in self.faults.undone:
            self._store.roll_back()
            raise StorageUnavailable
        changed = super().commit()
        table = self._store.table() if changed else self._books.table
        self._books.committed(self._batch, self._result, self._served, table, self._rules_around)
        if fails:
            raise OSError("the disk went away")
        return changed

    @property
    def batch_ms(self) -> int:
        """The time of the last batch."""
        return self._batch.now_ms

    @property
    def more_at_once(self) -> bool:
        """True if the last batch left work for another one that follows at once."""
        due_ms = self._result.next_due_ms
        return due_ms is not None and due_ms <= self._batch.now_ms

    def _rules_around(self, queue: str) -> tuple[QueueRules, ...]:
        now = self._engine.snapshot().rules(queue)
        return (self._old_rules[queue], now) if queue in self._old_rules else (now,)

    def close(self) -> None:
        if self.killed or self.failed:
            self._store.crash()
        super().close()


def _served(receivers: Mapping[str, Sequence[Receiver]], result: BatchResult) -> dict[int, Claim]:
    """The claims of the receivers that the result serves, by their ids."""
    claims = {receiver.id: receiver.claim for line in receivers.values() for receiver in line}
    return {receiver: claims[receiver] for receiver, _ in result.served}
