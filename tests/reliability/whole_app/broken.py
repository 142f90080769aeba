"""Engines and handlers with one fault each, to see that the checker finds it. All engines are the one in memory."""

from collections.abc import Callable
from typing import Any

import msgspec
import trio
from msgspec import UNSET

from forq_trio.http.message import Handler, Request, Response
from forq_trio.in_place import require_task
from forq_trio.model.commands import Ack, Claim, Configure, OfferMany, Pause, Produce, Release, Sweep
from forq_trio.model.keys.types import Offered
from forq_trio.model.messages.types import REASON_MAX_ATTEMPTS, Delivery, QueueCounts, Receipt, Status
from forq_trio.model.queues.names import is_fifo_queue
from forq_trio.model.queues.setting_values import GroupOrder
from forq_trio.storage.engine import Batch, BatchResult
from reliability.whole_app.engine import SENDS
from reliability.whole_app.stores import MemoryStore


class Altered:
    """A snapshot in which some members are others."""

    def __init__(self, snapshot: Any, **members: Any) -> None:
        self.__dict__.update(members)
        self._snapshot = snapshot

    def __getattr__(self, name: str) -> Any:
        return getattr(self._snapshot, name)


class Broken:
    """Does what the engine does, but for what a subclass spoils. pending: the state that will be committed."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    @property
    def pending(self) -> Any:
        return self._engine._pending

    def execute_batch(self, batch: Batch) -> BatchResult:
        result = self._engine.execute_batch(self.asked(batch))
        self.spoil(batch, result)
        return result

    def asked(self, batch: Batch) -> Batch:
        return batch

    def spoil(self, batch: Batch, result: BatchResult) -> None:
        """Do harm."""

    def change(self, row: Any, **changes: Any) -> None:
        self.pending.rows[row.seq] = msgspec.structs.replace(row, **changes)

    def rows(self, status: Status) -> list[Any]:
        return [row for row in self.pending.rows.values() if row.status is status]


class LosesSends(Broken):
    def spoil(self, batch, result):
        for command, outcome in zip(batch.commands, result.outcomes, strict=True):
            if isinstance(command, Produce) and not isinstance(outcome, Exception):
                self.pending.rows.pop(outcome.sequence, None)


class LosesWhatWaits(Broken):
    def spoil(self, batch, result):
        if not any(isinstance(command, SENDS) for command in batch.commands):
            for row in self.rows(Status.READY)[2:]:
                del self.pending.rows[row.seq]


class StoresTwice(Broken):
    def spoil(self, batch, result):
        for command, outcome in zip(batch.commands, result.outcomes, strict=True):
            if isinstance(command, Produce) and not isinstance(outcome, Exception):
                row = self.pending.rows.get(outcome.sequence)
                if row is not None:
                    self.pending.last_seq += 1
                    self.pending.rows[self.pending.last_seq] = msgspec.structs.replace(
                        row, seq=self.pending.last_seq, id=row.id[:-1] + "x"
                    )


class LeasesTwice(Broken):
    def spoil(self, batch, result):
        for index, command in enumerate(batch.commands):
            if not isinstance(command, Claim) or result.outcomes[index]:
                continue
            for row in self.rows(Status.PROCESSING):
                held = self._engine._committed.rows.get(row.seq) is row and row.lease_until > batch.now_ms
                if row.queue == command.queue and held:
                    self.change(row, token=1, attempts=row.attempts + 1)
                    again = Delivery(
                        row.id,
                        row.content,
                        str(Receipt(row.seq, 1)),
                        row.attempts + 1,
                        row.seq,
                        row.received_at,
                        row.lease_until,
                        row.priority,
                        row.received_at,
                    )
                    result.outcomes[index] = (again,)
                    return


class TakesAnyReceipt(Broken):
    def spoil(self, batch, result):
        for index, command in enumerate(batch.commands):
            if isinstance(command, Ack):
                result.outcomes[index] = (True,) * len(command.receipts)


class RefusesReceipts(Broken):
    def spoil(self, batch, result):
        for index, command in enumerate(batch.commands):
            if isinstance(command, Ack):
                result.outcomes[index] = (False,) * len(command.receipts)


class CountsReleases(Broken):
    def spoil(self, batch, result):
        for command in batch.commands:
            if isinstance(command, Release):
                for receipt in command.receipts:
                    row = self.pending.rows.get(receipt.seq)
                    if row is not None and row.status is Status.READY:
                        self.change(row, attempts=row.attempts + 1)


class GoesOnTrying(Broken):
    """Messages that have failed are ready again, where they were."""

    def spoil(self, batch, result):
        for row in self.rows(Status.FAILED):
            self.change(row, status=Status.READY)
        for row in self.rows(Status.READY):
            if row.failure_reason == REASON_MAX_ATTEMPTS and row.dead_lettered_at == batch.now_ms:
                self.change(row, queue=row.source_queue, attempts=row.source_attempts)


class ServesAtRandom(Broken):
    def asked(self, batch):
        return Batch(
            [
                msgspec.structs.replace(command, shuffle=True) if isinstance(command, Claim) else command
                for command in batch.commands
            ],
            batch.now_ms,
            batch.receivers,
        )


class ServesEarly(Broken):
    """To a receiver that asks, not to one that waits."""

    def asked(self, batch):
        for command in batch.commands:
            if isinstance(command, Claim):
                rows = self._engine._committed.rows
                for row in [row for row in rows.values() if row.queue == command.queue]:
                    if row.status is Status.DELAYED:
                        rows[row.seq] = msgspec.structs.replace(row, status=Status.READY)
        return batch


class ForgetsDelays(Broken):
    def asked(self, batch):
        commands = [
            msgspec.structs.replace(each, message=msgspec.structs.replace(each.message, delay_ms=None))
            if isinstance(each, Produce)
            else each
            for each in batch.commands
        ]
        return Batch(commands, batch.now_ms, batch.receivers)


class NeverPauses(Broken):
    def asked(self, batch):
        commands = [Pause(each.queue, False) if isinstance(each, Pause) else each for each in batch.commands]
        return Batch(commands, batch.now_ms, batch.receivers)

    def snapshot(self):
        """With the rules as they would be."""
        known = self._engine.snapshot()
        return Altered(
            known,
            rules=lambda queue: msgspec.structs.replace(known.rules(queue), paused=queue in self._paused),
        )

    _paused: frozenset[str] = frozenset()

    def spoil(self, batch, result):
        for command in batch.commands:
            if isinstance(command, Pause):
                paused = self._paused - {command.queue}
                self._paused = paused | {command.queue} if command.paused else paused


class IgnoresGroups(Broken):
    """It takes strict groups for others, and says that they are strict."""

    _strict: frozenset[str] = frozenset()

    def asked(self, batch):
        commands = [self._without_order(each) for each in batch.commands]
        return Batch(commands, batch.now_ms, batch.receivers)

    def _without_order(self, command):
        if not isinstance(command, Configure) or (command.change and command.change.group_order is UNSET):
            return command
        self._strict -= {command.queue}
        if command.change is None:
            return command
        if command.change.group_order is GroupOrder.STRICT:
            self._strict |= {command.queue}
        fair = msgspec.structs.replace(command.change, group_order=GroupOrder.FAIR)
        return msgspec.structs.replace(command, change=fair)

    def snapshot(self):
        known = self._engine.snapshot()

        def rules(queue: str) -> Any:
            is_strict = queue in self._strict or is_fifo_queue(queue)
            order = GroupOrder.STRICT if is_strict else GroupOrder.FAIR
            return msgspec.structs.replace(known.rules(queue), group_order=order)

        return Altered(known, rules=rules)


class HoldsForEver(Broken):
    """Messages of groups are held once they have waited for a while."""

    def spoil(self, batch, result):
        for row in self.rows(Status.READY)[2:]:
            if row.group:
                self.change(row, status=Status.HELD)


class ForgetsTime(Broken):
    def spoil(self, batch, result):
        result.next_due_ms = None


class ForgetsReceivers(Broken):
    def asked(self, batch):
        return Batch(batch.commands, batch.now_ms, {})


class LeasesToNobody(Broken):
    def spoil(self, batch, result):
        for row in self.rows(Status.READY)[2:]:
            self.change(row, status=Status.PROCESSING, lease_until=batch.now_ms + 9_000_000, token=2)


class Miscounts(Broken):
    def snapshot(self):
        known = self._engine.snapshot()
        return Altered(
            known,
            counts={queue: QueueCounts(ready=counts.ready + 1) for queue, counts in known.counts.items()},
        )


class MiscountsEvents(Broken):
    def spoil(self, batch, result):
        result.events = result.events[1:]


class ConfusesSweeps(Broken):
    """Answers them with nothing, which no job expects."""

    def spoil(self, batch, result):
        for index, command in enumerate(batch.commands):
            if isinstance(command, Sweep):
                result.outcomes[index] = None


class ForgetsOnceMore(Broken):
    def spoil(self, batch, result):
        for row in list(self.pending.rows.values()):
            if row.waiting is not None:
                self.change(row, key=msgspec.structs.replace(row.key, waiting=None))


class IgnoresUpdates(Broken):
    """It says that it changed a message, which it did not."""

    def spoil(self, batch, result):
        for command, outcome in zip(batch.commands, result.outcomes, strict=True):
            for offered in outcome if isinstance(command, OfferMany) and isinstance(outcome, tuple) else ():
                if isinstance(offered, Offered) and offered.outcome == "updated" and not offered.once_more:
                    self.restore(offered.sequence)

    def restore(self, sequence: int) -> None:
        row = self._engine._committed.rows.get(sequence)
        if row is not None and sequence in self.pending.rows:
            self.pending.rows[sequence] = row


class LeavesReceipts(IgnoresUpdates):
    """To whoever has a message that was changed."""

    def restore(self, sequence: int) -> None:
        before, row = self._engine._committed.rows.get(sequence), self.pending.rows.get(sequence)
        if before is not None and row is not None and before.token is not None:
            self.change(row, token=before.token, status=before.status, lease_until=before.lease_until)


class ForgetsLastCommit(MemoryStore):
    """A store that a crash sets back."""

    def open(self):
        engine = super().open()
        commit = engine.commit

        def remembering() -> bool:
            self._before = engine._committed
            return commit()

        self._before = engine._committed
        engine.commit = remembering
        return engine

    def crash(self):
        self._engine._committed = self._before


def spoiling(spoil: Callable[[Request, Response], Response]) -> Callable[[Handler], Handler]:
    """Handlers whose responses are spoiled."""

    def wrap(handler: Handler) -> Handler:
        async def handle(request: Request) -> Response:
            return spoil(request, await handler(request))

        return handle

    return wrap


def forget_unsent(request: Request, response: Response) -> Response:
    response.on_unsent = None
    return response


def say_it_was_sent(request: Request, response: Response) -> Response:
    if request.path.endswith("/messages") and request.method == "POST" and response.status == 503:
        return Response(204)
    return response


def say_it_was_acked(request: Request, response: Response) -> Response:
    if request.path.endswith("/messages/ack"):
        response.body = response.body.replace(b'"ok":false', b'"ok":true')
    return response


def never_answering(handler: Handler) -> Handler:
    async def handle(request: Request) -> Response:
        if request.path.endswith("/nack"):
            require_task()
            await trio.sleep_forever()
        return await handler(request)

    return handle


def crashing(handler: Handler) -> Handler:
    async def handle(request: Request) -> Response:
        if request.path.endswith("/extend"):
            raise RuntimeError("nobody foresaw this")
        return await handler(request)

    return handle
