"""Connections to the database, used in threads: the same code serves trio and asyncio.

psycopg's asynchronous connections run on asyncio only. A hop into a thread takes some 60 us, a statement over the
network with its commit many times that, so one driver is simpler than two and hardly slower. A cancellation waits for
the end of the statement, which has a time-out: what it has claimed is not lost.
"""

import select
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from time import monotonic
from typing import Any, Literal, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
import psycopg
from psycopg import conninfo, errors, pq, sql
from psycopg.abc import PQGen

from forq_trio.model import limits
from forq_trio.model.database_urls import split_pooled
from forq_trio.model.errors import ForqError, OutcomeUnknown, StorageUnavailable
from forq_trio.pgq.errors import DatabaseRefused, InvalidDatabaseUrl, NoTable, TableBusy, WrongTable
from forq_trio.pgq.statements import SQL

ResultT = TypeVar("ResultT")
Kind = Literal["claim", "send", "count", "other"]
"""Of a call: a table's sends may be slow, say, and its claims not."""

_BOUNDS = {"statement": str(limits.PGQ_STATEMENT_MS_MAX), "lock": str(limits.PGQ_LOCK_MS_MAX)}

# So that a server that went away without a word is noticed.
_KEEPALIVE = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


class PgqConnection(psycopg.Connection[tuple[Any, ...]]):
    """pooled: each transaction may run on another connection of the server, which would keep what a session sets."""

    pooled = False

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        super().__init__(pgconn)
        self._partitioned: dict[str, bool] = {}
        self._planned_until = 0.0

    def is_partitioned(self, table: str) -> bool:
        """As it was when the connection first asked: only time depends on it."""
        if table not in self._partitioned:
            if len(self._partitioned) >= limits.PGQ_STATEMENTS_CACHED_MAX:
                self._partitioned.clear()
            quoted = {"quoted": sql.Identifier(table).as_string(self)}
            self._partitioned[table] = self.execute(SQL["is_partitioned"], quoted).fetchone() == (True,)
        return self._partitioned[table]

    def execute_planned(
        self, statement: sql.Composed, parameters: Mapping[str, Any]
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """`execute` with a plan that stays for PGQ_PLANNED_SECONDS: for a table of many partitions.

        Waits once, is a transaction by itself, and not for use through a pool.
        """
        self.prepare_threshold = 0
        try:
            with self.pipeline():  # up to its end all is one transaction
                if monotonic() >= self._planned_until:
                    self._planned_until = monotonic() + limits.PGQ_PLANNED_SECONDS
                    self.execute(SQL["forget_plans"], prepare=False)
                self.execute(SQL["set_one_plan"], prepare=False)
                return self.execute(statement, parameters)
        finally:
            self.prepare_threshold = None

    def wait(self, gen: PQGen[ResultT], *args: Any, **options: Any) -> ResultT:
        """Raises OperationalError without a byte for PGQ_ANSWER_SECONDS_MAX: psycopg waits without end."""
        return super().wait(self._heard(gen), *args, **options)

    def _heard(self, gen: PQGen[ResultT]) -> PQGen[ResultT]:
        try:
            wanted = next(gen)
        except StopIteration as done:  # what waits for nothing, such as the beginning of a pipeline
            at_once: ResultT = done.value
            return at_once
        heard_at = monotonic()
        while True:
            ready = yield wanted
            if ready:
                heard_at = monotonic()
            elif monotonic() >= heard_at + limits.PGQ_ANSWER_SECONDS_MAX:
                self.pgconn.finish()
                raise psycopg.OperationalError("the database does not answer")
            try:
                wanted = gen.send(ready)
            except StopIteration as done:
                result: ResultT = done.value
                return result

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Statements have time-outs; through a pool all of the body is one transaction, and leaves none behind."""
        if not self.pooled:
            yield
            return
        with self.transaction():
            self.execute(SQL["set_up"], _BOUNDS | {"local": True})
            yield

    @contextmanager
    def apart(self) -> Iterator[None]:
        """A statement after which others run if it fails."""
        with self.transaction() if self.pooled else nullcontext():
            yield


class PgqConnections:
    """Connections that are made when they are needed. Close them in the end.

    A table that is locked, or so large that its statements are slow, must not use them all. So a table has a share of
    them (`each`). A call that has become slow leaves its place to others, and goes on as one of
    PGQ_LATE_CONNECTIONS_MAX. Calls of its kind for the table then use others, of which all tables together have
    PGQ_SLOW_CONNECTIONS_MAX, until one is quick.
    """

    def __init__(self, database_url: str, each: int = limits.PGQ_CONNECTIONS_MAX) -> None:
        """Raises InvalidDatabaseUrl."""
        check_url(database_url)
        self._url = database_url
        self._idle: list[PgqConnection] = []
        self._limiter = anyio.CapacityLimiter(
            limits.PGQ_CONNECTIONS_MAX + limits.PGQ_SLOW_CONNECTIONS_MAX + limits.PGQ_LATE_CONNECTIONS_MAX
        )
        self._each = each
        self._shares: WeakValueDictionary[str, anyio.Semaphore] = WeakValueDictionary()
        self._quick = anyio.Semaphore(limits.PGQ_CONNECTIONS_MAX)
        self._claims = anyio.Semaphore(limits.PGQ_CLAIM_CONNECTIONS_MAX)
        self._slow = anyio.Semaphore(limits.PGQ_SLOW_CONNECTIONS_MAX)
        self._late = anyio.Semaphore(limits.PGQ_LATE_CONNECTIONS_MAX)
        self._slow_calls: set[tuple[str, Kind]] = set()

    async def run(
        self, table: str, work: Callable[[PgqConnection], ResultT], *, kind: Kind = "other"
    ) -> ResultT:
        """Run `work` with a connection in a thread; each of its statements is a transaction, if it says nothing else.
        Through a pool all of it is one.

        kind: of claims only some run at the same time.
        Raises StorageUnavailable where nothing was changed and a later try may succeed, OutcomeUnknown where that is
        not known, NoTable and WrongTable, DatabaseRefused. Cancelled while it runs, it ends first, and returns.
        """
        failure: Exception | None = None
        async with self._turn(table, kind) as place:
            began = anyio.current_time()
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._note_slow, (table, kind), place)
                    try:
                        result = await anyio.to_thread.run_sync(self._run, work, limiter=self._limiter)
                    except Exception as error:  # raised below as it is, in no group
                        failure = error
                    tasks.cancel_scope.cancel()
            if anyio.current_time() < began + limits.PGQ_SLOW_SECONDS:
                self._slow_calls.discard((table, kind))
        if failure is not None:
            raise failure
        return result

    @asynccontextmanager
    async def _turn(self, table: str, kind: Kind) -> AsyncIterator[AsyncExitStack | None]:
        """Wait for a connection of the table's share; gives its place if it is one that a slow call leaves.

        Raises TableBusy where that takes too long.
        """
        share = self._shares.setdefault(table, anyio.Semaphore(self._each))
        is_slow = False
        async with AsyncExitStack() as held, AsyncExitStack() as place:
            try:
                with anyio.fail_after(limits.PGQ_SHARE_SECONDS_MAX):
                    await held.enter_async_context(share)
                with anyio.fail_after(limits.PGQ_TURN_SECONDS_MAX):
                    is_slow = (table, kind) in self._slow_calls
                    if is_slow:
                        await held.enter_async_context(self._slow)
                    else:
                        if kind == "claim":
                            await place.enter_async_context(self._claims)
                        await place.enter_async_context(self._quick)
            except TimeoutError:
                raise TableBusy(f"too many calls wait for the table {table!r}") from None
            yield None if is_slow else place

    async def _note_slow(self, call: tuple[str, Kind], place: AsyncExitStack | None) -> None:
        """Once a call is slow, let another one run in its place; ends when cancelled."""
        await anyio.sleep(limits.PGQ_SLOW_SECONDS)
        self._slow_calls.add(call)
        if place is not None:
            async with self._late:
                await place.aclose()
                await anyio.sleep_forever()

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def _run(self, work: Callable[[PgqConnection], ResultT]) -> ResultT:
        connection = self._take()
        try:
            with connection.bounded():
                return work(connection)
        except psycopg.Error as problem:
            raise error_of(problem, connection) from problem
        finally:
            if connection.closed or len(self._idle) >= limits.PGQ_CONNECTIONS_MAX:
                connection.close()
            else:
                self._idle.append(connection)

    def _take(self) -> PgqConnection:
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if is_alive(connection):
                    return connection
                connection.close()
        return connect(self._url)


@contextmanager
def connected(database_url: str) -> Iterator[PgqConnection]:
    """A connection that is closed at the end. Raises what `PgqConnections` and `PgqConnections.run` raise."""
    check_url(database_url)
    connection = connect(database_url)
    try:
        with connection.bounded():
            yield connection
    except psycopg.Error as problem:
        raise error_of(problem, connection) from None
    finally:
        connection.close()


def check_url(database_url: str) -> None:
    """Raise InvalidDatabaseUrl, which does not show the URL: it may have a password.

    A password with @ or / that is not written as %40 or %2F is taken for a host or a port, which errors would show.
    """
    try:
        parts = conninfo.conninfo_to_dict(split_pooled(database_url)[0])
    except psycopg.ProgrammingError:
        raise InvalidDatabaseUrl from None
    place = f"{parts.get('host', '')}{parts.get('dbname', '')}"
    ports = str(parts.get("port", "")).replace(",", "")
    is_url = database_url.startswith(("postgresql://", "postgres://"))
    if not is_url or "@" in place or not (ports.isdecimal() or not ports):
        raise InvalidDatabaseUrl


def connect(database_url: str) -> PgqConnection:
    """A connection whose statements are transactions by themselves and have time-outs.

    Raises StorageUnavailable, and DatabaseRefused for a database whose encoding cannot store every text.
    """
    url, pooled = split_pooled(database_url)
    given = conninfo.conninfo_to_dict(url)
    usual = {
        "connect_timeout": str(limits.PGQ_CONNECT_SECONDS_MAX),
        "application_name": "forq pgq",
    } | _KEEPALIVE
    try:
        connection = PgqConnection.connect(conninfo.make_conninfo("", **usual | given), autocommit=True)
        connection.prepare_threshold = None
    except psycopg.Error as problem:
        raise StorageUnavailable(f"the database cannot be reached: {_words(problem)}") from None
    try:
        check_encoding(connection.info)
    except DatabaseRefused:
        connection.close()
        raise
    try:
        ((process,),) = connection.execute(SQL["server_process"])
        connection.pooled = pooled or process != connection.info.backend_pid
        if not connection.pooled:
            connection.execute(SQL["set_up"], _BOUNDS | {"local": False})
    except psycopg.Error as problem:
        connection.close()
        raise StorageUnavailable(f"the database cannot be used: {_words(problem)}") from None
    return connection


def check_encoding(info: psycopg.ConnectionInfo) -> None:
    """Raise DatabaseRefused for a database whose encoding cannot store every text."""
    encoding = info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):  # a pool may not say it
        raise DatabaseRefused(
            f"the database has the encoding {encoding}, which cannot store every text; use one of UTF8"
        )


def is_alive(connection: PgqConnection) -> bool:
    """Whether an idle connection can be used: its server has not closed it. What it says unasked is no good sign."""
    if connection.closed or connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def error_of(problem: psycopg.Error, connection: PgqConnection) -> ForqError:
    """The error of ours that says what a caller can do."""
    words = _words(problem)
    match problem:
        case errors.UndefinedTable():
            return NoTable(words)
        case errors.UndefinedColumn() | errors.DatatypeMismatch() | errors.UndefinedFunction():
            return WrongTable(words)
        case errors.LockNotAvailable():
            return TableBusy(f"somebody has locked what a call needs: {words}")
        case errors.QueryCanceled():
            return TableBusy(f"it took too long, does the table have its indexes? {words}")
        case _ if connection.closed:
            return OutcomeUnknown(f"the connection to the database was lost: {words}")
        case psycopg.OperationalError() | errors.ReadOnlySqlTransaction():
            if isinstance(problem, errors.ReadOnlySqlTransaction):
                connection.close()  # the database has become a replica: the next one may be another server
            return StorageUnavailable(f"the database does not do it now: {words}")
    return DatabaseRefused(f"the database refused it: {words}")


def _words(problem: psycopg.Error) -> str:
    """The first line of what the database says: without the statement and its parameters."""
    text = problem.diag.message_primary or str(problem)
    return text.strip().partition("\n")[0] or type(problem).__name__
