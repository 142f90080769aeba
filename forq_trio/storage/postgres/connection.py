"""A connection to PostgreSQL in pipeline mode: a statement without rows is sent along with the next one that has some.

So a batch of many statements waits for the network only a few times. If such a statement fails, the next one that is
waited for raises its error; the server has skipped everything in between.

libpq is used without blocking, and this thread waits for the socket, so that other threads can run.

Behind a connection pool (PgBouncer) each transaction may run on a different connection of the server. There each
transaction begins with our settings, and statements are not prepared under names. A pool is recognised because the
process id that it tells its clients differs from the one that the server reports; otherwise the URL has to say so.
"""

import json
import select
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from psycopg import Error, adapters, pq
from psycopg.adapt import AdaptersMap, Transformer
from psycopg.types.numeric import IntLoader
from psycopg.types.string import TextLoader

from forq_trio.storage.postgres.bindings import array, encoded
from forq_trio.storage.postgres.connecting import NotConnected, cancel, connect
from forq_trio.storage.postgres.dialect import (
    ADDING,
    BEGINNING,
    CHANGING,
    MANY,
    MANY_SUFFIX,
    NAMED,
    NAMED_TABLES,
    NAMING,
    SILENT,
    SQL,
    UNBOUNDED,
    UPDATES_MANY,
    WRITTEN_TABLES,
)
from forq_trio.storage.postgres.failures import DatabaseFailed, StatementFailed, error_of, one_line
from forq_trio.storage.postgres.many_rows import by_place
from forq_trio.storage.postgres.plans import Plans
from forq_trio.storage.relational.connection import Rows

PIPELINE_MAX = 512
"""The most statements that are sent without waiting for their results."""
NOTIFIED_BYTES_MAX = 64 * 1024
"""The most bytes of unread notifications: any role may send as many as it likes."""
ANSWER_SECONDS_MAX = 15.0
"""A connection that sends no byte for so long counts as lost: the machine of the database may be gone."""
_COMMAND, _TUPLES, _SYNC = pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.PIPELINE_SYNC
_FINE = (_COMMAND, _TUPLES)
_STARTED = "(started)"
"""Marks a result that is due for a statement of `start`; no statement has this name."""


class _Adapters:
    """Turns columns into the values that SQLite returns: numbers of any type become int, and JSON stays text."""

    def __init__(self) -> None:
        self.connection = None
        self.adapters = AdaptersMap(adapters)
        self.adapters.register_loader("numeric", IntLoader)
        self.adapters.register_loader("json", TextLoader)


_ADAPTERS: Any = _Adapters()


class _Heard:
    """What the server sent unasked: its version; and until it is taken, notifications and the answer to a `start`."""

    def __init__(self, server_version: int) -> None:
        self.server_version = server_version
        self.answer: bytes | None = None  # the first value of what `start` sent; None if it failed
        self._payloads: list[bytes] = []
        self._bytes = 0

    def take_answer(self, result: pq.abc.PGresult) -> None:
        self.answer = result.get_value(0, 0) if result.status == _TUPLES else None

    def read_from(self, pg: Any) -> None:
        """Take all notifications out of libpq; beyond NOTIFIED_BYTES_MAX they are counted and dropped."""
        while (found := pg.notifies()) is not None:
            self._bytes += len(found.extra)
            if self._bytes <= NOTIFIED_BYTES_MAX:
                self._payloads.append(found.extra)

    def take(self) -> list[str] | None:
        """The payloads of the notifications since the last call; None if there were too many."""
        payloads, size = self._payloads, self._bytes
        self._payloads, self._bytes = [], 0
        return None if size > NOTIFIED_BYTES_MAX else [each.decode(errors="replace") for each in payloads]


