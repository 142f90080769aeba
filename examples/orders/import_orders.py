"""Takes the orders of another shop, a line each: number,customer,item,amount. It only sends.

FORQ_URL=http://localhost:8080 FORQ_AUTH_SECRET=... python examples/orders/import_orders.py < orders.csv
"""

import csv
import sys
from collections.abc import Iterable

import anyio
from reports import Import, imported
from workers import Order, app, pay


async def main(lines: Iterable[str]) -> None:
    """Send the orders as a batch. Run again, it sends them again: each is a member, and is paid and shipped once."""
    orders = [
        Order(number, customer, item, int(amount)) for number, customer, item, amount in csv.reader(lines)
    ]
    async with app.open(), app.batch(then=imported, payload=Import(len(orders))) as batch:
        await batch.add_many(pay, orders)


if __name__ == "__main__":
    anyio.run(main, sys.stdin)
