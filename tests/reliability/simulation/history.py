"""What happened in a trial, and the promises it is held against.

Producers and consumers note what they asked and were told; the engine notes what it committed. A violated promise is an
AssertionError at the moment it shows, or at the end of the trial.
"""

import random
from collections import Counter
from collections.abc import Sequence

from forq_trio.model import limits
from forq_trio.model.messages.types import Delivery, MessageInfo, Produced, QueueCounts
from forq_trio.storage.engine import Batch, BatchResult, Engine
from forq_trio.writer_actor import WriterActor
from support.actors import ObservedEngine


class RecordedEngine(ObservedEngine):
    """Tells the history what it committed. fail_commit: fail the next one, "before" or "after" it became durable."""

    def __init__(self, engine: Engine, history: "History") -> None:
        super().__init__(engine)
        self._history = history
        self._result: BatchResult | None = None
        self._now_ms = 0
        self.fail_commit = ""

    def execute_batch(self, batch: Batch) -> BatchResult:
        self._result = super().execute_batch(batch)
        self._now_ms = batch.now_ms
        return self._result

    def commit(self) -> bool:
        if self.fail_commit == "before":
            raise OSError("the disk went away")
        changed = super().commit()
        assert self._result is not None
        try:
            self._history.committed(self._result, self._now_ms)
        except AssertionError as error:
            # Raised from here it would only be another failed commit.
            self._history.violations.append(error)
        if self.fail_commit == "after":
            raise OSError("the disk went away")
        return changed


class Settlement:
    """One attempt to settle a delivery. While its outcome is open, the message may be anybody's."""

    def __init__(self, history: "History", delivery: Delivery, held_until: int | None) -> None:
        self._history = history
        self._delivery = delivery
        self._held_until = held_until

    def acked(self, done: bool) -> None:
        if done:
            self._history.acked.add(self._delivery.content)

    def extended(self, lease_until: int | None) -> None:
        if (
            lease_until is not None
            and self._history.latest[self._delivery.content][1] == self._delivery.receipt
        ):
            self._history.holders[self._delivery.content] = lease_until

    def refused(self) -> None:
        """Nothing changed: who held the message holds it still, unless somebody got it meanwhile."""
        history, content = self._history, self._delivery.content
        history.maybe_acked.pop(self._delivery.receipt, None)
        if self._held_until is not None and history.latest[content][1] == self._delivery.receipt:
            history.holders.setdefault(content, self._held_until)


