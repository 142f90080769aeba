"""The reference engine: plain dicts, obviously right, and the oracle every other engine is compared with.

All state is one `State` of immutable rows. A batch works on a copy of it, and `commit` puts the copy in the
place of the original: so a batch that raises changes nothing, and readers see only what is committed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from forq_trio.commands import Claim, Command
from forq_trio.errors import ForqError
from forq_trio.model import Delivery, MessageInfo, QueueCounts, QueueInfo
from forq_trio.storage.engine import Batch, BatchResult, CheckpointResult, EngineSettings
from forq_trio.storage.memory_batch import ORDER, Transaction
from forq_trio.storage.memory_state import State


class MemoryEngine:
    """Keeps messages in memory only: for tests, and to say what is right. See `storage.engine.Engine`."""

    durability = "none"

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._committed = State()
        self._pending = self._committed

    def execute_batch(self, batch: Batch) -> BatchResult:
        transaction = Transaction(self._committed.copy(), self._settings, batch.now_ms)
        transaction.settle()
        outcomes = _execute_commands(transaction, batch.commands)
        served = _serve_claims(transaction, batch, outcomes)
        self._pending = transaction.state
        return BatchResult(
            outcomes=outcomes,
            served=served,
            next_due_ms=transaction.next_due_ms(),
            events=transaction.events(),
            failed_queued=transaction.failed_queued,
        )

    def commit(self) -> bool:
        changed = self._pending != self._committed
        self._committed = self._pending
        return changed

    def counts(self) -> Mapping[str, QueueCounts]:
        state = self._committed
        return {queue: state.counts(queue) for queue in state.queues}

    def open_reader(self) -> "MemoryReader":
        return MemoryReader(lambda: self._committed)

    def log_pages(self) -> int:
        return 0

    def checkpoint(self, *, truncate: bool) -> CheckpointResult:
        return CheckpointResult(0, 0)

    def close(self) -> None:
        """There is nothing to close."""


def _execute_commands(transaction: Transaction, commands: Sequence[Command[Any]]) -> list[Any]:
    """Execute all but the claims, in the engine's order; outcomes in the order of `commands`."""
    outcomes: list[Any] = [None] * len(commands)
    for index in sorted(range(len(commands)), key=lambda index: ORDER[type(commands[index])]):
        command = commands[index]
        if isinstance(command, Claim):
            continue
        try:
            outcomes[index] = transaction.execute(command)
        except ForqError as error:
            outcomes[index] = error
    return outcomes


def _serve_claims(
    transaction: Transaction, batch: Batch, outcomes: list[Any]
) -> dict[str, list[tuple[int, tuple[Delivery, ...]]]]:
    """Deal every queue's ready messages, first to its parked receivers, then to the batch's own claims.

    The own claims' deliveries go into `outcomes`, the parked receivers' are returned.
    """
    own: dict[str, dict[int, Claim]] = {queue: {} for queue in batch.parked}
    for index, command in enumerate(batch.commands):
        if isinstance(command, Claim):
            own.setdefault(command.queue, {})[index] = command
    served = {}
    for queue, claims in own.items():
        parked = batch.parked.get(queue, ()) if queue in transaction.made_ready else ()
        dealt = transaction.claim(queue, [*parked, *claims.values()])
        outcomes_of_own = dealt[len(parked) :]
        for index, deliveries in zip(claims, outcomes_of_own, strict=True):
            outcomes[index] = deliveries
        found = [(place, deliveries) for place, deliveries in enumerate(dealt[: len(parked)]) if deliveries]
        if found:
            served[queue] = found
    return served


class MemoryReader:
    """Looks at the committed state of a `MemoryEngine`. See `storage.engine.Reader`."""

    def __init__(self, committed: Callable[[], State]) -> None:
        self._committed = committed

    def queues(self) -> list[QueueInfo]:
        state = self._committed()
        return [state.info(queue) for queue in sorted(state.queues)]

    def queue(self, queue: str) -> QueueInfo:
        state = self._committed()
        oldest = min((row.received_at for row in state.claimable(queue)), default=None)
        return msgspec.structs.replace(state.info(queue), oldest_ready_at=oldest)

    def message(self, queue: str, message_id: str) -> MessageInfo | None:
        for row in self._committed().of_queue(queue):
            if row.id == message_id:
                return row.info()
        return None

    def peek(self, queue: str, limit: int) -> list[MessageInfo]:
        return [row.info() for row in self._committed().claimable(queue)[:limit]]

    def browse(self, queue: str, before_sequence: int | None, limit: int) -> list[MessageInfo]:
        rows = sorted(self._committed().of_queue(queue), key=lambda row: -row.seq)
        older = [row for row in rows if before_sequence is None or row.seq < before_sequence]
        return [row.info() for row in older[:limit]]

    def interrupt(self) -> None:
        """Nothing here runs long enough to be interrupted."""

    def close(self) -> None:
        """There is nothing to close."""
