"""How commands about messages are executed on a table, and which are refused because tables do not support them."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from forq_trio.model import commands
from forq_trio.model.commands import Command
from forq_trio.model.consumers.consuming import Consuming
from forq_trio.model.errors import ForqError, MalformedReceipt, QueueBound
from forq_trio.model.messages.receipts import ReceiptResult
from forq_trio.model.messages.types import Receipt
from forq_trio.storage.engine import ACKED, CLEANED_UP, NACKED, RELEASED


class TableReceipt(Receipt):
    """A receipt of a table, which is a text. To an engine it is a receipt that matches no message."""

    text: str

    @classmethod
    def of(cls, text: str) -> "TableReceipt":
        receipt = cls(0, 0)
        receipt.text = text
        return receipt

    @property
    def message_id(self) -> str:
        """The id of its message, with which the text begins."""
        return self.text.partition("|")[0]

    def __str__(self) -> str:
        return self.text


class TableSettlement(NamedTuple):
    """How receipts of a table are settled, with the methods of a worker's source."""

    # Arguments: the tables, the name of the table, the receipts, the command.
    settle: Callable[[Consuming, str, list[str], Any], Awaitable[list[ReceiptResult]]]
    event: str = ""  # the event to count for each receipt that was current, "" for none
    reason: str = ""  # the reason of the event


SETTLEMENTS: dict[type[Command[Any]], TableSettlement] = {
    commands.Ack: TableSettlement(lambda tables, table, receipts, _: tables.ack(table, receipts), ACKED),
    commands.Nack: TableSettlement(
        lambda tables, table, receipts, nack: tables.nack(
            table,
            receipts,
            delay_ms=nack.delay_ms,
            reason=nack.reason,
            final=nack.final,
            max_attempts=nack.max_attempts,
        ),
        NACKED,
    ),
    commands.DiscardMessages: TableSettlement(
        lambda tables, table, receipts, discard: tables.discard(table, receipts, reason=discard.reason),
        CLEANED_UP,
        "consumer",
    ),
    commands.Extend: TableSettlement(
        lambda tables, table, receipts, extend: tables.extend(table, receipts, extend.lease_ms)
    ),
    commands.Release: TableSettlement(
        lambda tables, table, receipts, release: tables.release(table, receipts, delay_ms=release.delay_ms),
        RELEASED,
    ),
}


def table_outcome(result: ReceiptResult) -> bool | int:
    """The outcome of a command for a receipt that was settled on a table."""
    if result.failed:
        return commands.Nacked.FAILED
    return result.ok if result.lease_until is None else result.lease_until


_WITHOUT_RECEIPT = "a settlement without a receipt"
_NAMES: dict[type[Command[Any]], str] = {
    commands.AckById: _WITHOUT_RECEIPT,
    commands.NackById: _WITHOUT_RECEIPT,
    commands.Claim: "a receive at random or with a redrive policy",
    commands.Cancel: "a cancellation",
    commands.CancelRunning: "a cancellation",
    commands.Pause: "a pause",
    commands.Purge: "a purge",
    commands.OpenConsumer: "a consumer of a pipeline",
}
"""The callers' names for the commands that tables do not support; for a claim, the name of its unsupported option."""


def refusal_of(command: Command[Any], table: str) -> ForqError:
    """Why a command is refused for a queue that is bound to this table."""
    if isinstance(command, commands.AckById | commands.NackById) and command.token is not None:
        return MalformedReceipt()  # it belongs to a message of Forq's own file
    called = _NAMES.get(type(command)) or command.traits.called or type(command).__name__
    return not_possible(called, table)


def not_possible(what: str, table: str) -> QueueBound:
    return QueueBound(f"the queue is bound to the table {table!r}: {what} is not possible")