class History:
    """acked: contents whose acknowledgement was confirmed; maybe_acked: those for which one was asked, by receipt.

    latest: per content the id, receipt and attempts of its latest committed delivery. holders: until when a consumer
    holds it. violations: what the engine saw go wrong.
    """

    def __init__(self) -> None:
        self.acked: set[str] = set()
        self.maybe_acked: dict[str, str] = {}
        self.latest: dict[str, tuple[str, str, int]] = {}
        self.holders: dict[str, int] = {}
        self._delayed: set[str] = set()
        self._sent: dict[str, int] = {}
        self._refused: set[str] = set()
        self._receipts: list[tuple[str, str, str]] = []
        self._lines: dict[str, tuple[str, str | None]] = {}
        self._newest: dict[tuple[str, str | None], int] = {}
        self._leased: set[str] = set()
        self.violations: list[AssertionError] = []

    def begin_life(self) -> None:
        self._leased.clear()

    # What producers and consumers saw

    def sending(self, queue: str, contents: Sequence[str], group: str | None, *, delayed: bool) -> None:
        self._lines.update(dict.fromkeys(contents, (queue, group)))
        if delayed:
            self._delayed.update(contents)

    def sent(self, contents: Sequence[str], produced: Sequence[Produced]) -> None:
        for content, each in zip(contents, produced, strict=True):
            assert each.sequence not in self._sent.values(), f"sequence {each.sequence} was used twice"
            self._sent[content] = each.sequence

    def refused(self, contents: Sequence[str]) -> None:
        self._refused.update(contents)

    def received(self, queue: str, deliveries: Sequence[Delivery]) -> None:
        for group in {delivery.group for delivery in deliveries}:
            sequences = [delivery.sequence for delivery in deliveries if delivery.group == group]
            assert sequences == sorted(sequences), "a receiver got its messages out of order"
        for delivery in deliveries:
            self._receipts.append((queue, delivery.receipt, delivery.content))
            if self.latest[delivery.content][1] == delivery.receipt:
                self.holders[delivery.content] = delivery.lease_until

    def settling(self, queue: str, delivery: Delivery) -> Settlement:
        held_until = None
        if self.latest[delivery.content][1] == delivery.receipt:
            held_until = self.holders.pop(delivery.content, None)
        return Settlement(self, delivery, held_until)

    def acking(self, delivery: Delivery) -> None:
        self.maybe_acked[delivery.receipt] = delivery.content

    def stale_receipt(self, rng: random.Random) -> tuple[str, list[str]] | None:
        """A receipt of which a later delivery is known, with its queue."""
        stale = [
            (queue, [receipt])
            for queue, receipt, content in self._receipts
            if self.latest[content][1] != receipt
        ]
        return rng.choice(stale) if stale else None

    # What the engine committed

    def committed(self, result: BatchResult, now_ms: int) -> None:
        deliveries = [
            delivery
            for outcome in result.outcomes
            if isinstance(outcome, tuple)
            for delivery in outcome
            if isinstance(delivery, Delivery)
        ]
        deliveries += [delivery for _, share in result.served for delivery in share]
        for delivery in sorted(deliveries, key=lambda delivery: delivery.sequence):
            self._delivered(delivery, now_ms)

    def _delivered(self, delivery: Delivery, now_ms: int) -> None:
        content = delivery.content
        assert self.holders.get(content, 0) <= now_ms, f"{content} has two holders"
        assert content not in self.acked, f"{content} was acknowledged and came again"
        assert content not in self._refused, f"{content} was refused and came all the same"
        most = delivery.max_attempts or limits.ATTEMPTS_MAX_DEFAULT  # a nack may have given it more
        assert 1 <= delivery.attempts <= most, delivery
        assert self._sent.get(content, delivery.sequence) == delivery.sequence
        if content not in self.latest and content not in self._delayed:
            line = self._lines[content]
            assert delivery.sequence > self._newest.get(line, 0), f"{content} was overtaken in {line}"
            self._newest[line] = delivery.sequence
        self._leased.add(delivery.receipt)
        self.latest[content] = (delivery.id, delivery.receipt, delivery.attempts)

    def check_parked(self, engine: Engine, writer: WriterActor) -> None:
        """After the answers of a batch: nobody waits on a queue in which a message is ready, unless it is paused."""
        counts = engine.snapshot().counts
        for queue in writer.parked:
            if engine.snapshot().rules(queue).paused:
                continue
            ready = counts.get(queue, QueueCounts()).ready
            assert ready == 0, f"{writer.parked.count(queue)} wait on {queue} with {ready} ready"

    def check_leases(self, engine: Engine) -> None:
        """When everybody is done: each message in process was really handed to somebody in this life."""
        received = {receipt for _, receipt, _ in self._receipts}
        for message in _stored(engine):
            if message.status == "processing":
                receipt = self.latest[message.content][1]
                assert receipt in received or receipt not in self._leased, f"nobody holds {message}"

    # The end

    def check_end(self, engine: Engine) -> None:
        stored = _stored(engine)
        contents = Counter(message.content for message in stored)
        assert all(count == 1 for count in contents.values()), "a message is stored twice"
        assert not self._refused & set(contents), "a refused message is stored"
        assert not self.acked & set(contents), "an acknowledged message is stored"
        accounted = set(contents) | self.acked | set(self.maybe_acked.values())
        for content, sequence in self._sent.items():
            assert content in accounted or self._died(content), (
                f"message {content} (sequence {sequence}) is lost"
            )
        self._check_counts(engine, stored)
        self._check_held(stored)

    def _check_counts(self, engine: Engine, stored: Sequence[MessageInfo]) -> None:
        counted = Counter((message.queue, message.status) for message in stored)
        for queue, counts in engine.snapshot().counts.items():
            in_table = QueueCounts(
                counted[queue, "ready"],
                counted[queue, "processing"],
                counted[queue, "failed"],
                counted[queue, "delayed"],
                counted[queue, "held"],
                sum(message.bytes for message in stored if message.queue == queue),
            )
            assert counts == in_table, f"{queue}: counts {counts}, table {in_table}"

    def _check_held(self, stored: Sequence[MessageInfo]) -> None:
        """Somebody will let go who is held: one of its group is in process, or ready."""
        active = {
            (message.queue, message.group) for message in stored if message.status in ("ready", "processing")
        }
        for message in stored:
            if message.status == "held":
                assert (message.queue, message.group) in active, f"nobody will let go {message}"

    def _died(self, content: str) -> bool:
        """It used up its attempts in a dead-letter queue: deleted by rule (F7)."""
        return content in self.latest and self.latest[content][2] >= limits.ATTEMPTS_MAX_DEFAULT


def _stored(engine: Engine) -> list[MessageInfo]:
    reader = engine.open_reader()
    try:
        stored = []
        for queue in engine.snapshot().counts:
            before = None
            while page := reader.browse(queue, before, 100):
                stored += page
                before = page[-1].sequence
        return stored
    finally:
        reader.close()
