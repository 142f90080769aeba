"""A delayed queue and its recurring messages on asyncio, over a client of a server."""

import asyncio
from datetime import datetime, timedelta

import anyio

from forq_trio import AsyncForqClient
from forq_trio.delayed import CronService, DelayedQueue
from support.in_process import in_process_server
from support.real_server import SECRET


async def use(url: str) -> tuple[str, int]:
    """The payload of a message, and how many ticks are installed."""
    async with AsyncForqClient(url, SECRET) as client, anyio.create_task_group() as tasks:
        queue = await DelayedQueue.create(client, "alarms", str)
        await queue.offer_or_update("tea", "ready", timedelta(milliseconds=1))
        envelope = await queue.poll()
        await envelope.acknowledge()
        handle = await CronService(queue).install_periodic_tick(
            tasks, "tick", timedelta(days=1), datetime.isoformat
        )
        ticks = len((await queue.pending("tick/")).messages)
        await handle.close()
        return envelope.payload, ticks


def test_it_works_on_asyncio() -> None:
    with in_process_server() as url:
        assert asyncio.run(use(url)) == ("ready", 1)
