"""Processor time of the Python client: what a program pays for each call, the server's part left out."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter, process_time

import trio

from bench.scenarios.context import Context, Row
from bench.targets.servers import Server
from forq_trio import AsyncForqClient, ForqClient, NewMessage

REQUEST, MESSAGE, TOGETHER = "request", "receive and ack", "receive and ack, 32 at a time"
WORKERS = 32
STORE_BATCH = 1_000

Steps = dict[str, tuple[int, float, float]]
"""Measurements by name: the number of calls, the seconds of processor time, and the seconds that passed."""


class _Stopwatch:
    """Measures a body that does something `count` times."""

    def __init__(self, steps: Steps, name: str, count: int) -> None:
        self._steps, self._name, self._count = steps, name, count

    def __enter__(self) -> None:
        self._began = process_time(), perf_counter()

    def __exit__(self, *problem: object) -> None:
        processor, wall = self._began
        self._steps[self._name] = (self._count, process_time() - processor, perf_counter() - wall)


def client(context: Context) -> list[Row]:
    """Processor time of the client for a request, and for a message received and acked: blocking, trio, asyncio."""
    rows = []
    with context.server() as server:
        for name, run in (("blocking", _blocking), ("trio", _trio), ("asyncio", _asyncio)):
            rounds = [run(context, server) for _ in range(context.settings.rounds)]
            rows += [_row(name, step, [each[step] for each in rounds]) for step in rounds[0]]
    return rows


def _row(name: str, step: str, rounds: list[tuple[int, float, float]]) -> Row:
    """The figures of the best round, because other programs only add to the cost of a call."""
    count, processor, wall = min(rounds, key=lambda each: each[1] / each[0])
    return {
        "client": name,
        "step": step,
        "processor_ms": round(processor / count * 1e3, 3),
        "per_second": round(count / wall, 1),
    }


def _blocking(context: Context, server: Server) -> Steps:
    queue, count, steps = context.queue("client"), context.settings.feature_messages, Steps()
    with ForqClient(server.api.url, server.api.key) as forq:
        _store(context, forq, queue, count)
        with _Stopwatch(steps, REQUEST, count):
            for _ in range(count):
                forq.healthcheck()
        with _Stopwatch(steps, MESSAGE, count):
            for _ in range(count):
                (delivery,) = forq.receive(queue)
                forq.ack(queue, [delivery.receipt])
    return steps


def _store(context: Context, forq: ForqClient, queue: str, count: int) -> None:
    for start in range(0, count, STORE_BATCH):
        messages = min(STORE_BATCH, count - start)
        forq.produce_many(queue, [NewMessage(context.content)] * messages)


def _trio(context: Context, server: Server) -> Steps:
    async def together(work: Callable[[], Awaitable[None]]) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(WORKERS):
                nursery.start_soon(work)

    return trio.run(_asynchronous, context, server, together)


def _asyncio(context: Context, server: Server) -> Steps:
    async def together(work: Callable[[], Awaitable[None]]) -> None:
        await asyncio.gather(*(work() for _ in range(WORKERS)))

    return asyncio.run(_asynchronous(context, server, together))


async def _asynchronous(
    context: Context, server: Server, together: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
) -> Steps:
    queue, count, steps = context.queue("client"), context.settings.feature_messages, Steps()
    each = -(-count // WORKERS)
    with ForqClient(server.api.url, server.api.key) as storing:
        _store(context, storing, queue, count + each * WORKERS)
    async with AsyncForqClient(server.api.url, server.api.key) as forq:
        with _Stopwatch(steps, REQUEST, count):
            for _ in range(count):
                await forq.healthcheck()
        with _Stopwatch(steps, MESSAGE, count):
            await _work(forq, queue, count)
        with _Stopwatch(steps, TOGETHER, each * WORKERS):
            await together(partial(_work, forq, queue, each))
    return steps


async def _work(forq: AsyncForqClient, queue: str, count: int) -> None:
    for _ in range(count):
        (delivery,) = await forq.receive(queue)
        await forq.ack(queue, [delivery.receipt])
