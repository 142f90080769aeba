"""The storage engine on a PostgreSQL database, without HTTP: one and two processes, each with its writer.

A cycle sends so many messages, acknowledges as many, and receives as many, in one batch and so one transaction.
Processes share the database but no queue. What all of them do is divided by the time.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter, time
from typing import Any

from bench.load.histogram import Histogram
from bench.scenarios.context import Context, Row
from forq_trio.model.commands import Ack, Claim, Command, Produce
from forq_trio.model.messages import Delivery, NewMessage, Receipt
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.open import open_engine

URL = "FORQ_BENCH_DB_URL"
BATCHES = (1, 16, 64)
PROCESSES = (1, 2)
LEASE_MS = 600_000
START_SECONDS = 3.0


def postgres(context: Context) -> list[Row]:
    """Cycles of send, ack and receive on the PostgreSQL database of FORQ_BENCH_DB_URL, by batch and processes."""
    url = os.environ.get(URL)
    if url is None:
        context.say(f"postgres is left out: {URL} names no database")
        return []
    settings = context.settings
    rows: list[Row] = []
    with ProcessPoolExecutor(max(PROCESSES), get_context("spawn")) as pool:
        for messages in BATCHES:
            for processes in PROCESSES:
                name = context.queue("postgres")
                starts_at = time() + min(START_SECONDS, settings.seconds)
                jobs = [
                    pool.submit(
                        _cycles,
                        (url, f"{name}-{number}", context.content, messages),
                        starts_at,
                        settings.seconds,
                        settings.answers_max,
                    )
                    for number in range(processes)
                ]
                done = [job.result() for job in jobs]
                latency = Histogram()
                for _, taken in done:
                    for each in taken:
                        latency.record(each)
                rows.append(
                    {
                        "batch": messages,
                        "processes": processes,
                        "messages_per_second": round(sum(rate for rate, _ in done)),
                        **latency.summary(),
                    }
                )
    return rows


def _cycles(
    what: tuple[str, str, str, int], starts_at: float, seconds: float, batches_max: int
) -> tuple[float, list[int]]:
    """Messages a second, and how long each batch took, in ns."""
    url, queue, content, messages = what
    engine = open_engine(url, EngineSettings(), "full")
    clock = engine.clock()
    held: Sequence[Delivery] = ()

    def cycle() -> None:
        nonlocal held
        commands: list[Command[Any]] = [Produce(queue, NewMessage(content))] * messages
        if held:
            commands.append(Ack(queue, tuple(Receipt.parse(each.receipt) for each in held)))
        commands.append(Claim(queue, messages, LEASE_MS, 0))
        result = engine.execute_batch(Batch(commands, clock.now_ms()))
        engine.commit()
        held = result.outcomes[-1]

    try:
        cycle()
        while time() < starts_at:
            cycle()
        began = at = perf_counter()
        taken: list[int] = []
        while at < began + seconds and len(taken) < batches_max:
            cycle()
            now = perf_counter()
            taken.append(round((now - at) * 1e9))
            at = now
        return len(taken) * messages / (at - began), taken
    finally:
        engine.close()
