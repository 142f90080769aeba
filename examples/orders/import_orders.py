"""Takes the orders of another shop, a line each: number,customer,item,amount. It only sends.

FORQ_URL=http://localhost:8080 FORQ_AUTH_SECRET=... python examples/orders/import_orders.py < orders.csv
"""

import csv
import sys
from collections.abc import Iterable

import anyio
from workers import Order, app, pay


async def main(lines: Iterable[str]) -> None:
    """Send the orders: each is on disk when `later` returns. Run again, it sends none twice within five minutes."""
    async with app.open():
        for number, customer, item, amount in csv.reader(lines):
            await pay.later(Order(number, customer, item, int(amount)), deduplication_id=number)


if __name__ == "__main__":
    anyio.run(main, sys.stdin)
