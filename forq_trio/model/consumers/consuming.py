"""The methods of a broker and a client that consumers of messages use; both have them in the same form."""

from typing import Protocol

from forq_trio.model.messages.receipts import ReceiptResult
from forq_trio.model.messages.types import Delivery
from forq_trio.model.messages.where import Wanted


class Consuming(Protocol):
    """A `Broker`, an `AsyncForqClient`, or the `Tables` of `forq_trio.pgq`, which document the methods."""

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = ...,
        wait_ms: int = ...,
        lease_ms: int | None = ...,
        where: Wanted | None = ...,
    ) -> list[Delivery]: ...

    async def ack(self, queue: str, receipts: list[str]) -> list[ReceiptResult]: ...

    async def nack(
        self,
        queue: str,
        receipts: list[str],
        *,
        delay_ms: int | None = ...,
        reason: str | None = ...,
        final: bool = ...,
        max_attempts: int | None = ...,
    ) -> list[ReceiptResult]: ...

    async def release(
        self, queue: str, receipts: list[str], *, delay_ms: int = ...
    ) -> list[ReceiptResult]: ...

    async def discard(self, queue: str, receipts: list[str], *, reason: str) -> list[ReceiptResult]: ...

    async def extend(
        self, queue: str, receipts: list[str], lease_ms: int | None = ...
    ) -> list[ReceiptResult]: ...
