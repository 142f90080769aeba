"""A PostgreSQL server that goes away while a broker uses it, and comes back."""

import pytest
import trio

from forq_trio.model.errors import OutcomeUnknown, StorageUnavailable
from forq_trio.storage.postgres import engine as module
from forq_trio.system import open_broker
from support.actors import until
from support.cuts import before_the_flush
from support.processes import WAIT_SECONDS_MAX


async def test_callers_are_refused_meanwhile_and_served_again_afterwards(postgres, database):
    async with open_broker(database) as broker:
        await broker.produce("q", "before")
        await trio.to_thread.run_sync(postgres.stop)
        try:
            for _ in range(2):
                with pytest.raises(StorageUnavailable):
                    await broker.produce("q", "lost")
            with pytest.raises(StorageUnavailable):
                await broker.peek("q")
        finally:
            await trio.to_thread.run_sync(postgres.start)
        with trio.fail_after(WAIT_SECONDS_MAX):
            await broker.produce("q", "after")
            assert [each.content for each in await broker.peek("q", limit=9)] == ["before", "after"]
            deliveries = await broker.receive("q", max_messages=9, wait_ms=0)
        assert [each.content for each in deliveries] == ["before", "after"]


async def test_a_consumer_that_waits_stays_parked_and_is_served(postgres, database):
    async with open_broker(database) as broker, trio.open_nursery() as nursery:
        got = []

        async def consume() -> None:
            got.extend(await broker.receive("q", wait_ms=30_000))

        nursery.start_soon(consume)
        await until(lambda: broker._writer.parked.total == 1)
        await trio.to_thread.run_sync(postgres.restart)
        with trio.fail_after(WAIT_SECONDS_MAX):
            while True:
                try:
                    await broker.produce("q", "x")
                    break
                except StorageUnavailable:
                    await trio.lowlevel.checkpoint()
            await until(lambda: bool(got))
        assert got[0].content == "x"


async def test_an_unknown_outcome_is_that_of_one_batch_and_the_broker_goes_on(
    postgres, database, monkeypatch
):
    """The database goes away in a COMMIT, and stays away for longer than the outcome is looked for."""
    monkeypatch.setattr(module, "OUTCOME_SECONDS_MAX", 0.0)
    async with open_broker(database) as broker:
        await broker.produce("q", "before")
        before_the_flush(monkeypatch, broker._writer._store._engine, postgres.stop)
        try:
            with pytest.raises(OutcomeUnknown):
                await broker.produce("q", "perhaps")
            with pytest.raises(StorageUnavailable):
                await broker.produce("q", "lost")
        finally:
            await trio.to_thread.run_sync(postgres.start)
        with trio.fail_after(WAIT_SECONDS_MAX):
            await broker.produce("q", "after")
            contents = [each.content for each in await broker.receive("q", max_messages=9, wait_ms=0)]
        assert contents in (["before", "after"], ["before", "perhaps", "after"])