class PgConnection:
    """One connection, used by one thread at a time. See `Connection`."""

    storage_errors: ClassVar[tuple[type[Exception], ...]] = (DatabaseFailed,)
    is_distant = True

    def __init__(self, conninfo: str, settings: Mapping[str, str], *, pooled: bool = False) -> None:
        """Connect. settings: of the server's sessions. pooled: behind a pool, even if none is recognised.

        Raises DatabaseFailed.
        """
        self._conninfo = conninfo
        self._settings = json.dumps(dict(settings)).encode()
        self._is_pool = pooled
        self.plans = Plans()
        self.wrote = False  # the open transaction changed something
        self.waits = 0  # how often this thread waited for results since the transaction began
        self._open()

    def _open(self) -> None:
        try:
            self._pg = connect(self._conninfo)
        except (NotConnected, Error) as error:
            raise DatabaseFailed(one_line(str(error))) from None
        self._pg.nonblocking = 1
        self._pg.enter_pipeline_mode()
        self._poll = select.poll()
        self._poll.register(self._pg.socket, select.POLLIN)
        self._prepared: set[str] = set()
        self.plans.are_made()
        self._sent: deque[str | list[Any] | None] = deque()
        """The results that are due, in order: the name of a statement to prepare, the list for the rows of one that is
        read ahead, _STARTED for one of `start`, None for all others."""
        self._syncs = 0
        """How many parts of what was sent still have results due; a part ends with a sync, and fails alone."""
        self._heard = _Heard(self._pg.server_version)
        self._ahead: dict[tuple[Any, ...], list[Any]] = {}
        """The rows of statements that were read ahead, by name and bindings."""
        self._transformer = Transformer(_ADAPTERS)
        self.pooled = self._is_pool or self._started("server_process") != self._pg.backend_pid
        """Whether each transaction may run on a different connection of the server."""
        if self.pooled:
            self._check_pool()
        else:
            self._started("set_settings", self._settings, b"false")

    def _check_pool(self) -> None:
        """Raise DatabaseFailed if the pool gives each statement, not only each transaction, another connection."""
        try:
            self._started("begin")
            self._started("commit")
        except DatabaseFailed as error:
            raise DatabaseFailed(f"its pool needs pool_mode = transaction or session ({error})") from None

    def _started(self, name: str, *values: bytes) -> Any:
        """Run a statement while the connection is set up; returns its first value, if any. Raises DatabaseFailed."""
        try:
            self._pg.send_query_params(SQL[name].encode(), values)
            self._sent.append(None)
            rows = self.wait()
        except (StatementFailed, DatabaseFailed, Error) as error:
            self._pg.finish()
            raise DatabaseFailed(one_line(str(error)), getattr(error, "sqlstate", "")) from error
        return rows[0][0] if rows else None

    @property
    def lost(self) -> bool:
        return self._pg.status != pq.ConnStatus.OK

    @property
    def server_version(self) -> int:
        """As of the last connection, also while it is lost."""
        return self._heard.server_version

    @property
    def socket(self) -> int:
        return self._pg.socket

    @property
    def in_transaction(self) -> bool:
        return self._pg.transaction_status != pq.TransactionStatus.IDLE

    def reopen(self) -> None:
        """Connect anew. Raises DatabaseFailed."""
        self.close()
        self._open()

    def close(self) -> None:
        self._pg.finish()

    @property
    def busy(self) -> bool:
        """Whether the result of a statement is still due."""
        return self._syncs > 0

    def notifications(self) -> list[str] | None:
        """The payloads of the notifications since the last call; None if there were too many. Raises DatabaseFailed.

        Also reads the result of `start`, if it has arrived.
        """
        try:
            self._pg.consume_input()
            for result in self._received():
                if result.status != _SYNC:
                    name = self._sent.popleft()
                    if name is _STARTED:
                        self._heard.take_answer(result)
                    elif result.status != _COMMAND:
                        self._prepared.discard(str(name))
            self._heard.read_from(self._pg)
        except Error as error:
            raise DatabaseFailed(one_line(str(error))) from error
        return self._heard.take()

    @property
    def answer(self) -> bytes | None:
        """The first value of the statement that `start` sent; None if it failed."""
        return self._heard.answer

    def cancel(self) -> None:
        """Try to cancel the running statement, from another thread. Blocks."""
        with suppress(Error):
            cancel(self._pg)

    # Statements

    def send(self, name: str, *bindings: Any) -> None:
        """Queue a statement; it is sent no later than the next one that is waited for."""
        if not self.pooled and not self._sent and self.plans.are_outdated and not self.in_transaction:
            self.plans.are_made()
            self.send("forget_plans")
            self.wait()
        self._put(name, bindings)

    def start(self, name: str, *bindings: Any) -> None:
        """Send a statement without waiting for it. `busy` until `notifications` has read its result or error.

        Raises DatabaseFailed.
        """
        self._put(name, bindings)
        self._sent[-1] = _STARTED
        try:
            self.end_sent()
            self._pg.flush()
        except Error as error:
            raise DatabaseFailed(one_line(str(error))) from error

    def end_sent(self) -> None:
        """End a part: what was sent so far succeeds or fails on its own, and its results come at once.

        Raises DatabaseFailed.
        """
        try:
            self._pg.pipeline_sync()
        except Error as error:
            raise DatabaseFailed(one_line(str(error))) from error
        self._syncs += 1

    def _put(self, name: str, bindings: Sequence[Any]) -> None:
        values = [None if each is None else encoded(each) for each in bindings]
        formats = [type(each) is bytes for each in bindings]  # bytes are in the binary format already
        try:
            if self.pooled:
                self._send_pooled(name, values, formats)
            else:
                if name not in self._prepared:
                    self._pg.send_prepare(name.encode(), SQL[name].encode())
                    self._sent.append(name)
                    self._prepared.add(name)
                self._pg.send_query_prepared(name.encode(), values, formats)
        except Error as error:
            raise DatabaseFailed(one_line(str(error))) from error
        self._sent.append(None)
        if name in CHANGING:
            self.wrote = True
            if self._ahead:
                adds = name in ADDING
                self._ahead = {key: rows for key, rows in self._ahead.items() if adds and key[0] in NAMING}

    def begin(self) -> None:
        """Begin the transaction of a batch, along with the next statement that is waited for."""
        self.wrote = False
        self._ahead.clear()
        self.send("begin")
        self.waits = 0

    def read_ahead(self, name: str, *bindings: Any) -> None:
        """Send a statement that `query` will run later; its rows are here by then, unless a change makes them stale."""
        self.send(name, *bindings)
        self._sent[-1] = self._ahead[name, *bindings] = []

    def _send_pooled(self, name: str, values: Sequence[bytes | None], formats: Sequence[int]) -> None:
        if name not in BEGINNING and not self._sent and not self.in_transaction:
            self._send_settings()  # all that is sent up to the next wait is one transaction
        self._pg.send_query_params(SQL[name].encode(), values, param_formats=formats)
        if name in BEGINNING:
            self._sent.append(None)
            self._send_settings()
            self._sent.pop()  # because `send` has added it already

    def _send_settings(self) -> None:
        self._pg.send_query_params(SQL["set_settings"].encode(), [self._settings, b"true"])
        self._sent.append(None)

    def query(self, name: str, *bindings: Any) -> list[Any]:
        if self._ahead and (found := self._ahead.pop((name, *bindings), None)) is not None:
            return found
        self.send(name, *bindings)
        if name in SILENT:
            if len(self._sent) >= PIPELINE_MAX:
                self.wait()
            return []
        return self.wait()

    def query_each(self, name: str, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
        (found,) = self.query_all([(name, rows)])
        return [
            self.query(name, *row) if each is None else each for row, each in zip(rows, found, strict=True)
        ]

    def query_all(
        self, reads: Sequence[tuple[str, Sequence[tuple[Any, ...]]]]
    ) -> list[list[list[Any] | None]]:
        results: list[list[list[Any]]] = []
        for name, rows in reads:
            is_many = name in MANY and len(rows) > 1
            statement = name + MANY_SUFFIX if is_many else name
            sent: list[list[Any]] = []
            for bindings in [tuple(map(array, zip(*rows, strict=True)))] if is_many else rows:
                self.send(statement, *bindings)
                found: list[Any] = []
                self._sent[-1] = found
                sent.append(found)
                if len(self._sent) >= PIPELINE_MAX:
                    self.wait()
            results.append(sent)
        if self._sent:
            self.wait()
        return [
            by_place(sent[0], len(rows)) if name in MANY and len(rows) > 1 else [*sent]
            for (name, rows), sent in zip(reads, results, strict=True)
        ]

    def names_one_thing(self, name: str) -> bool:
        return name in NAMED

    def reads(self, name: str) -> frozenset[str]:
        return NAMED_TABLES[name]

    def writes(self, name: str) -> frozenset[str]:
        return WRITTEN_TABLES[name]

    def returns_rows(self, name: str) -> bool:
        return name not in SILENT

    def changed_in(self, queue: str) -> None:
        """Nothing to do: the statement that makes a change drops what was read ahead."""

    def run(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if (
            name in MANY
            and len(rows) > 1
            and (name not in UPDATES_MANY or len({row[-1] for row in rows}) == len(rows))
        ):
            self.query(name + MANY_SUFFIX, *map(array, zip(*rows, strict=True)))
        else:
            for row in rows:
                self.query(name, *row)

    def rows(self, name: str, *bindings: Any) -> Rows:
        if name in UNBOUNDED:
            self.send(name, *bindings)
            return self._fetched()
        return _Rows(self.query(name, *bindings))

    def _fetched(self) -> Generator[Any, None, None]:
        """The rows of the cursor that was just declared."""
        try:
            while rows := self.query("fetch"):
                yield from rows
        finally:
            if not self.lost:
                self.send("close_cursor")

    def wait(self, at_part: Callable[[], None] | None = None) -> list[Any]:
        """Wait for all results; returns the rows of the last statement. Raises StatementFailed, DatabaseFailed.

        at_part: called when a part has ended without an error.
        """
        rows: list[Any] = []
        error: Exception | None = None
        for result in self._results():
            status = result.status
            if status == _SYNC:
                if at_part is not None and error is None:
                    at_part()
                continue
            due = self._sent.popleft() if self._sent else None
            if due is _STARTED:  # its answer arrived together with the results that are waited for
                self._heard.take_answer(result)
            elif status == _TUPLES:
                self._transformer.set_pgresult(result)
                rows = self._transformer.load_rows(0, result.ntuples, tuple)
                if isinstance(due, list):
                    due += rows
            elif status != _COMMAND:
                if isinstance(due, str):
                    self._prepared.discard(due)
                if status == pq.ExecStatus.FATAL_ERROR and error is None:
                    error = error_of(result)
        if error is not None:
            raise error
        return rows

    def script(self, statements: str) -> None:
        """Run the statements of a migration, which have no names. Raises StatementFailed, DatabaseFailed."""
        self.wait()
        self._pg.exit_pipeline_mode()
        result = self._pg.exec_(statements.encode())
        self._pg.enter_pipeline_mode()
        if result.status not in _FINE:
            raise error_of(result)

    def drain(self) -> None:
        """Wait for all results and drop them; ignores statements that failed because of a value."""
        self._ahead.clear()
        with suppress(StatementFailed):
            self.wait()

    def _results(self) -> Iterator[pq.abc.PGresult]:
        """The results of what was sent, up to here."""
        pg = self._pg
        self.waits += 1
        try:
            self.end_sent()
            while True:
                unsent = pg.flush()
                yield from self._received()  # read before sending on: the server stops reading while its answers wait
                if not self._syncs:
                    return
                self._poll.modify(pg.socket, select.POLLIN | (select.POLLOUT if unsent else 0))
                if not self._poll.poll(ANSWER_SECONDS_MAX * 1_000):
                    pg.finish()
                    raise DatabaseFailed("the database does not answer")
                pg.consume_input()
                self._heard.read_from(pg)
        except Error as error:
            raise DatabaseFailed(one_line(str(error))) from error

    def _received(self) -> Iterator[pq.abc.PGresult]:
        """The results that have arrived, among them the end of each part. Raises DatabaseFailed."""
        pg = self._pg
        while self._syncs and not pg.is_busy():
            result = pg.get_result()
            if result is None:
                if pg.status != pq.ConnStatus.OK:
                    raise DatabaseFailed(one_line(pg.get_error_message()))
                continue
            if result.status == _SYNC:
                self._syncs -= 1
            yield result

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self.send("savepoint")
        self.wait()
        try:
            yield
            self.wait()
        except self.storage_errors:
            raise
        except Exception:
            self.drain()
            self.send("undo_part")
            self.send("end_part")
            self.wait()
            raise
        self.send("end_part")


class _Rows:
    """Rows that are in memory already."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def close(self) -> None:
        """Nothing to do: no cursor is open."""
