"""Queues on a PostgreSQL database, without HTTP: one and two processes, each with a connection of its own.

A cycle sends a number of messages, receives as many and settles them. Processes share the database but no queue. The
rate is that of all processes together.
"""

import os
import secrets
from collections.abc import Callable, Container, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from time import perf_counter, time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from bench.load.histogram import Histogram
from bench.scenarios.context import Context, Row
from bench.targets.postgres_cycles import APART, CYCLES, IN_ONE_TRANSACTION, Work, install

URL = "FORQ_BENCH_DB_URL"
BATCHES = (1, 16, 64)
PROCESSES = (1, 2)


def postgres(context: Context) -> list[Row]:
    """Cycles of send, receive and ack on the PostgreSQL database of FORQ_BENCH_DB_URL, by batch and processes."""
    url = postgres_url(context)
    return [] if url is None else _rows(context, url, [("forq", False)])


def postgres_peers(context: Context) -> list[Row]:
    """The same cycles by others on this server, in a database made for it: pgmq, PgQueuer, and Go's pgq."""
    url = postgres_url(context)
    if url is None:
        return []
    with database_beside(url) as beside:
        names = list(install(beside, context.say))
        subjects = [(name, False) for name in names if name in IN_ONE_TRANSACTION]
        subjects += [(name, True) for name in names if name in APART]
        return _rows(context, beside, subjects)


def postgres_url(context: Context) -> str | None:
    """FORQ_BENCH_DB_URL; None, and said, where there is none."""
    url = os.environ.get(URL)
    if url is None:
        context.say(f"SKIPPED: {URL} names no PostgreSQL database")
    return url


@contextmanager
def database_beside(url: str) -> Iterator[str]:
    """A new database on the server of this URL, dropped in the end."""
    name = f"forq_bench_{secrets.token_hex(4)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def time_statements(engine: Any, taken: Callable[[str, int], None], names: Container[str]) -> None:
    """From now on call `taken` with the time of each statement with one of these names, in ns, network included."""
    query = engine.connection.query

    def timed(name: str, *bindings: Any) -> Any:
        began = perf_counter()
        rows = query(name, *bindings)
        if name in names:
            taken(name, round((perf_counter() - began) * 1e9))
        return rows

    engine.connection.query = timed


def _rows(context: Context, url: str, subjects: list[tuple[str, bool]]) -> list[Row]:
    rows: list[Row] = []
    server = promise(url)
    with ProcessPoolExecutor(max(PROCESSES), get_context("spawn")) as pool:
        for messages in BATCHES:
            for processes in PROCESSES:
                for name, apart in subjects:
                    queue = context.queue("postgres")
                    works = [
                        Work(url, f"{queue}-{number}", context.content, messages, apart)
                        for number in range(processes)
                    ]
                    measured = _measure(context, pool, name, works)
                    about = {"queue": name, "transactions": "apart" if apart else "one a cycle"}
                    rows.append({**about, "batch": messages, "processes": processes, **measured, **server})
    return rows


def _measure(context: Context, pool: ProcessPoolExecutor, name: str, works: list[Work]) -> Row:
    settings = context.settings
    starts_at = time() + settings.start_seconds
    jobs = [
        pool.submit(_cycles, name, work, starts_at, settings.seconds, settings.answers_max) for work in works
    ]
    done = [job.result() for job in jobs]
    latency = Histogram()
    for _, taken in done:
        for each in taken:
            latency.record(each)
    return {"messages_per_second": round(sum(rate for rate, _ in done)), **latency.summary()}


def promise(url: str) -> Row:
    """What a commit on this server survives."""
    shown = ("server_version", "fsync", "synchronous_commit")
    with psycopg.connect(url) as connection:
        values = [connection.execute(f"SHOW {name}".encode()).fetchone() for name in shown]
    return {name: value[0] for name, value in zip(shown, values, strict=True) if value is not None}


def _cycles(
    name: str, work: Work, starts_at: float, seconds: float, cycles_max: int
) -> tuple[float, list[int]]:
    """Messages a second, and how long each cycle took, in ns."""
    with CYCLES[name](work) as cycle:
        cycle()
        while time() < starts_at:
            cycle()
        began = at = perf_counter()
        taken: list[int] = []
        while at < began + seconds and len(taken) < cycles_max:
            cycle()
            now = perf_counter()
            taken.append(round((now - at) * 1e9))
            at = now
        return len(taken) * work.messages / (at - began), taken
