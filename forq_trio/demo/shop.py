"""The shop of the demo: its queues and schedules, what had come in before it opened, and its customers."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from random import Random

import trio

from forq_trio.broker.broker import Broker
from forq_trio.demo.goods import (
    ITEMS,
    PartnerNotice,
    SalesReport,
    StockRow,
    a_notice,
    a_row,
    an_order,
    content_of,
    trace,
)
from forq_trio.demo.workers import Shop
from forq_trio.model.errors import ForqError
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.system import open_broker

ORDERS_BEFORE, NOTICES_BEFORE, ROWS_BEFORE = 16, 12, 60
"""What came in while the shop was closed."""
ORDERS_A_SECOND, ORDERS_SWING = 0.8, 0.6
WAVE_SECONDS = 120.0
"""Orders come in waves, so that a chart moves within a minute."""
SALES, PRICES = "sales-report", "price-list"


async def fill(url: str, seed: int) -> None:
    """Make the queues and schedules in a new database, and send what came in before the shop opened.

    The server does not run yet, so its charts show the work alone.
    """
    async with open_broker(url, durability="normal", disk_reserve_mb=0, history=True, events=True) as broker:
        await _set_up(broker)
        await _take_in(broker, Random(f"{seed} before"))


@asynccontextmanager
async def open_shop(broker: Broker, seed: int) -> AsyncIterator[None]:
    """Run the shop while the body runs; its handlers finish at the end, at once."""
    shop = Shop(broker, seed)
    async with shop.front, shop.office, trio.open_nursery() as customers:
        customers.start_soon(_buy, shop, Random(f"{seed} customers"))
        yield
        customers.cancel_scope.cancel()
        shop.closing.set()


async def _set_up(broker: Broker) -> None:
    await broker.configure("payments", group_in_flight_max=1)
    await broker.configure("customers.sync", order="due")
    every_minute = NewSchedule(queue="reports", content=content_of(SalesReport("sales", 1)), every="1min")
    await broker.save_schedule(SALES, every_minute)
    nightly = NewSchedule(
        queue="reports",
        content=content_of(SalesReport("stock", 1_440)),
        daily=("02:00",),
        time_zone="Europe/Prague",
        while_pending="skip",
    )
    await broker.save_schedule("stock-count", nightly)
    row = content_of(StockRow("SKU-0000", "sofa", ITEMS["sofa"]))
    prices = NewSchedule(queue="imports", content=row, every="30s", while_pending="skip")
    await broker.save_schedule(PRICES, prices)
    for name in (SALES, PRICES):
        await broker.run_schedule(name)


async def _take_in(broker: Broker, rng: Random) -> None:
    """Send what came in before: enough that a minute after the start there is something of everything."""
    orders = [an_order(rng, number) for number in range(1, ORDERS_BEFORE + 1)]
    notices = [a_notice(rng, order.number) for order in orders[: NOTICES_BEFORE - 1]]
    notices.append(PartnerNotice("xylo", "order.paid", "A-00000"))  # a dead letter at the first attempt
    rows = [a_row(rng, number) for number in range(ROWS_BEFORE)]
    for queue, values in (("orders", orders), ("webhooks", notices), ("imports", rows)):
        messages = [NewMessage(content_of(value), attributes=trace(rng)) for value in values]
        for outcome in await broker.produce_many(queue, messages):
            if isinstance(outcome, Exception):
                raise outcome
    await broker.pause("imports")


async def _buy(shop: Shop, rng: Random) -> None:
    """Customers order until cancelled."""
    seconds = 0.0
    for number in count(ORDERS_BEFORE + 1):
        rate = ORDERS_A_SECOND + ORDERS_SWING * math.sin(math.tau * seconds / WAVE_SECONDS)
        pause = rng.expovariate(rate)
        seconds += pause
        await trio.sleep(pause)
        with suppress(ForqError):  # who looks at the demo may bound the queue, and so refuse an order
            await shop.front.send("orders", an_order(rng, number), attributes=trace(rng))
