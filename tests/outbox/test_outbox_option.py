"""A relay inside of a worker and of a broker: the option `outbox`."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from forq_trio import open_blocking_broker, open_broker, outbox
from forq_trio.outbox import NoOutbox
from forq_trio.worker import Worker
from support.processes import WAIT_SECONDS_MAX


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def shop(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection:
        outbox.create_table(connection)
        connection.commit()
        yield connection


def write(shop: sqlite3.Connection, content: str) -> None:
    with shop:
        outbox.send(shop, "q", content)


async def test_a_broker_relays(shop, path) -> None:
    write(shop, "1")
    async with open_broker("memory:", outbox=path) as broker:
        with trio.fail_after(WAIT_SECONDS_MAX):
            assert (await broker.receive("q", wait_ms=30_000))[0].content == "1"
            write(shop, "2")
            assert (await broker.receive("q", wait_ms=30_000))[0].content == "2"


def test_a_broker_relays_under_asyncio(shop, path) -> None:
    async def main() -> None:
        async with open_broker("memory:", outbox=path) as broker, asyncio.timeout(WAIT_SECONDS_MAX):
            write(shop, "1")
            assert (await broker.receive("q", wait_ms=30_000))[0].content == "1"

    asyncio.run(main())


def test_a_blocking_broker_relays(shop, path) -> None:
    with open_blocking_broker("memory:", outbox=str(path)) as broker:
        write(shop, "1")
        assert broker.receive("q", wait_ms=30_000)[0].content == "1"


async def test_without_an_outbox_a_broker_ends_as_it_is_told(path) -> None:
    with pytest.raises(NoOutbox):
        await open_for_ever(path)


def test_without_an_outbox_a_broker_under_asyncio_ends_alike(path) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_SECONDS_MAX), open_broker("memory:", outbox=path):
            await asyncio.Future()

    with pytest.raises(NoOutbox):
        asyncio.run(main())


async def open_for_ever(path: Path) -> None:
    with trio.fail_after(WAIT_SECONDS_MAX):
        async with open_broker("memory:", outbox=path):
            await trio.sleep_forever()


async def test_a_worker_relays_and_drain_handles_what_was_committed(shop, path) -> None:
    async with open_broker("memory:") as broker:
        worker, done = Worker(broker, outbox=path), []
        both = trio.Event()

        @worker.on("q")
        async def handle(text: str) -> None:
            done.append(text)
            if text == "1":
                write(shop, "2")
            else:
                both.set()

        write(shop, "1")
        assert await worker.drain() == 2
        assert done == ["1", "2"]
        async with worker:
            both = trio.Event()
            write(shop, "3")
            with trio.fail_after(WAIT_SECONDS_MAX):
                await both.wait()


async def test_without_an_outbox_a_worker_ends(path) -> None:
    worker = Worker("memory:", outbox=path)

    @worker.on("q")
    async def handle(text: str) -> None:
        pass

    with pytest.raises(NoOutbox), trio.fail_after(WAIT_SECONDS_MAX):
        await worker.serve()
