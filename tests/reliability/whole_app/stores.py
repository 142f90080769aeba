"""What outlives a crash of the application: a store that is opened again and again, and looked at from outside.

The table is read beside the engine, from its state or through a connection of its own, so that the engine is not asked
whether it is right.
"""

import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import apsw
import psycopg

from forq_trio.model.messages.types import QueueCounts, Status
from forq_trio.storage.engine import Engine, EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from forq_trio.storage.rules import NO_GROUP
from forq_trio.storage.sqlite.engine import SqliteEngine
from oracle.engine import MemoryEngine
from support.postgres import empty
from support.rough import Rough


class Stored(NamedTuple):
    """A message as it is stored. token: that of its current receipt, None when none is current.

    key: kind and key, of a pending message that has one. waiting: the content that waits behind it; bytes are of both.
    """

    seq: int
    id: str
    queue: str
    content: str
    status: int
    attempts: int
    priority: int
    position: int
    process_after: int
    expires_after: int
    lease_until: int | None
    token: int | None
    group: str | None
    max_attempts: int | None
    dead_letter_queue: str | None
    source_queue: str | None
    bytes: int
    key: str | None
    waiting: str | None

    @property
    def due_at(self) -> int | None:
        """When time next concerns it; None for a failed one."""
        match self.status:
            case Status.READY | Status.HELD:
                return self.expires_after
            case Status.PROCESSING:
                return self.lease_until
            case Status.DELAYED:
                return min(self.process_after, self.expires_after)
        return None


Table = dict[int, Stored]


def counted(table: Table) -> dict[str, QueueCounts]:
    """The counts that belong to a table, by queue."""
    tallies: dict[str, list[int]] = {}
    for row in table.values():
        counters = tallies.setdefault(row.queue, [0] * 6)
        counters[row.status] += 1
        counters[5] += row.bytes
    return {
        queue: QueueCounts(
            ready=counters[Status.READY],
            processing=counters[Status.PROCESSING],
            failed=counters[Status.FAILED],
            delayed=counters[Status.DELAYED],
            held=counters[Status.HELD],
            bytes=counters[5],
        )
        for queue, counters in tallies.items()
    }


class Store(Protocol):
    """What a trial does to it.

    open: an engine on what is there. table: what is committed. roll_back: undo the open batch, as an engine does whose
    commit changed nothing. crash: called before the engine of a life that is killed is closed, so that the closing does
    not help the next one.
    """

    def open(self) -> Engine: ...

    def table(self) -> Table: ...

    def roll_back(self) -> None: ...

    def crash(self) -> None: ...


class MemoryStore:
    """What is committed outlives an engine; what is not does not."""

    def __init__(self) -> None:
        self._engine: MemoryEngine | None = None
        self._seen: dict[int, tuple[object, Stored]] = {}

    def open(self) -> Engine:
        engine = MemoryEngine(EngineSettings())
        if self._engine is not None:
            engine._committed = engine._pending = self._engine._committed
        self._engine = engine
        return engine

    def table(self) -> Table:
        assert self._engine is not None
        seen = self._seen
        rows = self._engine._committed.rows
        # A row never changes, so one that is still there was read already.
        self._seen = {
            seq: seen[seq] if seq in seen and seen[seq][0] is row else (row, _read(row))
            for seq, row in rows.items()
        }
        return {seq: stored for seq, (_, stored) in self._seen.items()}

    def roll_back(self) -> None:
        """What is not committed is left out by the next batch."""

    def crash(self) -> None:
        """Nothing is written later than at the commit."""


def _read(row) -> Stored:
    return Stored(
        row.seq,
        row.id,
        row.queue,
        row.content,
        row.status,
        row.attempts,
        row.priority,
        row.position,
        row.process_after,
        row.expires_after,
        row.lease_until,
        row.token,
        None if row.group == NO_GROUP else row.group,
        row.max_attempts,
        row.dead_letter_queue,
        row.source_queue,
        row.bytes,
        key_name(row.key.kind, row.key.key) if row.key is not None and row.key.pending else None,
        None if row.waiting is None else row.waiting.offering.content,
    )


