"""The engine on PostgreSQL while another transaction of the database stays open: no row that is gone can be removed.

The set says how long a slice is. There are 3,000 messages a second, of which a tenth is delayed and a tenth nacked. The
time of a batch of claims must not grow with the dead rows: `claim_to_first` is its median divided by that of the first
slice. The statement that reads goes out with the batch's first message, so it cannot be timed alone.
"""

import random
from collections.abc import Sequence
from time import perf_counter, sleep
from typing import Any

import psycopg

from bench.load.histogram import Histogram
from bench.scenarios.context import Context, Row
from bench.scenarios.postgres import postgres_url, promise, time_statements
from forq_trio.model.commands import Ack, Claim, Command, Nack, Produce
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, Receipt
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.open import open_engine

SLICES = 10
RATE = 3_000
RATE_REACHED = 0.98
BATCH = 64
LEASE_MS = 30_000
DELAY_MS_MAX = 20_000
_DUE_STATEMENTS = ("select_due", "next_due")
DEAD_ROWS = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'forq' AND relname = 'messages'"


def held_snapshot(context: Context) -> list[Row]:
    """Claims, sends and settlements on PostgreSQL in ten slices of time, while a transaction elsewhere stays open."""
    url = postgres_url(context)
    if url is None:
        return []
    rows: list[Row] = []
    server = promise(url)
    traffic = Traffic(url, context.queue("held"), context.content)
    try:
        with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as looker:
            holder.execute(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM forq.messages LIMIT 1"
            )
            for number in range(SLICES):
                rate, taken = traffic.run(context.settings.seconds, context.settings.answers_max)
                found = looker.execute(DEAD_ROWS).fetchone()
                row: Row = {
                    "slice": number + 1,
                    "messages_per_second": round(rate),
                    "dead_rows": found[0] if found else 0,
                    **{
                        f"{name}_{point}_ms": round(each.percentile_ns(at) / 1e6, 2)
                        for name, each in taken.items()
                        for point, at in (("p50", 50.0), ("p99", 99.0))
                    },
                }
                first = (rows or [row])[0]
                row["claim_to_first"] = round(row["claim_p50_ms"] / first["claim_p50_ms"], 2)
                rows.append({**row, **server})
                context.say(str(row))
                if rate < RATE_REACHED * RATE:
                    context.say(f"slice {number + 1}: {RATE} messages a second were not reached")
    finally:
        traffic.close()
    return rows


class Traffic:
    """One process that sends, settles and claims in turn, each in a batch of its own."""

    def __init__(self, url: str, queue: str, content: str) -> None:
        self._engine: Any = open_engine(url, EngineSettings(), "full")
        self._clock = self._engine.clock()
        self._queue = queue
        self._content = content
        self._random = random.Random(1)
        self._held: Sequence[Delivery] = ()
        self._taken: dict[str, Histogram] = {}
        time_statements(self._engine, lambda _, ns: self._taken["due"].record(ns), _DUE_STATEMENTS)

    def run(self, seconds: float, cycles_max: int) -> tuple[float, dict[str, Histogram]]:
        """Messages a second, and how long each kind of batch took."""
        self._taken = {name: Histogram() for name in ("claim", "send", "settle", "due")}
        began = at = perf_counter()
        cycles = 0
        while at < began + seconds and cycles < cycles_max:
            self._batch("send", self._sends())
            self._batch("settle", self._settlements())
            (self._held,) = self._batch("claim", [Claim(self._queue, 2 * BATCH, LEASE_MS, 0)])
            cycles += 1
            at = perf_counter()
            ahead = began + cycles * BATCH / RATE - at
            if ahead > 0:
                sleep(ahead)
        return cycles * BATCH / (perf_counter() - began), self._taken

    def _batch(self, kind: str, commands: Sequence[Command[Any]]) -> Sequence[Any]:
        began = perf_counter()
        result = self._engine.execute_batch(Batch(commands, self._clock.now_ms()))
        self._engine.commit()
        self._taken[kind].record(round((perf_counter() - began) * 1e9))
        return result.outcomes

    def _sends(self) -> list[Command[Any]]:
        now_ms = self._clock.now_ms()
        return [
            Produce(
                self._queue,
                NewMessage(
                    self._content,
                    now_ms + self._random.randrange(DELAY_MS_MAX) if self._random.random() < 0.1 else None,
                ),
            )
            for _ in range(BATCH)
        ]

    def _settlements(self) -> list[Command[Any]]:
        receipts = [Receipt.parse(each.receipt) for each in self._held]
        nacked = {receipt for receipt in receipts if self._random.random() < 0.1}
        acked = tuple(receipt for receipt in receipts if receipt not in nacked)
        commands: list[Command[Any]] = [Ack(self._queue, acked)] if acked else []
        return [*commands, Nack(self._queue, tuple(nacked), 0)] if nacked else commands

    def close(self) -> None:
        self._engine.close()
