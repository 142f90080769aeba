"""What the SQS dialect asks for besides the methods of all callers. A part of `Broker`.

Its messages are checked by the dialect, whose bounds are wider than those of the others.
"""

from collections.abc import Sequence

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.queue_names import name_queues
from forq_trio.model import commands
from forq_trio.model.commands import Claims
from forq_trio.model.errors import ForqError
from forq_trio.model.holders import token_of_task
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced, Receipt
from forq_trio.model.queues.setting_checks import check_change
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.model.sqs.types import SqsChange


class SqsCalls(BrokerBase):
    """Cancelled, a command that the writer has taken is executed nevertheless."""

    async def store_message(self, queue: str, message: NewMessage, *, known_only: bool = False) -> Produced:
        """Store a message that is checked already, or was when it was first sent.

        known_only: raise QueueNotFound instead of making the queue.
        """
        backend = self._backends.of(queue)
        backend.check_message(message)
        if token_of_task() is not None:  # a send with the secret is spared the call
            await name_queues(self._writer, queue, message.dead_letter_queue)
        return await backend.execute(commands.Produce(queue, message, known_only))

    async def store_messages(
        self, queue: str, messages: Sequence[NewMessage]
    ) -> Sequence[Produced | ForqError]:
        """`store_message` for many, all or none; the table of a bound queue may refuse some.

        Raises QueueFull, and QueueNotFound instead of making the queue.
        """
        backend = self._backends.of(queue)
        for message in messages:
            backend.check_message(message)
        await name_queues(self._writer, queue)
        if not messages:
            return ()
        return await backend.execute(commands.ProduceMany(queue, tuple(messages), known_only=True))

    async def change_sqs_queue(self, queue: str, change: SettingsChange, sqs: SqsChange) -> None:
        """Change the settings of a queue and what SQS says of it, in one commit; the queue exists from then on.

        Raises InvalidSetting, TooManyQueues, and the errors of `WriterActor.execute`.
        """
        command = commands.Configure(queue, check_change(queue, change), sqs, token_of_task() or "")
        await name_queues(self._writer, change.dead_letter_queue or None)
        await self._writer.execute(command)

    async def take_over(self) -> bool:
        """Learn what other servers on the same database have changed. False if no others use it."""
        if not self.known.shared:
            return False
        await self._writer.execute(commands.Ping())  # its batch first takes over their changes
        return True

    def read_receipt(self, queue: str, text: str) -> Receipt:
        """A receipt of a message of this queue. Raises MalformedReceipt."""
        return self._backends.of(queue).parse_receipt(text)

    async def ack_claims(self, queue: str, receipts: Sequence[Receipt], claims: Claims) -> Sequence[bool]:
        """Acknowledge messages by receipts of these claims; False where there is no such message."""
        return await self._backends.of(queue).execute_in_parts(
            receipts, lambda part: commands.Ack(queue, part, claims=claims)
        )

    async def extend_claims(
        self, queue: str, receipts: Sequence[Receipt], lease_ms: int, claims: Claims
    ) -> Sequence[int | None]:
        """Extend leases by receipts of these claims; None where there is no such message."""
        ends = await self._backends.of(queue).execute_in_parts(
            receipts, lambda part: commands.Extend(queue, part, lease_ms, claims)
        )
        return [end or None for end in ends]  # a table says False

    async def present(self, queue: str, receipts: Sequence[Receipt]) -> list[bool]:
        """Whether the message of each receipt is in the queue, even if it was received again since."""
        return await self._backends.of(queue).present(queue, receipts)
