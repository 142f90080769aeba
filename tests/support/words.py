"""Short words for commands and outcomes."""

from collections.abc import Sequence
from typing import Any

import trio

from forq_trio.model.commands import Ack, Claim, Command, Nack, Produce, Release
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, Receipt
from forq_trio.writer_actor import WriterActor

LEASE_MS = 300_000


def send(content: str = "x", queue: str = "q", **fields: Any) -> Produce:
    return Produce(queue, NewMessage(content, **fields))


def claim(wait_ms: int = 0, queue: str = "q", most: int = 1, lease_ms: int = LEASE_MS) -> Claim:
    return Claim(queue, most, lease_ms, wait_ms)


def ack(*deliveries: Delivery, queue: str = "q") -> Ack:
    return Ack(queue, receipts(deliveries))


def nack(*deliveries: Delivery, queue: str = "q", delay_ms: int | None = None) -> Nack:
    return Nack(queue, receipts(deliveries), delay_ms)


def release(*deliveries: Delivery, queue: str = "q") -> Release:
    return Release(queue, receipts(deliveries))


def receipts(deliveries: Sequence[Delivery]) -> tuple[Receipt, ...]:
    return tuple(Receipt.parse(delivery.receipt) for delivery in deliveries)


def contents(deliveries: Sequence[Delivery]) -> list[str]:
    return [delivery.content for delivery in deliveries]


class Pending:
    """A call somebody waits for in a task of its own. `outcome` is what came of it: a value, an error, or None yet."""

    def __init__(self, nursery: trio.Nursery, writer: WriterActor, command: Command[Any]) -> None:
        self.scope = trio.CancelScope()
        self.outcome: Any = None
        self.at: float | None = None
        self.left = False
        self._done = trio.Event()
        nursery.start_soon(self._run, writer, command)

    async def _run(self, writer: WriterActor, command: Command[Any]) -> None:
        with self.scope:
            try:
                self.outcome = await writer.execute(command)
            except Exception as error:
                self.outcome = error
            self.at = trio.current_time()
        self.left = self.scope.cancelled_caught
        self._done.set()

    def cancel(self) -> None:
        self.scope.cancel()

    async def finished(self) -> Any:
        """The outcome, once it is there. An hour (simulated, where time is) without one is a failure."""
        with trio.fail_after(3_600):
            await self._done.wait()
        return self.outcome
