"""The PostgreSQL engine: one queue of several server processes, one batch at a time among all of them.

A batch begins with a lock that all processes share (the gate), so every rule holds as if there were one process. Behind
the gate the process first takes over what the batches of others changed (shipped.py). Then it runs its own batch and
stores the changes for the others. The gate opens when the transaction ends, even if the process dies or is stopped.

Nobody waits for the disk while holding the gate. The COMMIT of a batch does not wait for it; a second transaction, sent
along with it, does (`flush`). So other processes see a batch before it is durable. But a batch that changed something,
or that built on changes of another process, is answered only after a flush that came after it.

If the connection is lost during a COMMIT, the process looks up whether the batch has a row in `batches`.

A process identifies the last batch that it took over by its version and its maker, a name that is unique to each batch.
If that batch is gone, all tables are read again: the database has crashed, which may undo batches that were not
answered yet, or it is another one, a replica that took over or a copy. If it is there, also after a lost connection,
the process goes on behind it.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import msgspec
from msgspec import Struct

from forq_trio.model.clock import Clock
from forq_trio.model.commands import Command, Compact, Compacted, Optimize, TakeSetAside, in_order
from forq_trio.model.errors import (
    FeatureUnavailable,
    ForqError,
    StorageOpenError,
    StorageUnavailable,
    ZeroCharacter,
)
from forq_trio.model.server.database_urls import NO_OTHER_URLS, OtherUrls
from forq_trio.storage.engine import (
    ENDED,
    Batch,
    BatchResult,
    EngineFacts,
    EngineSettings,
    OutcomeLost,
    Snapshot,
)
from forq_trio.storage.postgres.connection import PgConnection
from forq_trio.storage.postgres.failures import LOCK_TIMEOUT, DatabaseFailed, StatementFailed
from forq_trio.storage.postgres.first_read import first_read
from forq_trio.storage.postgres.listener import PgListener, check_listened
from forq_trio.storage.postgres.notices import Notices
from forq_trio.storage.postgres.open import DatabaseAddress, open_writer, refusal
from forq_trio.storage.postgres.others import BatchPosition, BatchRow, TakenOver
from forq_trio.storage.postgres.reader import PgReader
from forq_trio.storage.postgres.replica import Replica
from forq_trio.storage.postgres.sent import ApplicationSends, take_set_aside
from forq_trio.storage.postgres.server_clock import ServerClock
from forq_trio.storage.postgres.shipped import heads_after, latest_position, pack, take_left, unpack
from forq_trio.storage.postgres.zero_character import cannot_be_stored, check_texts
from forq_trio.storage.relational import operations
from forq_trio.storage.relational.cache import Cache
from forq_trio.storage.relational.ids import MessageIds
from forq_trio.storage.relational.operations import Operations, operation_on_each
from forq_trio.storage.relational.operations.settle import SETTLEMENTS
from forq_trio.storage.relational.run_batch import has_work, run_batch, run_in_transaction
from forq_trio.storage.relational.transaction import Transaction

OPERATIONS: Operations = {**operations.OPERATIONS}
BATCHES_STORED = 1_000
"""How many of the latest batches have their changes stored."""
BATCHES_FORGOTTEN = 100
"""How many batches are removed at once."""
BATCHES_READ_MAX = 200
"""How many batches are taken over one by one; a process that is further behind reads all tables again."""
HEADS_WHOLE_EVERY = 32
"""Every how many batches one ships the heads that it changed as a whole, for processes that do not know them yet."""
OUTCOME_SECONDS_MAX = 10.0
"""How long to look for a batch whose connection was lost during its COMMIT."""


@operation_on_each(Optimize, OPERATIONS)
def _optimize(_: Transaction, __: Optimize) -> None:
    """Nothing to do: PostgreSQL keeps its statistics up to date by itself."""


@operation_on_each(Compact, OPERATIONS)
def _compact(_: Transaction, __: Compact) -> Compacted:
    """Never runs on PostgreSQL: compaction is refused before it becomes a command."""
    return Compacted(0, 0)


operation_on_each(TakeSetAside, OPERATIONS)(take_set_aside)
_SETTLEMENTS = [kind for kind in in_order(OPERATIONS) if kind in SETTLEMENTS]


class _Addresses(NamedTuple):
    """The addresses of the database, for each use."""

    database: DatabaseAddress
    listened: DatabaseAddress  # where to listen: the same one unless FORQ_DB_LISTEN_URL is set
    urls: tuple[str, str]  # the URLs of both

    @classmethod
    def of(cls, url: str, others: OtherUrls) -> Self:
        """Raises StorageOpenError for a URL that cannot be read."""
        database = DatabaseAddress(url)
        listened = database if others.listen is None else DatabaseAddress(others.listen)
        return cls(database, listened, (url, others.listen or url))


class PostgresEngine:
    """Engine over one database. Used from one thread at a time."""

    log = None
    operations, order = OPERATIONS, in_order(OPERATIONS)

    def __init__(
        self, url: str, settings: EngineSettings, durability: str = "full", others: OtherUrls = NO_OTHER_URLS
    ) -> None:
        """Connect, and create or migrate the schema if needed. Raises StorageOpenError."""
        self.durability = durability
        self._addresses = _Addresses.of(url, others)
        self._replica: Replica | None = None
        self.connection: PgConnection = open_writer(self._addresses.database)
        self._clock = ServerClock()
        self.ids = MessageIds()
        self.tx = Transaction.new(settings, heads=True)
        self._cache = Cache(self.tx)
        self._position = BatchPosition()
        self._taken_over = TakenOver()
        self._notices = Notices(self._position.process)
        self._sends = ApplicationSends()
        self._unflushed = False  # the state that this process knows may not be durable yet
        self._is_open = False  # a batch has run and is not committed yet
        try:
            self._start(others)
        except DatabaseFailed as error:
            self.connection.close()
            raise self._addresses.database.refused(error) from None
        except BaseException:
            self.connection.close()
            raise

    def _start(self, others: OtherUrls) -> None:
        """Run `_prepare`, and once more if the connection is lost while it runs. Raises DatabaseFailed."""
        try:
            self._prepare(others)
        except DatabaseFailed:
            if not self.connection.lost:
                raise
            # The server ends idle transactions, and this process may have been stopped for so long.
            self.connection.reopen()
            self._prepare(others)

    def _prepare(self, others: OtherUrls) -> None:
        """Check the other connections, and fill the cache."""
        ((identity,),) = self.connection.query("identity")
        if others.listen is not None:
            check_listened(self._addresses.listened, identity)
        if others.replica is not None:
            self._replica = Replica(DatabaseAddress(others.replica), identity, lambda: self._position.last)
            self._replica.check()
        self._clock.read(self.connection)
        self._load()
        self._taken_over.clear()

    def execute_batch(self, batch: Batch) -> BatchResult:
        """See storage/engine.py. First takes over the batches of other processes."""
        try:
            if not (self._is_notified(batch) or (batch.commands and self.has_work(batch))):
                self._catch_up()
            self._sends.begin()
            result = run_batch(self, batch)
        except DatabaseFailed as error:
            raise self.unavailable(error) from error
        except StorageOpenError as error:
            self.roll_back()
            raise StorageUnavailable(f"{error}, or a newer version wrote it") from error
        result.sent_set_aside = self._sends.moved.set_aside
        self._taken_over.write_into(result)
        if self._sends.moved.more or (self._is_open and self._sends.may_move_more(self.tx)):
            result.next_due_ms = batch.now_ms
        if not self._is_open:
            self._taken_over.clear()
        self._running = batch, result
        return result

    def has_work(self, batch: Batch) -> bool:
        woken = self._taken_over.changes.woken
        if self._sends.are_there and batch.moves_staged:
            return True
        if self._is_notified(batch) or any(queue in woken for queue in batch.receivers):
            return True
        return has_work(self.tx, batch)

    def _is_notified(self, batch: Batch) -> bool:
        """Whether another process reported a message for a parked receiver: then the batch goes straight to the gate,
        and takes over changes there."""
        is_current = self._position.is_known and not self._clock.is_old()
        return is_current and not batch.notified.isdisjoint(batch.receivers)

    def commit(self) -> bool:
        """See storage/engine.py."""
        if not self._is_open:
            return False
        try:
            self._commit()
        except StatementFailed as error:
            self.roll_back()
            raise StorageUnavailable(str(error)) from error
        except DatabaseFailed as error:
            ended = self.connection.lost or not self.connection.in_transaction
            try:
                was_committed = ended and self._was_committed()
            except OutcomeLost:
                self.roll_back()
                raise
            if not was_committed:
                raise self.unavailable(error) from error
        self._notices.add_prepared()
        self._unflushed = False
        self._is_open = False
        if self.connection.wrote:
            self._position.note_own_commit()
        self.tx.adopt()
        self._taken_over.clear()
        return self.connection.wrote

    def _commit(self) -> None:
        """Send what is still to be sent, COMMIT and flush. If a statement fails, the batch runs again, isolated."""
        try:
            self._commit_and_flush()
        except StatementFailed:
            batch, result = self._running
            self.roll_back()
            isolated = run_in_transaction(self, batch, isolated=True)
            isolated.elsewhere, isolated.sent_set_aside = result.elsewhere, self._sends.moved.set_aside
            isolated.gate_seconds, isolated.lag_seconds = result.gate_seconds, result.lag_seconds
            for name in BatchResult.__struct_fields__:
                setattr(result, name, getattr(isolated, name))
            self._commit_and_flush()

    def _commit_and_flush(self) -> None:
        self.connection.send("commit")
        if self._flushes:
            if not self.connection.pooled:
                self.connection.end_sent()  # so that others hear of the batch while this process waits for the disk
            self.connection.send("flush")
        self.connection.wait(self._notices.add_prepared)

    @property
    def _flushes(self) -> bool:
        """Whether the answers of this batch have to wait for a flush."""
        return self.durability == "full" and (self.connection.wrote or self._unflushed)

    def _was_committed(self) -> bool:
        """Whether a batch is durable whose connection was lost during COMMIT. Raises OutcomeLost if nobody can tell."""
        if not self.connection.wrote:
            return not self._flushes
        ends_at = time.monotonic() + OUTCOME_SECONDS_MAX
        while True:
            try:
                self.connection.reopen()
                self.connection.send("begin")
                self.connection.query("gate")  # once this returns, the old connection's transaction has ended
                own = self._position.next_version, self._position.own
                found, forgotten = self.connection.query("find_batch", *own, BATCHES_STORED)[0]
                self.connection.query("rollback")
                if forgotten:
                    raise OutcomeLost("the other processes have run too many batches since")
                if found and self.durability == "full":
                    self.connection.query("flush")
                return bool(found)
            except DatabaseFailed as error:
                if time.monotonic() >= ends_at:
                    raise OutcomeLost(str(error)) from error
                time.sleep(0.1)

    def snapshot(self) -> Snapshot:
        return self._cache

    def facts(self) -> EngineFacts:
        version = self.connection.server_version
        return EngineFacts(
            name="PostgreSQL",
            version=f"{version // 10_000}.{version % 10_000}",
            durability=self.durability,
            shared=True,
            replica=None if self._replica is None else self._replica.state,
        )

    def copy_to(self, path: str, on_step: Callable[[int, int], None]) -> int:
        raise FeatureUnavailable

    def open_reader(self) -> PgReader:
        return PgReader(self._addresses.database, self._replica)

    @property
    def listen(self) -> Callable[[], PgListener]:
        position = self._position
        return partial(
            PgListener,
            self._addresses.listened,
            position.process,
            self._notices,
            lambda: position.known_version,
        )

    @property
    def tables_urls(self) -> tuple[str, str]:
        return self._addresses.urls

    @property
    def check_texts(self) -> Callable[[Struct], None]:
        return check_texts

    def clock(self) -> Clock:
        return self._clock

    def close(self) -> None:
        self.connection.close()

    # Taking over

    def _load(self) -> None:
        """Fill the cache from the tables, as of the last batch of any process."""
        self.connection.send("begin")
        self.connection.query("gate")
        self._reload()
        self.connection.query("commit")

    def _reload(self) -> None:
        """Fill the cache inside an open transaction, behind the gate."""
        position = self._position
        position.is_known = False
        has_run = position.last[0] > 0
        position.last = next(iter(self.connection.query("last_batch")), (0, ""))
        version = position.last[0]
        tx = Transaction.new(self.tx.settings.defaults, heads=True)
        tx.load(self.connection.query, self._addresses.database.name)
        withdrawn_until = self.tx.withdrawn.committed.last
        self.tx = self._cache.parts = tx
        since = max(version - BATCHES_READ_MAX + 1, 0) if has_run else version - 1
        batches = self.connection.query("batches_since", since, BATCHES_READ_MAX) if version else ()
        assert tx.heads is not None
        if has_run:
            tx.heads.committed = heads_after(batches)
        take_left(batches, version, tx)
        tx.withdrawn.forget_until(max(withdrawn_until, latest_position(batches)))
        position.is_known = self._unflushed = True
        self._taken_over.add_all(set(tx.counts.committed))

    def _catch_up(self) -> None:
        """Take over the batches of other processes, without waiting for the gate."""
        self._ensure_connected()
        if self._clock.is_old():
            self._clock.read(self.connection)
        if not self._take_over(self._news()):
            self._load()

    def _news(self) -> list[BatchRow]:
        """The last known batch and the later ones of others. Also notes whether applications sent messages."""
        rows = self.connection.query("batches_since", self._position.last[0], BATCHES_READ_MAX)
        self._sends.are_there = bool(rows) and rows[-1][0] is None
        return rows[:-1] if self._sends.are_there else rows

    def _take_over(self, rows: Sequence[BatchRow]) -> bool:
        """Adopt the changes of these batches. False if they do not follow the last one: read all tables again."""
        position = self._position
        if not position.is_known or len(rows) == BATCHES_READ_MAX:
            return False
        new = position.behind_last(rows)
        if new is None:
            return False
        if new:
            self._unflushed = True
        for version, made_by, changes in new:
            if version != position.next_version:
                return False
            try:
                shipped = unpack(changes)
            except msgspec.MsgspecError:
                return False
            shipped.take_over(self.tx)
            self.tx.withdrawn.others_ms = max(self.tx.withdrawn.others_ms, shipped.now_ms)
            position.last = version, made_by
            self._taken_over.add(shipped, self.tx, self._clock.now_ms())
            self.tx.adopt()
        return True

    # A batch

    def begin(self, batch: Batch, *, isolated: bool) -> None:
        """Enter the gate, and take over what the batches of others changed."""
        self._notices.discard_prepared()
        reads = () if isolated else first_read(self.tx, batch, _SETTLEMENTS)
        self._ensure_connected()
        self.connection.plans.note_messages(self.tx.sequence.last)
        asked_at = time.monotonic()
        try:
            news = self._enter(reads)
        except DatabaseFailed as error:
            if error.sqlstate != LOCK_TIMEOUT or not self._end_stopped():
                raise
            news = self._enter(reads)
        self._taken_over.gate_seconds = time.monotonic() - asked_at
        if not self._take_over(news):
            self._reload()
        self.tx.wakes.elsewhere = self._taken_over.changes.woken
        self._is_open = True

    def _enter(self, reads: tuple[Any, ...]) -> list[BatchRow]:
        """Begin a transaction behind the gate; returns `_news`. reads: see `first_read`."""
        self.connection.begin()
        self.connection.send("gate")
        if reads:
            self.connection.read_ahead(*reads)
        return self._news()

    def _end_stopped(self) -> bool:
        """End the connection of a process that holds the gate but no longer reads its answers; True if it did."""
        self.roll_back()
        return bool(self.connection.query("end_stopped"))

    def refusals(self, commands: Sequence[Command[Any]]) -> list[ForqError | None]:
        return [ZeroCharacter() if cannot_be_stored(command) else None for command in commands]

    def move_sent(self) -> None:
        self._sends.move(self.tx)

    def write(self) -> None:
        """Store the changes of this batch for the other processes."""
        tx = self.tx
        if not self.connection.wrote and not (
            tx.wakes.next or tx.wakes.committed_next or tx.wakes.claim_first_next
        ):
            if tx.heads is not None:
                tx.heads.discard()
            return
        version = self._position.next_version
        assert tx.heads is not None
        tx.heads.ships_whole = version % HEADS_WHOLE_EVERY == 0
        changes = pack(tx)
        self.connection.query("save_batch", version, self._position.name_own(), changes)
        if version % BATCHES_FORGOTTEN == 0:
            self.connection.query("forget_batches", version - BATCHES_STORED, BATCHES_FORGOTTEN)
        woken = [queue for queue in tx.wakes.woken if tx.counts.ready(queue)]
        if tx.endings.noted:
            woken.append(ENDED)
        # Others must know a token, a session, a new queue or a withdrawn message at once: the next request may go to
        # another process, and the worker may wait there.
        access_changed = tx.tokens.begins_or_ends() or tx.sessions.begins_or_ends()
        told_at_once = access_changed or tx.settings.changed or bool(tx.withdrawn.new)
        if woken or told_at_once:
            self._notices.prepare(version, None if told_at_once else woken)

    def roll_back(self) -> None:
        self._is_open = False
        self.tx.discard()
        if self.connection.lost:
            return
        try:
            self.connection.drain()
            if self.connection.in_transaction:
                self.connection.query("rollback")
        except DatabaseFailed:
            pass

    def _ensure_connected(self) -> None:
        if self.connection.lost:
            self.connection.reopen()

    def unavailable(self, error: Exception) -> StorageUnavailable:
        assert isinstance(error, DatabaseFailed)
        self.roll_back()
        return refusal(self.connection, error)
