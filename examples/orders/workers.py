"""The application: orders are paid, then shipped, and a report is made each night.

    FORQ_URL=http://localhost:8080 FORQ_AUTH_SECRET=... python examples/orders/workers.py [--once]

With --once it ends when there is nothing left to do.
"""

import logging
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from database import once
from msgspec import Struct
from reports import reports

from forq_trio import AsyncForqClient, NewSchedule
from forq_trio.worker import Backoff, CallNext, DeadLetter, Job, Worker

URL = os.environ.get("FORQ_URL", "http://localhost:8080")
SLOW_SECONDS = 1.0


class Order(Struct):
    """What a customer wants: it is the payload of two queues."""

    number: str
    customer: str
    item: str
    amount: int


@dataclass
class Bank:
    """Stands for a connection to a service that refuses some orders for good."""

    amount_max: int = 10_000

    def take(self, order: Order) -> None:
        """Take the money; for the same number once."""
        if order.amount > self.amount_max:
            raise DeadLetter(f"{order.customer} cannot pay {order.amount}")
        once(f"pay {order.number}", "paid", order.number, order.amount)


@asynccontextmanager
async def opened() -> AsyncGenerator[Bank, None]:
    """What handlers share: a real program would connect here, and close behind the yield."""
    yield Bank()


app = Worker(URL, name="shop", lifespan=opened)
app.include(reports, prefix="reports.")


@app.middleware
async def timed(job: Job, call_next: CallNext) -> object:
    """Say which messages took long."""
    began = time.monotonic()
    try:
        return await call_next()
    finally:
        if (seconds := time.monotonic() - began) > SLOW_SECONDS:
            logging.warning("%s %s took %.1f s", job.queue, job.id, seconds)


@app.on("orders", concurrency=4, retry=Backoff(first=1, factor=5, most="10 min", attempts=5), timeout="30 s")
async def pay(order: Order, job: Job[Bank]) -> None:
    """Take the money, then send the order to shipping. If it runs twice, both are still done once."""
    job.state.take(order)
    with anyio.CancelScope(shield=True):  # a cancel that comes now is too late: what is paid is shipped
        await ship.later(order)


@app.on("shipping", concurrency=2, retry=[5, 60, 600], dead=(ValueError,))
def ship(order: Order) -> None:
    """Ship an order. It runs in a thread, because it is not an `async def`. An error of `dead` is final at once."""
    if order.item == "nothing":
        raise ValueError("there is nothing to ship")
    once(f"ship {order.number}", "shipped", order.number, order.amount)


async def first() -> None:
    """Make the schedule. Saving it again changes nothing."""
    async with AsyncForqClient(URL, os.environ["FORQ_AUTH_SECRET"]) as client:
        nightly = NewSchedule(
            queue="reports.totals", content='{"title":"nightly"}', daily=("02:00",), time_zone="UTC"
        )
        await client.save_schedule("nightly-report", nightly)


if __name__ == "__main__":
    app.run(first=first, stop_when_empty="--once" in sys.argv)
