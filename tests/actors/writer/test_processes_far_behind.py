"""Processes on one PostgreSQL database of which one misses the batches of the other."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.commands import Ping
from forq_trio.storage.postgres import engine
from forq_trio.system import open_broker
from support.actors import until
from support.processes import WAIT_SECONDS_MAX


@pytest.mark.tier2
async def test_who_waits_at_a_process_that_misses_batches_learns_what_happened_in_them(
    empty_tables, monkeypatch
):
    monkeypatch.setattr(limits, "PEERS_LOOK_SECONDS", WAIT_SECONDS_MAX)  # so that only the notice tells
    monkeypatch.setattr(engine, "BATCHES_READ_MAX", 2)  # each further one of another process is too many
    async with open_broker(empty_tables) as a, open_broker(empty_tables) as b, trio.open_nursery() as nursery:
        told: dict[str, object] = {}

        async def wait(name: str, call: Callable[[], Awaitable[object]]) -> None:
            told[name] = await call()

        with trio.fail_after(WAIT_SECONDS_MAX):
            await until(lambda: all(each.known_processes.all() for each in (a, b)))
            ends, goes = (await b.produce("q", "x")).id, (await b.produce("q", "y")).id
            first, _ = await b.receive("q", max_messages=2, wait_ms=0)
            await a._writer.execute(Ping())
            after = a._writer.snapshot().withdrawn.last
            nursery.start_soon(wait, "result", lambda: a.message_result("q", ends, wait_ms=30_000))
            nursery.start_soon(wait, "withdrawn", lambda: a.withdrawn(["q"], after))
            announced = a._writer.announced
            await until(lambda: ends in announced.ended and "q" in announced.withdrawn)
            await b.nack("q", first, reason="no line", final=True)
            await b.cancel("q", goes, running=True)
            await until(lambda: len(told) == 2)
        assert (told["result"].state, told["result"].last_error) == ("dead", "no line")
        assert [(each.queue, each.message_id) for each in told["withdrawn"].messages] == [("q", None)]
