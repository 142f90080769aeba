"""Commands run to their end, as their callers in the broker and in the jobs do: batch by batch, until all is done."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from forq_trio.model.commands import (
    Claim,
    DropKeys,
    DropPages,
    EndStages,
    ForgetConsumer,
    LeaseMessages,
    Purge,
    PurgeHistory,
    PurgeStep,
    Removed,
    SettleLease,
    Sweep,
    SweepKind,
    TrimEvents,
    TrimHistory,
)
from forq_trio.model.consumers.types import PipelineConsumer, Settling, consumer_key
from support.batches import run_to_the_end

from .side import Side, runs_of

BATCHES_MAX = 500
"""Nothing here takes as many batches, unless it never ends."""


class ToTheEnd:
    """What one side does at one moment, in as many batches as it takes."""

    def __init__(self, side: Side, now_ms: int) -> None:
        self._side = side
        self._now_ms = now_ms
        self.batches = 0
        self.next_due_ms: int | None = None
        self.counted: Counter[tuple[str, str, str]] = Counter()  # kind, queue and reason
        self.events: dict[int, list[Any]] = {}  # lifecycle events by message, in order
        self.durations: dict[tuple[str, str], list[int]] = {}
        self.runs: list[Any] = []
        self.woken: set[str] = set()

    def rest(self) -> None:
        """Run batches without a command until nothing is due."""
        self._run()
        while self.next_due_ms is not None and self.next_due_ms <= self._now_ms:
            self._run()

    def do(self, command: Any) -> Any:
        """The outcome of a command and of all its steps, with ids and receipts of this side."""
        match command:
            case Claim():
                return self._claim(command)
            case Purge() | DropKeys() | PurgeHistory():
                return self._purge(command)
            case TrimEvents() | TrimHistory() | Sweep():
                return self._remove(command)
            case EndStages():
                ended = 0
                while step := self._do(command):
                    ended += step
                return ended
            case LeaseMessages():
                return self._lease(command)
            case SettleLease():
                return self._drop_pages(self._settle(command))
            case DropPages():
                return self._drop_pages(self._do(command))
            case ForgetConsumer():
                return self._forget(command)
            case _:
                return self._do(command)

    def do_together(self, commands: Sequence[Any]) -> list[Any]:
        """The outcomes of commands of one batch; what it left of them is in the next ones."""
        return run_to_the_end(commands, lambda some: self._run(*some))

    def _do(self, command: Any) -> Any:
        """A command, and what a batch left of it in the next ones."""
        (outcome,) = self.do_together([command])
        return outcome

    def _run(self, *commands: Any) -> list[Any]:
        """A batch; returns the outcomes of its commands."""
        self.batches += 1
        assert self.batches < BATCHES_MAX, commands
        result = self._side.execute(commands, self._now_ms, {}, shared=True)
        for event in result.events:
            self.counted[event.kind, event.queue, event.reason] += event.count
        for sequence, events in self._side.new_events().items():
            self.events.setdefault(sequence, []).extend(events)
        for key, values in result.durations.items():
            self.durations[key] = sorted([*self.durations.get(key, ()), *values])
        self.runs += runs_of(result)
        self.woken |= result.woken
        self.next_due_ms = result.next_due_ms
        if result.failed_queued:
            self._remove(Sweep(SweepKind.FAILED))
            self._remove(Sweep(SweepKind.FAILED_DLQ))
        return result.outcomes

    def _claim(self, command: Claim) -> Any:
        """Claim the rest again until there is nothing more."""
        got: tuple[Any, ...] = ()
        while isinstance(more := self._do(command), tuple) and more:
            got += more
            if len(more) == command.max_messages:
                break
            command = replace(command, max_messages=command.max_messages - len(more))
        return more if isinstance(more, Exception) else got

    def _purge(self, command: Any) -> Any:
        count = 0
        while isinstance(step := self._do(command), PurgeStep):
            count += step.count
            if step.up_to is None:
                return PurgeStep(count, None)
            command = replace(command, up_to=step.up_to)
        return step

    def _remove(self, command: Any) -> Any:
        count = 0
        while isinstance(step := self._do(command), Removed):
            count += step.count
            if not step.more:
                return Removed(count, more=False)
        return step

    def _lease(self, command: LeaseMessages) -> Any:
        """Add pages until the lease is complete, or no more are added."""
        before = None
        while (leased := self._do(command)) != before and isinstance(leased, PipelineConsumer):
            before = leased
        return leased

    def _settle(self, command: SettleLease) -> Any:
        """Settle the pages of a lease; of one that is given back, also those of the one that was made ahead."""
        while isinstance(consumer := self._do(command), PipelineConsumer) and consumer.settling is not None:
            assert consumer.open is not None
            if command.how is not Settling.ACKNOWLEDGE:
                command = replace(command, number=consumer.open.number)
        return consumer

    def _drop_pages(self, consumer: Any) -> Any:
        while isinstance(consumer, PipelineConsumer) and consumer.dropping:
            consumer = self._do(DropPages(consumer.queue, consumer.name))
        return consumer

    def _forget(self, command: ForgetConsumer) -> Any:
        key = consumer_key(command.queue, command.name)
        outcome = self._do(command)
        while isinstance(outcome, PipelineConsumer) and (outcome.dropping or outcome.open is None):
            outcome = self._do(replace(command, generation=outcome.generation))
        assert outcome is not None or key not in self._side.engine.snapshot().consumers
        return outcome