def key_name(kind: str, key: str) -> str:
    """A key with its kind."""
    return f"{kind}/{key}"


_TABLE = """
    SELECT seq, id, queue, content, status, attempts, priority, position, process_after, expires_after, lease_until,
           receipt, nullif(group_id, ''), max_attempts, dead_letter_queue, source_queue,
           octet_length(content) + coalesce((SELECT CAST(sum(octet_length(key) + octet_length(value)) AS INTEGER)
                                             FROM json_each(attributes)), 0) + coalesce(waiting_bytes, 0),
           kind || '/' || key, {waiting}
    FROM messages LEFT JOIN message_keys ON message = seq
"""
_SQLITE_TABLE = _TABLE.format(waiting="CAST(waiting AS TEXT) ->> '$.offering.content'")
_POSTGRES_TABLE = _TABLE.format(
    waiting="CAST(convert_from(waiting, 'UTF8') AS json) #>> '{offering,content}'"
)


class SqliteStore:
    """A file in `directory`. A crash goes on with a copy of the files as they were at that moment."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / "forq-0.db"
        self._crashes = 0
        self._engine: SqliteEngine | None = None
        self._connection: apsw.Connection | None = None
        self._path.write_bytes(_empty_database())

    def open(self) -> Engine:
        engine = self._engine = SqliteEngine(str(self._path), EngineSettings(), "none")
        self.close()
        self._connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)
        return engine

    def table(self) -> Table:
        assert self._connection is not None
        return {row[0]: Stored._make(row) for row in self._connection.execute(_SQLITE_TABLE)}

    def roll_back(self) -> None:
        assert self._engine is not None
        self._engine.roll_back()

    def crash(self) -> None:
        self._crashes += 1
        copy = self._directory / f"forq-{self._crashes}.db"
        for suffix in ("", "-wal"):
            source = Path(f"{self._path}{suffix}")
            if source.exists():
                shutil.copyfile(source, f"{copy}{suffix}")
        self._path = copy

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class _Alone(Rough):
    """The batches of one process: what others would be told and asked is left out, it would take real time."""

    listen = tables_urls = check_texts = None


class PostgresStore:
    """A database; batches are dealt over three engines. `rng` draws how rough it is with them."""

    def __init__(self, url: str, rng: random.Random) -> None:
        self._url = url
        self._rng = rng
        self._engine: _Alone | None = None
        empty(url)
        self._connection = psycopg.connect(url, autocommit=True, options="-c search_path=forq")

    def open(self) -> Engine:
        engines = [PostgresEngine(self._url, EngineSettings(), "normal") for _ in range(3)]
        self._engine = _Alone(engines, self._rng, self._url)
        return cast("Engine", self._engine)

    def table(self) -> Table:
        return {row[0]: Stored._make(row) for row in self._connection.execute(_POSTGRES_TABLE)}

    def roll_back(self) -> None:
        assert self._engine is not None
        self._engine.latest.roll_back()

    def crash(self) -> None:
        """The database rolls back what was not committed, when the connections end."""

    def close(self) -> None:
        self._connection.close()


@cache
def _empty_database() -> bytes:
    """A database after its migrations, made once a process: copying it is faster."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "forq.db"
        SqliteEngine(str(path), EngineSettings(), "none").close()
        return path.read_bytes()


@contextmanager
def memory_store() -> Iterator[Store]:
    yield MemoryStore()


@contextmanager
def sqlite_store() -> Iterator[Store]:
    """In memory where the system has such a place: what is tested is not the disk."""
    shared_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None) as directory:
        store = SqliteStore(Path(directory))
        try:
            yield store
        finally:
            store.close()


@contextmanager
def postgres_store(url: str, seed: int) -> Iterator[Store]:
    store = PostgresStore(url, random.Random(seed))
    try:
        yield store
    finally:
        store.close()
