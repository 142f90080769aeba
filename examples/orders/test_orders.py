"""The application without a server: python -m pytest examples/orders"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from database import database
from reports import Import, Report, Total, imported, report
from workers import Bank, Order, app, pay

from forq_trio.worker import WorkerTest


@asynccontextmanager
async def small_bank() -> AsyncGenerator[Bank, None]:
    yield Bank(amount_max=10)


@pytest.fixture
async def t(anyio_backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WorkerTest]:
    monkeypatch.setenv("ORDERS_DB", str(tmp_path / "orders.db"))
    async with app.testing(lifespan=small_bank) as t:
        yield t


@pytest.mark.anyio
async def test_what_is_paid_is_shipped(t: WorkerTest) -> None:
    tea, yacht = Order("1", "Anna", "tea", 7), Order("2", "Bela", "yacht", 11)
    await pay.later(tea)
    await pay.later(yacht)
    assert await t.drain() == 3
    assert t.sent("shipping") == [tea]
    with closing(database()) as connection:
        done = connection.execute("SELECT step, number FROM done ORDER BY rowid").fetchall()
    assert done == [("paid", "1"), ("shipped", "1")]
    assert (await t.broker.queue_stats("orders-dlq")).ready == 1
    asked = await report.later(Report("now"))
    await t.drain()
    assert await report.result(asked) == Total(orders=1, amount=7)


@pytest.mark.anyio
async def test_an_import_says_when_the_last_of_its_orders_is_paid_or_cannot_be(t: WorkerTest) -> None:
    async with app.batch(then=imported, payload=Import(2)) as batch:
        await batch.add(pay, Order("3", "Cleo", "tea", 7))
        await batch.add(pay, Order("4", "Dora", "yacht", 11))
    await t.drain()
    with closing(database()) as connection:
        done = connection.execute("SELECT step, number FROM done ORDER BY rowid").fetchall()
    # an import is over when all is paid or refused, whatever is shipped by then
    assert sorted(done) == [("imported", "2 orders"), ("paid", "3"), ("shipped", "3")]
