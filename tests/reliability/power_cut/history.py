"""A random life of the SQLite engine on a recording disk, and what it had promised at each moment of it."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from forq_trio.model.commands import (
    Ack,
    Claim,
    Command,
    Extend,
    Nack,
    Produce,
    ProduceMany,
    Release,
    Sweep,
    SweepKind,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, Receipt
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from reliability.power_cut.disk import Disk

T0 = 1_700_000_000_000
QUEUES = ("emails", "jobs_lifo", "emails-dlq")
SETTINGS = EngineSettings(queue_ttl_ms=60_000, dlq_ttl_ms=90_000, attempts_max=2, backoff_ms=(500,))

State = frozenset[tuple[Any, ...]]


class Moment(NamedTuple):
    """What is stored after a commit, and how many operations the disk had seen when its callers were answered."""

    answered_at: int
    state: State


def stored(path: Path) -> State:
    """Everything a caller could have been told of: messages, with what became of them, and the counts of queues."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs="unix")) as connection:
        return seen_by(connection)


def seen_by(connection: apsw.Connection) -> State:
    """The same as one connection sees it, its open transaction included."""
    if not connection.execute(
        "SELECT count(*) FROM pragma_table_info('queue_counts') WHERE name = 'held'"
    ).get:
        return frozenset()
    messages = connection.execute(
        "SELECT seq, id, queue, status, attempts, receipt, lease_until, expires_after, content FROM messages"
    ).fetchall()
    counts = connection.execute(
        "SELECT queue, ready, processing, failed, delayed, held, bytes FROM queue_counts"
    ).fetchall()
    return frozenset(("message", *row) for row in messages) | frozenset(("counts", *row) for row in counts)


def live(disk: Disk, path: Path, durability: str, commits: int, rng: random.Random) -> list[Moment]:
    """Let an engine do `commits` random batches, with checkpoints and restarts between them."""
    moments = [Moment(0, frozenset())]
    held: list[Delivery] = []
    now_ms = T0
    engine = SqliteEngine(str(path), SETTINGS, durability)
    moments.append(Moment(len(disk.operations), stored(path)))
    for _ in range(commits):
        now_ms += rng.choice((0, 1, 40, 700, 5_000))
        result = engine.execute_batch(Batch(list(_commands(rng, held)), now_ms))
        engine.commit()
        moments.append(Moment(len(disk.operations), stored(path)))
        for outcome in result.outcomes:
            if isinstance(outcome, tuple) and outcome and isinstance(outcome[0], Delivery):
                held += outcome
        chance = rng.random()
        if chance < 0.1:
            engine.log.checkpoint(truncate=chance < 0.03)
        elif chance < 0.12:
            engine.close()
            engine = SqliteEngine(str(path), SETTINGS, durability)
    engine.close()
    return moments


def _commands(rng: random.Random, held: list[Delivery]) -> Iterator[Command[Any]]:
    for _ in range(rng.randint(1, 4)):
        queue = rng.choice(QUEUES[:2])
        size = rng.choice((3, 200, 3_000, 9_000))
        message = NewMessage(
            "x" * size, delay_ms=rng.choice((None, None, 300)), priority=rng.choice((1, 100))
        )
        kind = rng.choice(("send", "send", "send many", "claim", "claim", "settle", "settle", "sweep"))
        if kind == "send":
            yield Produce(queue, message)
        elif kind == "send many":
            yield ProduceMany(queue, (message,) * rng.randint(1, 20))
        elif kind == "claim":
            yield Claim(rng.choice(QUEUES), rng.randint(1, 5), rng.choice((100, 1_000, 60_000)))
        elif kind == "sweep":
            yield Sweep(rng.choice(list(SweepKind)))
        elif held:
            receipts = (Receipt.parse(held.pop(rng.randrange(len(held))).receipt),)
            yield rng.choice(
                (
                    Ack(None, receipts),
                    Ack(None, receipts),
                    Nack(queue, receipts, reason="no"),
                    Extend(None, receipts, 2_000),
                    Release(queue, receipts),
                )
            )
