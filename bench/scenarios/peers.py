"""Other queues on SQLite from the package index, doing the same work: 200-byte messages, one thread, one at a time.

Each is used as its documentation shows, with its own defaults; what those defaults promise is read from its own
connection and stands beside the figures. `synchronous` 2 (FULL) in WAL mode, or 1 or 2 with a rollback journal, means
an fsync before a put returns; 1 (NORMAL) in WAL mode means that a power cut may take answered puts away.
"""

import importlib
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import trio

from bench.scenarios.context import Context, Row
from bench.scenarios.embedded import QUEUE, broker_on_disk

SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")


class Peer(ABC):
    """A queue to compare with. `module` is imported only when it is measured."""

    name: str
    module: str
    settles = "ack"

    @abstractmethod
    def connection(self) -> sqlite3.Connection:
        """The connection it writes with."""

    @abstractmethod
    def put(self, content: str) -> None: ...

    @abstractmethod
    def get_and_ack(self) -> bool:
        """Take one message and acknowledge it; False when there is none."""

    def close(self) -> None:
        self.connection().close()


class PersistQueue(Peer):
    name = "persist-queue SQLiteAckQueue"
    module = "persistqueue"

    def __init__(self, module: Any, directory: Path) -> None:
        self._queue = module.SQLiteAckQueue(str(directory))

    def connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = self._queue._putter
        return connection

    def put(self, content: str) -> None:
        self._queue.put(content)

    def get_and_ack(self) -> bool:
        item = self._queue.get(block=False, raw=True)
        self._queue.ack(id=item["pqid"])
        return True

    def close(self) -> None:
        self._queue.close()


class LiteQueue(Peer):
    name = "litequeue"
    module = "litequeue"

    def __init__(self, module: Any, directory: Path) -> None:
        self._queue = module.LiteQueue(str(directory / "lite.db"))

    def connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = self._queue.conn
        return connection

    def put(self, content: str) -> None:
        self._queue.put(content)

    def get_and_ack(self) -> bool:
        message = self._queue.pop()
        if message is None:
            return False
        self._queue.done(message.message_id)
        return True


class HueyStorage(Peer):
    name = "huey SqliteStorage"
    module = "huey.storage"
    settles = "removed by get, nothing to ack"

    def __init__(self, module: Any, directory: Path) -> None:
        self._storage = module.SqliteStorage(filename=str(directory / "huey.db"))

    def connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = self._storage.conn
        return connection

    def put(self, content: str) -> None:
        self._storage.enqueue(content.encode())

    def get_and_ack(self) -> bool:
        return self._storage.dequeue() is not None


PEERS: tuple[type[Peer], ...] = (PersistQueue, LiteQueue, HueyStorage)


def peers(context: Context) -> list[Row]:
    """Put, then put + get + ack, per second: our Broker from one task and from many beside other queues on SQLite."""
    rows = [trio.run(_measure_broker, context, tasks) for tasks in (1, context.settings.embedded_tasks)]
    for peer in PEERS:
        try:
            module = importlib.import_module(peer.module)
        except ImportError:
            context.say(f"SKIPPED peer {peer.name}: {peer.module} is not installed (extra: bench)")
            continue
        with tempfile.TemporaryDirectory(prefix="forq-bench-", dir=context.data_dir) as directory:
            rows.append(_measure(context, peer(module, Path(directory))))  # type: ignore[call-arg]
    return rows


def _measure(context: Context, peer: Peer) -> Row:
    content = "x" * context.settings.body_bytes
    journal, synchronous = read_durability(peer.connection())

    def put() -> None:
        peer.put(content)

    def put_get_ack() -> None:
        peer.put(content)
        peer.get_and_ack()

    try:
        while_empty = _rate(context, put_get_ack)
        puts = _rate(context, put)
    finally:
        peer.close()
    return _row(peer.name, "1 thread", puts, while_empty, journal, synchronous, peer.settles)


def _row(
    name: str, callers: str, puts: float, cycles: float, journal: str, synchronous: str, settles: str
) -> Row:
    return {
        "queue": name,
        "callers": callers,
        "put_per_second": round(puts, 1),
        "put_get_ack_per_second": round(cycles, 1),
        "journal": journal,
        "synchronous": synchronous,
        "fsync_before_answer": synchronous in ("FULL", "EXTRA")
        or (journal != "wal" and synchronous != "OFF"),
        "settled_by": settles,
    }


def read_durability(connection: sqlite3.Connection) -> tuple[str, str]:
    """journal_mode and synchronous, as this connection has them now."""
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
    return str(journal), SYNCHRONOUS[int(synchronous)]


def _rate(context: Context, step: Callable[[], None]) -> float:
    """Steps per second, until enough of them or enough time."""
    started_ns = perf_counter_ns()
    end_ns = started_ns + int(context.settings.peer_seconds * 1e9)
    done = 0
    while done < context.settings.peer_messages and perf_counter_ns() < end_ns:
        step()
        done += 1
    return done / (perf_counter_ns() - started_ns) * 1e9


async def _measure_broker(context: Context, tasks: int) -> Row:
    settings = context.settings
    content = "x" * settings.body_bytes
    # As many messages for each task as a peer's only thread would do is more than enough for many tasks.
    messages_max = settings.peer_messages * min(tasks, 10)
    async with broker_on_disk(context.data_dir, context.durability) as broker:

        async def put() -> None:
            await broker.produce(QUEUE, content)

        async def put_get_ack() -> None:
            await broker.produce(QUEUE, content)
            for delivery in await broker.receive(QUEUE, wait_ms=0):
                await broker.ack(QUEUE, delivery)

        async def rate(step: Callable[[], Any]) -> float:
            started_ns = perf_counter_ns()
            end_ns = started_ns + int(settings.peer_seconds * 1e9)
            done = 0

            async def work() -> None:
                nonlocal done
                while done < messages_max and perf_counter_ns() < end_ns:
                    await step()
                    done += 1

            async with trio.open_nursery() as nursery:
                for _ in range(tasks):
                    nursery.start_soon(work)
            return done / (perf_counter_ns() - started_ns) * 1e9

        cycles = await rate(put_get_ack)
        puts = await rate(put)
    callers = f"{tasks} task{'s' if tasks > 1 else ''}, 1 thread"
    return _row(
        "forq-trio Broker", callers, puts, cycles, "wal", context.durability.upper(), "ack, fenced by receipt"
    )
