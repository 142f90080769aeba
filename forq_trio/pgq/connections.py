"""Connections to the database, used in threads: the same code serves trio and asyncio.

psycopg's asynchronous connections run on asyncio only. A hop into a thread takes some 60 us, and a statement over the
network with its commit many times that. So one driver is simpler than two and hardly slower. A cancellation waits for
the end of the statement, which has a time-out, so the messages that it has claimed are not lost.
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
from forq_trio.model.errors import ForqError, OutcomeUnknown, StorageUnavailable
from forq_trio.model.server.database_urls import split_pooled
from forq_trio.pgq.errors import DatabaseRefused, InvalidDatabaseUrl, NoTable, TableBusy, WrongTable
from forq_trio.pgq.statements import SQL

ResultT = TypeVar("ResultT")
Kind = Literal["claim", "send", "count", "other"]
"""The kind of a call, because for example a table's sends may be slow while its claims are not."""

_BOUNDS = {"statement": str(limits.PGQ_STATEMENT_MS_MAX), "lock": str(limits.PGQ_LOCK_MS_MAX)}

# Makes the system notice when the server disappears without closing the connection.
_KEEPALIVE = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


class PgqConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection.

    pooled: it goes through a pool, which may run each transaction on another connection of the server; settings of a
    session would stay there, for other programs.
    """

    pooled = False

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        super().__init__(pgconn)
        self._partitioned: dict[str, bool] = {}
        self._planned_until = 0.0

    def is_partitioned(self, table: str) -> bool:
        """Whether the table is partitioned. Asked once for each connection: only the speed depends on it."""
        if table not in self._partitioned:
            if len(self._partitioned) >= limits.PGQ_STATEMENTS_CACHED_MAX:
                self._partitioned.clear()
            quoted = {"quoted": sql.Identifier(table).as_string(self)}
            self._partitioned[table] = self.execute(SQL["is_partitioned"], quoted).fetchone() == (True,)
        return self._partitioned[table]

    def execute_planned(
        self, statement: sql.Composed, parameters: Mapping[str, Any]
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """Like `execute`, with a plan that is used for PGQ_PLANNED_SECONDS: for a table of many partitions.

        It waits for the server once, and is a transaction of its own. Not for use through a pool.
        """
        self.prepare_threshold = 0
        try:
            with self.pipeline():  # everything in the pipeline is one transaction
                if monotonic() >= self._planned_until:
                    self._planned_until = monotonic() + limits.PGQ_PLANNED_SECONDS
                    self.execute(SQL["forget_plans"], prepare=False)
                self.execute(SQL["set_one_plan"], prepare=False)
                return self.execute(statement, parameters)
        finally:
            self.prepare_threshold = None

    def wait(self, gen: PQGen[ResultT], *args: Any, **options: Any) -> ResultT:
        """Wait as psycopg does, which has no time-out: raises OperationalError after PGQ_ANSWER_SECONDS_MAX without a
        byte.
        """
        return super().wait(self._heard(gen), *args, **options)

    def _heard(self, gen: PQGen[ResultT]) -> PQGen[ResultT]:
        try:
            wanted = next(gen)
        except StopIteration as done:  # it need not wait, as the beginning of a pipeline
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
        """Give statements time-outs in the body. Through a pool the body is one transaction, so none stays set."""
        if not self.pooled:
            yield
            return
        with self.transaction():
            self.execute(SQL["set_up"], _BOUNDS | {"local": True})
            yield

    @contextmanager
    def apart(self) -> Iterator[None]:
        """For a statement whose failure must not prevent the statements after it."""
        with self.transaction() if self.pooled else nullcontext():
            yield


class PgqConnections:
    """Connections that are made when they are needed. To be closed in the end.

    A table that is locked, or so large that its statements are slow, must not use all connections. So a table has a
    share of them (`each`). A call that has become slow gives up its place in the share, and goes on as one of
    PGQ_LATE_CONNECTIONS_MAX. Further calls of its kind for the table then use other places, PGQ_SLOW_CONNECTIONS_MAX
    for all tables together, until one of the calls is quick.
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
        """Run `work` with a connection in a thread.

        Each of its statements is a transaction, unless it begins one itself; through a pool, all of it is one. kind:
        only some claims run at the same time. Raises StorageUnavailable if nothing was changed and a later try may
        succeed, OutcomeUnknown if that is not known, NoTable, WrongTable, DatabaseRefused. If cancelled while `work`
        runs, it waits for the end and returns the result.
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
        """Wait for a place in the table's share; yields it if a call that becomes slow has to give it up, else None.

        Raises TableBusy if the wait takes too long.
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
        """Wait until the call is slow, then give its place to another one. Cancelled when the call ends."""
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
    """Raise InvalidDatabaseUrl for an invalid URL. The error does not show the URL, which may have a password.

    Libpq takes a part of a password with an unescaped @ or / for a host or a port, and would show it in its errors.
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
    """Whether an idle connection can be used. If there is something to read on it, the server has closed it."""
    if connection.closed or connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def error_of(problem: psycopg.Error, connection: PgqConnection) -> ForqError:
    """Our error for one of psycopg: it says what the caller can do."""
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
            return StorageUnavailable(f"the database cannot do this now: {words}")
    return DatabaseRefused(f"the database refused it: {words}")


def _words(problem: psycopg.Error) -> str:
    """The first line of the database's message, without the statement and its parameters."""
    text = problem.diag.message_primary or str(problem)
    return text.strip().partition("\n")[0] or type(problem).__name__
