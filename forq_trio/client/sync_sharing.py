"""Acks of the blocking client share no request: a thread waits for each."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forq_trio.model.messages.receipts import ReceiptResult


class SharedAcks:
    """The acks of one client."""

    def ack(
        self, queue: str, receipts: list[str], send: "Callable[[str, list[str]], list[ReceiptResult]]"
    ) -> "list[ReceiptResult]":
        return send(queue, receipts)
