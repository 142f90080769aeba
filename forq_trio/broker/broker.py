"""The broker: validates calls, sends them to the writer actor as commands, reads through the pool of readers.

Its only state is when access tokens were used, and running redrives; HTTP handlers, jobs and applications that embed
the queue share one broker.

Cancellation, for every method that changes something: cancelled before the writer took the command, nothing happens;
cancelled later, it is executed all the same and the caller does not learn the outcome. A cancelled `receive` gives its
messages back with the attempt uncounted. To repeat a send safely, give it a `deduplication_id`.
"""

from collections.abc import Mapping, Sequence

import trio

from forq_trio.broker.dead_letters import DeadLetters
from forq_trio.broker.parts import execute_in_parts
from forq_trio.broker.queues import Administration
from forq_trio.broker.redrives import Redrives
from forq_trio.broker.tokens import KnownTokens, Tokens
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_message, check_range, check_text
from forq_trio.model.clock import Clock
from forq_trio.model.commands import RedrivePolicy, SweepKind, Swept
from forq_trio.model.errors import CallerError, MessageNotFound, ProduceToDeadLetterQueue, ServiceError
from forq_trio.model.messages import (
    Delivery,
    MessageInfo,
    NewMessage,
    Produced,
    QueueCounts,
    QueueInfo,
    Receipt,
    check_message_id,
    check_queue_name,
    is_dead_letter_queue,
)
from forq_trio.readers.pool import ReaderPool
from forq_trio.writer_actor import WriterActor


