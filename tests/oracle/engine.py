"""The reference engine: plain dicts that are obviously right, with which every other engine is compared.

It says what a command means as a whole. How much of it the other engines do in one batch it does not know: here every
batch does all there is to do, so nothing is left to the next one.

All state is one `State` of immutable rows. A batch works on a copy of it, and `commit` replaces the original with the
copy. So a batch that raises changes nothing, and readers see only what is committed.
"""

from collections.abc import Callable
from typing import Any

from forq_trio.model import commands
from forq_trio.model.clock import Clock, SystemClock
from forq_trio.model.commands import Claim, Command
from forq_trio.model.errors import ForqError, StorageUnavailable
from forq_trio.storage.engine import NO_DURABILITY, Batch, BatchResult, EngineFacts, EngineSettings
from oracle import due as memory_due
from oracle import message_batches as memory_batches
from oracle import publishing as memory_publishing
from oracle import schedules as memory_schedules
from oracle.claim import serve
from oracle.groups import unhold
from oracle.operations import OPERATIONS, operation
from oracle.rates import wake_limited
from oracle.reader import MemoryReader
from oracle.send import store_waiting
from oracle.state import Committed, State
from oracle.transaction import Transaction


@operation(commands.Optimize)
@operation(commands.Ping)
def _nothing(tx: Transaction, command: Command[Any]) -> None:
    """Do nothing: there is no database to check or optimize."""


@operation(commands.Compact)
def _compact(tx: Transaction, command: commands.Compact) -> commands.Compacted:
    return commands.Compacted(0, 0)


_ORDER = {kind: index for index, kind in enumerate(commands.in_order(OPERATIONS))}


class MemoryEngine:
    """The oracle: messages in memory only, for tests. See `storage.engine.Engine`."""

    listen = tables_urls = check_texts = None
    durability = NO_DURABILITY
    log = None

    def __init__(self, settings: EngineSettings) -> None:
        self._committed = State(settings)
        self._pending = self._committed

    def execute_batch(self, batch: Batch) -> BatchResult:
        before = self._committed
        tx = Transaction(before.copy(), batch.now_ms, before.last_seq, before.event_log.last)
        tx.woken, tx.state.wake = tx.state.wake, set()
        tx.awaited_ends = batch.awaited_ends
        memory_due.settle(tx)
        if batch.moves_staged:
            memory_batches.run_due(tx)
            memory_publishing.advance(tx)
            memory_schedules.run_due(tx)
        outcomes: list[Any] = [None] * len(batch.commands)
        claims = {i: command for i, command in enumerate(batch.commands) if isinstance(command, Claim)}
        others = [index for index in range(len(outcomes)) if index not in claims]
        for index in sorted(others, key=lambda index: _ORDER[type(batch.commands[index])]):
            tx, outcomes[index] = _execute(tx, batch.commands[index])
        memory_due.settle_failed(tx)
        store_waiting(tx)
        unhold(tx)
        memory_batches.follow(tx, sends=batch.moves_staged)
        delivered, served = serve(tx, claims, batch.receivers)
        for index, deliveries in delivered.items():
            outcomes[index] = deliveries
        tx.state.wake |= store_waiting(tx)
        wake_limited(tx)
        memory_batches.follow(tx, sends=False)
        tx.state.freed |= tx.freed
        if tx.withdrawn:
            tx.state.withdrawn = tx.state.withdrawn.with_new(tx.withdrawn)
        self._pending = tx.state
        return BatchResult(
            outcomes=outcomes,
            served=served,
            next_due_ms=tx.next_due_ms(moves_staged=batch.moves_staged),
            events=tx.events(),
            failed_queued=tx.failed_queued,
            woken=tx.woken,
            durations=tx.durations,
            moved_in=dict(tx.moved_in),
            own_work=tx.runs,
            logged={event.queue for event, _ in tx.state.events if event.id > tx.last_event_before},
            ended=tx.ended,
        )

    def commit(self) -> bool:
        changed = self._pending != self._committed
        self._committed = self._pending
        return changed

    def snapshot(self) -> Committed:
        return Committed(self._committed)

    def clock(self) -> Clock:
        return SystemClock()

    def facts(self) -> EngineFacts:
        return EngineFacts(name="memory", version="", durability=self.durability)

    def copy_to(self, path: str, on_step: Callable[[int, int], None]) -> int:
        raise StorageUnavailable("nothing is stored in a file")

    def open_reader(self) -> MemoryReader:
        return MemoryReader(lambda: self._committed)

    def close(self) -> None:
        """Nothing to do: there is nothing to close."""


def _execute(tx: Transaction, command: Command[Any]) -> tuple[Transaction, Any]:
    """Execute one command. If it fails alone, the transaction is as it was before, and its error is the outcome."""
    before = tx.savepoint()
    try:
        return tx, OPERATIONS[type(command)](tx, command)
    except ForqError as error:
        return before, error
