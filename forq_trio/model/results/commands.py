"""The command that stores a result."""

from forq_trio.model.command import Command, CommandOrder, Effect, Traits
from forq_trio.model.messages.types import Receipt


def _receipts(command: "AckWithResult") -> int:
    return len(command.receipts)


def _bytes(command: "AckWithResult") -> int:
    return len(command.receipts) * len(command.result.encode())


class AckWithResult(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove the messages of these receipts, and keep each with the result in the history, also while that is off.

    Outcome per receipt: False if it is not the current one.
    """

    traits = Traits(CommandOrder.RESULTS, Effect.REPEATS, weighs=_receipts, stores=_bytes)

    queue: str | None  # None takes receipts of any queue
    receipts: tuple[Receipt, ...]
    result: str
    keep_ms: int  # retention by age leaves it for so long
