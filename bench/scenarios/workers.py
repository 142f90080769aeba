"""Workers beside raw calls, and beside workers of other libraries: an empty handler.

The raw calls process as many stored messages, in the same run, one after the other. The raw tasks take one message
each, as a handler does; "100 in a request" is the most that calls without handlers can do. A worker's requests have as
many messages as it has slots, so each worker has raw calls of that size beside it. Each other library processes as many
tasks in a process of its own; its row says what it stores, and how.

processor_us: processor time of this process for a message; of the embedded queue, too, but not of a server.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.util import find_spec
from time import perf_counter, process_time

import trio

from bench.scenarios.context import Context, Row
from bench.scenarios.embedded import broker_on_disk
from bench.targets import worker_peers
from forq_trio import AsyncForqClient, Broker, NewMessage
from forq_trio.worker import Worker

SLOTS = 32
SLOTS_MANY = 100
STORE_BATCH = 1_000
Source = Broker | AsyncForqClient


def workers(context: Context) -> list[Row]:
    """Messages per second of a worker with an empty handler, beside raw receive + ack: over HTTP, and embedded."""
    rows = []
    with context.server() as server:
        rows += trio.run(_over_http, context, server.api.url, server.api.key)
    return rows + trio.run(_embedded, context) + _peers(context)


async def _over_http(context: Context, url: str, key: str) -> list[Row]:
    async with AsyncForqClient(url, key) as client:
        return await _measure(context, "HTTP", client)


async def _embedded(context: Context) -> list[Row]:
    async with broker_on_disk(context.data_dir, context.durability) as broker:
        return await _measure(context, "embedded", broker)


async def _measure(context: Context, name: str, source: Source) -> list[Row]:
    count = context.settings.feature_messages
    best: dict[str, tuple[float, float]] = {}
    steps: dict[str, Callable[[Source, str], Awaitable[None]]] = {
        f"raw, {SLOTS} tasks": _raw,
        f"raw, {SLOTS} in a request": partial(_raw_batches, SLOTS),
        f"worker, {SLOTS} slots": partial(_worker, SLOTS),
        f"raw, {SLOTS_MANY} in a request": partial(_raw_batches, SLOTS_MANY),
        f"worker, {SLOTS_MANY} slots": partial(_worker, SLOTS_MANY),
    }
    for _ in range(context.settings.rounds):
        for step, work in steps.items():
            queue = context.queue("workers")
            for start in range(0, count, STORE_BATCH):
                messages = [NewMessage(context.content)] * min(STORE_BATCH, count - start)
                await source.produce_many(queue, messages)
            began, busy = perf_counter(), process_time()
            await work(source, queue)
            measured = count / (perf_counter() - began), (process_time() - busy) / count
            best[step] = max(best.get(step, measured), measured)
    raw, _ = best[f"raw, {SLOTS} tasks"]
    return [
        {
            "source": name,
            "step": step,
            "messages_per_second": round(rate, 1),
            "of_raw": round(rate / raw, 2),
            "processor_us": round(seconds * 1e6, 1),
        }
        for step, (rate, seconds) in best.items()
    ]


async def _raw(source: Source, queue: str) -> None:
    async def work() -> None:
        while deliveries := await source.receive(queue, wait_ms=0):
            await source.ack(queue, [deliveries[0].receipt])

    async with trio.open_nursery() as nursery:
        for _ in range(SLOTS):
            nursery.start_soon(work)


async def _raw_batches(messages: int, source: Source, queue: str) -> None:
    while deliveries := await source.receive(queue, max_messages=messages, wait_ms=0):
        await source.ack(queue, [each.receipt for each in deliveries])


async def _worker(slots: int, source: Source, queue: str) -> None:
    app = Worker(source)

    @app.on(queue, concurrency=slots)
    async def handle(content: str) -> None: ...

    await app.drain()


def _peers(context: Context) -> list[Row]:
    rows = []
    for name, peer in worker_peers.PEERS.items():
        missing = name if find_spec(name) is None else ""
        if name == "rq" and shutil.which("redis-server") is None:
            missing = "redis-server"
        if missing:
            context.say(f"SKIPPED peer {name}: {missing} is not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="forq-bench-", dir=context.data_dir) as directory:
            command = [sys.executable, "-m", worker_peers.__name__, name, directory]
            command.append(str(context.settings.feature_messages))
            rate = float(subprocess.check_output(command, text=True).split()[-1])
        step = (peer.__doc__ or "").rstrip(".")
        rows.append({"source": name, "step": step, "messages_per_second": round(rate, 1)})
    return rows
