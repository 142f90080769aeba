"""The workers of the shop: payment, then shipping, and a report each night.

    FORQ_URL=http://localhost:8080 FORQ_AUTH_SECRET=... python examples/orders/workers.py [--once]

With --once it ends when there is nothing left to do.
"""

import os
import sqlite3
import sys
from contextlib import closing

from msgspec import Struct

from forq_trio import AsyncForqClient, NewSchedule
from forq_trio.worker import DeadLetter, Job, Worker

URL = os.environ.get("FORQ_URL", "http://localhost:8080")
DATABASE = os.environ.get("ORDERS_DB", "orders.db")
UNPAYABLE = 10_000

app = Worker(URL, name="shop")


class Order(Struct):
    """What a customer wants: it is the payload of all three queues."""

    number: str
    customer: str
    item: str
    amount: int


class Report(Struct):
    """Asks for the totals of what was shipped."""

    title: str


def database() -> sqlite3.Connection:
    """The shop's own database. `effect` is unique: a step of an order is done once, however often it is asked for."""
    connection = sqlite3.connect(DATABASE, timeout=10)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS done "
        "(effect TEXT PRIMARY KEY, step TEXT NOT NULL, number TEXT NOT NULL, amount INTEGER NOT NULL)"
    )
    return connection


def once(effect: str, step: str, number: str, amount: int) -> None:
    """Write that something is done, unless that is written already."""
    with closing(database()) as connection, connection:
        connection.execute("INSERT OR IGNORE INTO done VALUES (?, ?, ?, ?)", (effect, step, number, amount))


def reserve(order: Order) -> None:
    """Stands for a service that refuses some orders for good."""
    if order.amount > UNPAYABLE:
        raise DeadLetter(f"{order.customer} cannot pay {order.amount}")


@app.on("orders", concurrency=4, retry=[1, 5, 30], timeout=30)
async def pay(order: Order) -> None:
    """Take the money, and let the order be shipped. Handled twice, it asks for both twice, and they are done once."""
    reserve(order)
    once(f"pay {order.number}", "paid", order.number, order.amount)
    await ship.later(order)


@app.on("shipping", concurrency=2, retry=[5, 60, 600], dead=(ValueError,))
def ship(order: Order) -> None:
    """Ship an order. It runs in a thread, because it is not an `async def`. An error of `dead` is final at once."""
    if order.item == "nothing":
        raise ValueError("there is nothing to ship")
    once(f"ship {order.number}", "shipped", order.number, order.amount)


@app.on("reports")
def report(wanted: Report, job: Job) -> None:
    """Sum up what was shipped. The schedule below sends its message each night."""
    with closing(database()) as connection:
        (total,) = connection.execute(
            "SELECT coalesce(sum(amount), 0) FROM done WHERE step = 'shipped'"
        ).fetchone()
    once(job.id, "report", wanted.title, total)


async def first() -> None:
    """Make the schedule. Saving it again changes nothing."""
    async with AsyncForqClient(URL, os.environ["FORQ_AUTH_SECRET"]) as client:
        nightly = NewSchedule(
            queue="reports", content='{"title":"nightly"}', daily=("02:00",), time_zone="UTC"
        )
        await client.save_schedule("nightly-report", nightly)


if __name__ == "__main__":
    app.run(first=first, stop_when_empty="--once" in sys.argv)
