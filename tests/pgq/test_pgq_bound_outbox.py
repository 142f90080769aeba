"""Messages that an outbox has for a bound queue: set aside with the reason, and no others wait for them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import trio

from forq_trio import outbox
from forq_trio.outbox import Relay
from support.processes import WAIT_SECONDS_MAX


async def test_a_send_in_ones_own_transaction_is_set_aside(broker, queue, connection, rows) -> None:
    plain = f"{queue}-plain"
    with connection.transaction():
        for name in (queue, plain):
            outbox.send(connection, name, '{"n": 1}')
    with trio.fail_after(WAIT_SECONDS_MAX):
        assert len(await broker.receive(plain, wait_ms=30_000)) == 1
    (aside,) = [each for each in await broker.set_aside() if each.queue == queue]
    assert (aside.code, aside.message.content) == ("conflict.queue_bound", '{"n": 1}')
    assert rows.all() == []
    await broker.unbind(queue)
    await broker.retry_set_aside([aside.id])
    with trio.fail_after(WAIT_SECONDS_MAX):
        assert len(await broker.receive(queue, wait_ms=30_000)) == 1


async def test_a_relay_sets_it_aside(broker, queue, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as shop:
        outbox.create_table(shop)
        for name in (queue, f"{queue}-plain"):
            outbox.send(shop, name, "{}")
        shop.commit()
        await Relay(path, broker).relay_all()
        assert [(each.queue, each.code) for each in outbox.set_aside(shop)] == [
            (queue, "conflict.queue_bound")
        ]
    assert len(await broker.receive(f"{queue}-plain", wait_ms=0)) == 1
