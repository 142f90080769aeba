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
    """Send the orders as a batch. Run again, it sends none of them twice within five minutes."""
    rows = list(csv.reader(lines))
    async with app.open(), app.batch(then=imported, payload=Import(len(rows))) as batch:
        for number, customer, item, amount in rows:
            await batch.add(pay, Order(number, customer, item, int(amount)), deduplication_id=number)


if __name__ == "__main__":
    anyio.run(main, sys.stdin)
