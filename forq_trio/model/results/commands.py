"""The command that stores a result."""

from forq_trio.model.command import Command, CommandOrder, Effect, Traits
from forq_trio.model.messages.receive_commands import Ack
from forq_trio.model.messages.types import Receipt


def _receipts(command: "AckWithResult") -> int:
    return len(command.receipts)


def _bytes(command: "AckWithResult") -> int:
    return len(command.receipts) * len(command.result.encode())


class AckWithResult(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove the messages of these receipts, and store each with the result in the history, also while that is off.

    Outcome per receipt: False if it is not the current one. While the disk is nearly full it is an ack without a
    result: results would take the space that claims and acks need, and a refused ack would have the work done again.
    """

    traits = Traits(
        CommandOrder.RESULTS, Effect.REPEATS, weighs=_receipts, stores=_bytes, called="an ack with a result"
    )

    queue: str | None  # None takes receipts of any queue
    receipts: tuple[Receipt, ...]
    result: str
    keep_ms: int  # retention by age leaves it for so long

    def when_full(self) -> Ack:
        return Ack(self.queue, self.receipts)
