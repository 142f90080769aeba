"""The queue inside a program of yours: one producer, two workers, a retry, and a look at what failed for good.

    python examples/embedded.py [queue.db]

There is no server: `open_broker` runs the writer, the readers and the jobs next to your own tasks, and stops them when
the block ends. What was sent stays in the file; start the program again and it goes on where it was.
"""

import sys
import tempfile
from pathlib import Path

import trio

from forq_trio import Broker, Delivery, open_broker

ORDERS = ("3 apples", "1 pear", "many plums", "2 figs", "some quinces")
ATTEMPTS_MAX = 5


async def produce(broker: Broker) -> None:
    """Send the orders; each is on disk when `produce` returns. Run twice in five minutes, they are sent once."""
    for order in ORDERS:
        await broker.produce("orders", order, deduplication_id=order)


async def work(broker: Broker, name: str, handled: list[str]) -> None:
    """Take orders until there are none for a second."""
    while deliveries := await broker.receive("orders", wait_ms=1_000, lease_ms=30_000):
        for delivery in deliveries:
            await handle(broker, name, delivery, handled)


async def handle(broker: Broker, name: str, delivery: Delivery, handled: list[str]) -> None:
    """Acknowledge what worked. What did not comes back, here after 10 ms, and is given up at the fifth attempt."""
    amount = delivery.content.split()[0]
    if amount.isdigit():
        await broker.ack("orders", delivery)
        handled.append(delivery.content)
        print(f"{name}: {delivery.content}")
    else:
        await broker.nack("orders", delivery, delay_ms=10, reason=f"{amount!r} is not a number")
        print(f"{name}: {delivery.content}? (attempt {delivery.attempts} of {ATTEMPTS_MAX})")


async def look_at_failures(broker: Broker) -> list[str]:
    """Take what failed out of the dead-letter queue."""
    failed: list[str] = []
    while deliveries := await broker.receive("orders-dlq", wait_ms=500):
        for delivery in deliveries:
            message = await broker.message("orders-dlq", delivery.id)
            print(f"failed: {message.content} ({message.last_error})")
            await broker.ack("orders-dlq", delivery)
            failed.append(message.content)
    return failed


async def main(path: Path) -> tuple[list[str], list[str]]:
    """Returns what was handled and what failed, in that order."""
    handled: list[str] = []
    async with open_broker(f"sqlite:///{path}") as broker:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce, broker)
            nursery.start_soon(work, broker, "anna", handled)
            nursery.start_soon(work, broker, "bela", handled)
        return handled, await look_at_failures(broker)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        trio.run(main, Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            trio.run(main, Path(directory) / "queue.db")
