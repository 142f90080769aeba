"""The queue inside an application: the Broker without HTTP, in this process, on one thread.

The storage is the same file and the same fsync as `forq serve` uses. Every send is awaited: its message is durable.
"""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter_ns
from typing import Literal

import trio

from bench.load.histogram import Histogram
from bench.scenarios.context import Context, Row
from forq_trio import Broker, Clock, open_broker
from forq_trio.model.messages.new_message import NewMessage

QUEUE = "bench-embedded"
Step = Callable[[], Awaitable[int]]


def embedded(context: Context) -> list[Row]:
    """Broker: single sends from one task and from many, batches of 100, and receive + ack in batches of 100."""
    return trio.run(_embedded, context)


@asynccontextmanager
async def broker_on_disk(
    data_dir: Path, durability: Literal["full", "normal"], clock: Clock | None = None
) -> AsyncIterator[Broker]:
    """A broker on a new database below `data_dir`."""
    with tempfile.TemporaryDirectory(prefix="forq-bench-", dir=data_dir) as directory:
        url = f"sqlite:///{Path(directory) / 'forq.db'}"
        async with open_broker(url, durability=durability, clock=clock) as broker:
            yield broker


async def _embedded(context: Context) -> list[Row]:
    settings = context.settings
    content = "x" * settings.body_bytes
    size = settings.batch_messages
    messages = [NewMessage(content)] * size
    tasks, batch_tasks = settings.embedded_tasks, settings.embedded_batch_tasks
    async with broker_on_disk(context.data_dir, context.durability) as broker:

        async def send() -> int:
            await broker.produce(QUEUE, content)
            return 1

        async def send_batch() -> int:
            return len(await broker.produce_many(QUEUE, messages))

        async def receive_and_ack() -> int:
            deliveries = await broker.receive(QUEUE, max_messages=size, wait_ms=0)
            if not deliveries:
                return 0
            results = await broker.ack(QUEUE, [delivery.receipt for delivery in deliveries])
            return sum(result.ok for result in results)

        return [
            await _measure(context, "send", 1, send),
            await _measure(context, "send", tasks, send),
            await _measure(context, f"send batches of {size}", batch_tasks, send_batch),
            await _measure(context, f"receive + ack {size}", batch_tasks, receive_and_ack),
        ]


async def _measure(context: Context, name: str, tasks: int, step: Step) -> Row:
    """Repeat `step` in `tasks` tasks until enough messages, enough time, or a step that finds nothing."""
    settings, times = context.settings, Histogram()
    messages = 0
    end_ns = perf_counter_ns() + int(settings.embedded_seconds * 1e9)

    async def work() -> None:
        nonlocal messages
        done = 1
        while done and messages < settings.embedded_messages and (now_ns := perf_counter_ns()) < end_ns:
            done = await step()
            messages += done
            times.record(perf_counter_ns() - now_ns)

    started_ns = perf_counter_ns()
    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(work)
    seconds = (perf_counter_ns() - started_ns) / 1e9
    summary = times.summary()
    del summary["count"]
    return {"work": name, "tasks": tasks, "messages_per_second": round(messages / seconds, 1), **summary}