class Broker(Administration, DeadLetters, Tokens):
    """Send, receive and settle messages. Made by `open_broker`; safe to use from any number of trio tasks.

    redrives: tasks that move all dead letters that match a filter.
    """

    def __init__(self, writer: WriterActor, readers: ReaderPool, clock: Clock) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock
        self._known_tokens = KnownTokens(writer, clock)
        self.redrives = Redrives(self, writer, clock)

    def check_message(self, message: NewMessage) -> NewMessage:
        """Return `message` if it may be stored; raises what `checks.check_message` raises."""
        return check_message(message, self._clock.now_ms())

    async def produce(
        self,
        queue: str,
        content: str,
        *,
        process_after_ms: int | None = None,
        delay_ms: int | None = None,
        priority: int = limits.PRIORITY_DEFAULT,
        deduplication_id: str | None = None,
        deduplication_window_ms: int | None = None,
        ttl_ms: int | None = None,
        attributes: dict[str, str] | None = None,
        group: str | None = None,
        max_attempts: int | None = None,
        dead_letter_queue: str | None = None,
    ) -> Produced:
        """Store one message; returns once it is durable (see FORQ_DURABILITY). Members as in `NewMessage`.

        Raises what `check_message` raises, InvalidQueueName, ProduceToDeadLetterQueue, QueueFull, Overloaded,
        Stopping, StorageUnavailable (nothing stored) or OutcomeUnknown.
        """
        message = NewMessage(
            content,
            process_after_ms,
            priority,
            deduplication_id,
            deduplication_window_ms,
            delay_ms,
            ttl_ms,
            attributes,
            group,
            max_attempts,
            dead_letter_queue,
        )
        return await self.produce_message(queue, message)

    async def produce_message(self, queue: str, message: NewMessage) -> Produced:
        """Store one message, like `produce`."""
        self.check_producible(queue)
        return await self._writer.execute(commands.Produce(queue, self.check_message(message)))

    async def produce_across(
        self,
        messages: Sequence[tuple[str, NewMessage]],
        *,
        messages_max: int | None = None,
        content_bytes_max: int = limits.CONTENT_BYTES_MAX,
    ) -> list[Produced | CallerError | ServiceError]:
        """Store messages of several queues in one commit, each alone: one that is refused does not affect the others.

        Dead-letter queues are allowed. messages_max: one more bound on the messages of each queue (QueueFull), None for
        no other bound than the rules'. content_bytes_max: the bound on each content (ContentTooLarge).
        Results in the order of the messages: for a refused one the error that `produce` would raise.
        """
        check_range("number of messages", len(messages), 0, limits.PRODUCE_BATCH_MAX)
        results: list[Produced | CallerError | ServiceError | None] = []
        accepted = []
        now_ms = self._clock.now_ms()
        for queue, message in messages:
            try:
                accepted.append((check_queue_name(queue), check_message(message, now_ms, content_bytes_max)))
                results.append(None)
            except CallerError as error:
                results.append(error)
        stored: tuple[Produced | ServiceError, ...] = ()
        if accepted:
            stored = await self._writer.execute(commands.ProduceEach(tuple(accepted), messages_max))
        rest = iter(stored)
        return [next(rest) if result is None else result for result in results]

    async def produce_many(self, queue: str, messages: Sequence[NewMessage]) -> tuple[Produced, ...]:
        """Store up to 1,000 messages in one commit, all or none; results in their order. Raises like `produce`."""
        self.check_producible(queue)
        check_range("number of messages", len(messages), 1, limits.PRODUCE_BATCH_MAX)
        checked = tuple(map(self.check_message, messages))
        return await self._writer.execute(commands.ProduceMany(queue, checked))

    async def produce_each(self, queue: str, messages: Sequence[NewMessage]) -> list[Produced | CallerError]:
        """Store the valid ones of up to 1,000 messages in one commit, all or none; the others are refused alone.

        Results in the order of the messages; for a refused one the error that `produce` would raise.
        """
        self.check_producible(queue)
        check_range("number of messages", len(messages), 0, limits.PRODUCE_BATCH_MAX)
        refused: dict[int, CallerError] = {}
        accepted = []
        for index, message in enumerate(messages):
            try:
                accepted.append(self.check_message(message))
            except CallerError as error:
                refused[index] = error
        produced: tuple[Produced, ...] = ()
        if accepted:
            produced = await self._writer.execute(commands.ProduceMany(queue, tuple(accepted)))
        if not refused:
            return list(produced)
        rest = iter(produced)
        return [refused[index] if index in refused else next(rest) for index in range(len(messages))]

    def check_producible(self, queue: str) -> None:
        """Raise InvalidQueueName or ProduceToDeadLetterQueue unless messages may be sent to `queue`."""
        if is_dead_letter_queue(check_queue_name(queue)):
            raise ProduceToDeadLetterQueue

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait_ms: int = 0,
        lease_ms: int | None = None,
        shuffle: bool = False,
        redrive_policy: RedrivePolicy | None = None,
    ) -> tuple[Delivery, ...]:
        """Lease up to `max_messages` (1-100) for `lease_ms` (None: the queue's), in claim order or at random.

        Waits up to `wait_ms` (0-30,000) for the first one; returns () when none came. Among waiting receivers the one
        that waits longest is served first. redrive_policy: this consumer's own bound on deliveries.
        Raises InvalidQueueName, OutOfRange, Overloaded, Stopping, StorageUnavailable or OutcomeUnknown.
        """
        check_queue_name(queue)
        check_range("max_messages", max_messages, 1, limits.RECEIVE_BATCH_MAX)
        check_range("wait_ms", wait_ms, 0, limits.WAIT_MS_MAX)
        if lease_ms is not None:
            check_range("lease_ms", lease_ms, 0, limits.LEASE_MS_MAX)
        if redrive_policy is not None:
            if redrive_policy.max_attempts is not None:
                check_range("max_attempts", redrive_policy.max_attempts, 1, limits.MAX_ATTEMPTS_MAX)
            if redrive_policy.dead_letter_queue:
                check_queue_name(redrive_policy.dead_letter_queue)
        return await self._writer.execute(
            commands.Claim(queue, max_messages, lease_ms, wait_ms, shuffle, redrive_policy)
        )

    def undeliver(self, queue: str, deliveries: Sequence[Delivery]) -> None:
        """Release messages whose consumer disconnected before it got them, the attempt uncounted. Does not wait."""
        receipts = tuple(Receipt.parse(delivery.receipt) for delivery in deliveries)
        self._writer.post(commands.Release(queue, receipts))

    async def ack(self, queue: str | None, receipts: Sequence[str]) -> tuple[bool, ...]:
        """Remove up to 1,000 delivered messages; per receipt, False if it is not the current one.

        queue: None takes receipts of any queue. Raises MalformedReceipt (nothing is removed then), and what `receive`
        raises.
        """
        parsed = self._parse_receipts(queue, receipts)
        return await execute_in_parts(self._writer, parsed, lambda part: commands.Ack(queue, part))

    async def nack(
        self, queue: str, receipts: Sequence[str], *, delay_ms: int | None = None, reason: str | None = None
    ) -> tuple[bool, ...]:
        """Give messages back after a failed attempt, for `delay_ms` (None: the back-off by attempt).

        A message whose attempts are used up fails instead and goes to the dead-letter queue. Results like `ack`.
        Raises InvalidContent for a reason that UTF-8 cannot carry, and what `ack` raises.
        """
        if delay_ms is not None:
            check_range("delay_ms", delay_ms, 0, limits.NACK_DELAY_MS_MAX)
        if reason is not None:
            check_text("reason", reason, 0, limits.REASON_LENGTH_MAX)
        parsed = self._parse_receipts(queue, receipts)
        return await execute_in_parts(
            self._writer, parsed, lambda part: commands.Nack(queue, part, delay_ms, reason)
        )

    async def extend(
        self, queue: str | None, receipts: Sequence[str], lease_ms: int
    ) -> tuple[int | None, ...]:
        """Let leases end `lease_ms` from now; per receipt the new end in epoch ms, None if it is not current.

        queue: None takes receipts of any queue.
        """
        check_range("lease_ms", lease_ms, 0, limits.LEASE_MS_MAX)
        parsed = self._parse_receipts(queue, receipts)
        return await execute_in_parts(
            self._writer, parsed, lambda part: commands.Extend(queue, part, lease_ms)
        )

    async def release(self, queue: str, receipts: Sequence[str], *, delay_ms: int = 0) -> tuple[bool, ...]:
        """Give messages back unprocessed, the attempt uncounted, after `delay_ms`. Results like `ack`."""
        check_range("delay_ms", delay_ms, 0, limits.NACK_DELAY_MS_MAX)
        parsed = self._parse_receipts(queue, receipts)
        return await execute_in_parts(
            self._writer, parsed, lambda part: commands.Release(queue, part, delay_ms)
        )

    async def ack_message(self, queue: str, message_id: str, receipt: str | None) -> None:
        """Forq's ack of one message. With a receipt: raises MessageNotFound unless it is current and the message's.

        Without one: removes the message if it is processing, else does nothing (Forq's guide).
        Raises MalformedMessageId, MalformedReceipt, and what `receive` raises.
        """
        check_queue_name(queue)
        message_id = check_message_id(message_id)
        if receipt is None:
            await self._writer.execute(commands.AckById(queue, message_id))
            return
        command = commands.Ack(queue, (Receipt.parse(receipt),), message_id)
        if not (await self._writer.execute(command))[0]:
            raise MessageNotFound

    async def nack_message(self, queue: str, message_id: str, receipt: str | None) -> None:
        """Forq's nack of one message, with the back-off by attempt; receipts and errors as for `ack_message`."""
        check_queue_name(queue)
        message_id = check_message_id(message_id)
        if receipt is None:
            await self._writer.execute(commands.NackById(queue, message_id))
            return
        command = commands.Nack(queue, (Receipt.parse(receipt),), message_id=message_id)
        if not (await self._writer.execute(command))[0]:
            raise MessageNotFound

    async def sweep(self, kind: SweepKind) -> Swept:
        """Run one step of a sweep (contract F13), at most SWEEP_BATCH_MAX messages."""
        return await self._writer.execute(commands.Sweep(kind))

    async def optimize(self) -> None:
        """Let the database refresh its statistics."""
        await self._writer.execute(commands.Optimize())

    async def ping(self) -> None:
        """Return if the write connection works; raise a ServiceError if not."""
        await self._writer.execute(commands.Ping())

    def counts(self) -> Mapping[str, QueueCounts]:
        """Messages by status of every known queue, as of the last commit; from the cache, without a query."""
        return dict(self._writer.snapshot().counts)

    def counts_of(self, queue: str) -> QueueCounts:
        """Messages by status of one queue; zeros for a queue that is not known."""
        return self._writer.snapshot().counts.get(queue) or QueueCounts()

    def waiting(self, queue: str) -> int:
        """How many receivers are parked on `queue`."""
        return self._writer.parked.count(queue)

    async def queues(self) -> list[QueueInfo]:
        """All known queues by name, without oldest_ready_at. A cancelled read is interrupted.

        Raises ReadDeadlineExceeded, StorageUnavailable or Stopping, as do all reads.
        """
        return await self._readers.run(lambda reader: reader.queues())

    async def stats(self, queue: str) -> QueueInfo:
        """One queue; zeros for a queue that is not known."""
        check_queue_name(queue)
        return await self._readers.run(lambda reader: reader.queue(queue))

    async def message(self, queue: str, message_id: str) -> MessageInfo:
        """One message, read without changing it. Raises MalformedMessageId or MessageNotFound."""
        check_queue_name(queue)
        wanted = check_message_id(message_id)
        found = await self._readers.run(lambda reader: reader.message(queue, wanted))
        if found is None:
            raise MessageNotFound
        return found

    async def peek(
        self, queue: str, *, limit: int = 1, shuffle: bool = False, wait_ms: int = 0
    ) -> list[MessageInfo]:
        """The next ready messages (1-100) in claim order, or random ones, without claiming them.

        Waits up to `wait_ms` (0-30,000) for the first one. Cancelled, nothing happens.
        """
        check_queue_name(queue)
        check_range("limit", limit, 1, limits.BROWSE_PAGE_MAX)
        check_range("wait_ms", wait_ms, 0, limits.WAIT_MS_MAX)
        deadline = trio.current_time() + wait_ms / 1_000
        with self._writer.watches.on(queue) as watch:
            while True:
                ready = watch.event
                found = await self._peek(queue, limit, shuffle)
                if found or trio.current_time() >= deadline or self._writer.watches.closed:
                    return found
                with trio.move_on_at(deadline):
                    await ready.wait()

    async def _peek(self, queue: str, limit: int, shuffle: bool) -> list[MessageInfo]:
        if shuffle:
            return await self._readers.run(lambda reader: reader.peek_shuffled(queue, limit))
        return await self._readers.run(lambda reader: reader.peek(queue, limit))

    async def queues_of(self, receipts: Sequence[str]) -> list[str | None]:
        """The queue of each receipt's message; None for one that does not exist. Raises MalformedReceipt."""
        sequences = [receipt.seq for receipt in map(Receipt.parse, receipts)]
        queues = await self._readers.run(lambda reader: reader.queues_of(sequences))
        return [queues.get(sequence) for sequence in sequences]

    async def browse(
        self, queue: str, *, before_sequence: int | None = None, limit: int = 50
    ) -> list[MessageInfo]:
        """Messages newest first, those below `before_sequence` (None: from the newest), 1-100 a page."""
        check_queue_name(queue)
        check_range("limit", limit, 1, limits.BROWSE_PAGE_MAX)
        return await self._readers.run(lambda reader: reader.browse(queue, before_sequence, limit))

    @staticmethod
    def _parse_receipts(queue: str | None, receipts: Sequence[str]) -> tuple[Receipt, ...]:
        if queue is not None:
            check_queue_name(queue)
        check_range("number of receipts", len(receipts), 1, limits.RECEIPTS_BATCH_MAX)
        return tuple(map(Receipt.parse, receipts))
