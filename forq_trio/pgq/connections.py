"""Connections to the database, used in threads: the same code serves trio and asyncio.

psycopg's asynchronous connections run on asyncio only. A hop into a thread takes some 60 us, a statement over the
network with its commit many times that, so one driver is simpler than two and hardly slower. A cancellation waits for
the end of the statement, which has a time-out: what it has claimed is not lost.
"""

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import psycopg
from psycopg import conninfo, errors, pq

from forq_trio.model import limits
from forq_trio.model.errors import ForqError, OutcomeUnknown, StorageUnavailable
from forq_trio.pgq.errors import DatabaseRefused, InvalidDatabaseUrl, NoTable, WrongTable
from forq_trio.pgq.statements import SQL

ResultT = TypeVar("ResultT")
Connection = psycopg.Connection[tuple[Any, ...]]

# Of a server that is not reachable any more, without a word.
_KEEPALIVE = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


class Connections:
    """Up to PGQ_CONNECTIONS_MAX connections, made when they are needed. Close them in the end."""

    def __init__(self, database_url: str) -> None:
        """Raises InvalidDatabaseUrl."""
        check_url(database_url)
        self._url = database_url
        self._idle: list[Connection] = []
        self._limiter = anyio.CapacityLimiter(limits.PGQ_CONNECTIONS_MAX)

    async def run(self, work: Callable[[Connection], ResultT]) -> ResultT:
        """Run `work` with a connection in a thread; each of its statements is a transaction, if it says nothing else.

        Raises StorageUnavailable where nothing was changed and a later try may succeed, OutcomeUnknown where that is
        not known, NoTable and WrongTable, DatabaseRefused. Cancelled while it runs, it ends first, and returns.
        """
        return await anyio.to_thread.run_sync(self._run, work, limiter=self._limiter)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def _run(self, work: Callable[[Connection], ResultT]) -> ResultT:
        connection = self._take()
        try:
            return work(connection)
        except psycopg.Error as problem:
            raise error_of(problem, connection) from problem
        finally:
            if connection.closed:
                connection.close()
            else:
                self._idle.append(connection)

    def _take(self) -> Connection:
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if is_alive(connection):
                    return connection
                connection.close()
        return connect(self._url)


@contextmanager
def connected(database_url: str) -> Iterator[Connection]:
    """A connection that is closed at the end. Raises what `Connections` and `Connections.run` raise."""
    check_url(database_url)
    connection = connect(database_url)
    try:
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
        parts = conninfo.conninfo_to_dict(database_url)
    except psycopg.ProgrammingError:
        raise InvalidDatabaseUrl from None
    place = f"{parts.get('host', '')}{parts.get('dbname', '')}"
    ports = str(parts.get("port", "")).replace(",", "")
    is_url = database_url.startswith(("postgresql://", "postgres://"))
    if not is_url or "@" in place or not (ports.isdecimal() or not ports):
        raise InvalidDatabaseUrl


def connect(database_url: str) -> Connection:
    """A connection whose statements are transactions by themselves and have time-outs. Raises StorageUnavailable."""
    given = conninfo.conninfo_to_dict(database_url)
    usual = {
        "connect_timeout": str(limits.PGQ_CONNECT_SECONDS_MAX),
        "application_name": "forq pgq",
    } | _KEEPALIVE
    try:
        connection = psycopg.connect(conninfo.make_conninfo("", **usual | given), autocommit=True)
        connection.prepare_threshold = None
    except psycopg.Error as problem:
        raise StorageUnavailable(f"the database cannot be reached: {_words(problem)}") from None
    try:
        times = {"statement": str(limits.PGQ_STATEMENT_MS_MAX), "lock": str(limits.PGQ_LOCK_MS_MAX)}
        connection.execute(SQL["set_up"], times)
    except psycopg.Error as problem:
        connection.close()
        raise StorageUnavailable(f"the database cannot be used: {_words(problem)}") from None
    return connection


def is_alive(connection: Connection) -> bool:
    """Whether an idle connection can be used: its server has not closed it. What it says unasked is no good sign."""
    if connection.closed or connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def error_of(problem: psycopg.Error, connection: Connection) -> ForqError:
    """The error of ours that says what a caller can do."""
    words = _words(problem)
    match problem:
        case errors.UndefinedTable():
            return NoTable(words)
        case errors.UndefinedColumn() | errors.DatatypeMismatch() | errors.UndefinedFunction():
            return WrongTable(words)
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
