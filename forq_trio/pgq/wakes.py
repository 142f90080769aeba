"""Who waits for messages of a table is woken when there are some: by its own process, or by the table's trigger.

Nothing depends on it: waiting consumers also look at intervals. A lost connection is made again.
"""

import logging

import anyio
import anyio.to_thread
import psycopg
from anyio.abc import TaskStatus

from forq_trio.model.errors import ForqError
from forq_trio.pgq.connections import Connection, connect, error_of
from forq_trio.pgq.statements import SQL

logger = logging.getLogger("forq_trio.pgq")

PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 5.0


class Wakes:
    """The events of the tables for which somebody waits."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._events: dict[str, anyio.Event] = {}

    def event(self, table: str) -> anyio.Event:
        """The event of the next wake-up. To be asked for before one looks for messages."""
        return self._events.setdefault(table, anyio.Event())

    def wake(self, table: str) -> None:
        """Wake those who wait for messages of a table."""
        event = self._events.pop(table, None)
        if event is not None:
            event.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Listen until cancelled, but not through a pool. It has started at once: nobody waits for a database that does
        not answer."""
        task_status.started()
        pause = PAUSE_SECONDS_MIN
        while True:
            try:
                connection = await anyio.to_thread.run_sync(self._listen)
                pause = PAUSE_SECONDS_MIN
                try:
                    if connection.pooled:  # nobody can listen through a pool
                        return
                    await self._pass_on(connection)
                finally:
                    connection.close()
            except (ForqError, psycopg.Error) as problem:
                logger.warning("cannot listen for new messages, again in %g s: %s", pause, problem)
            await anyio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _listen(self) -> Connection:
        connection = connect(self._url)
        try:
            if not connection.pooled:
                connection.execute(SQL["listen"])
        except psycopg.Error as problem:
            connection.close()
            raise error_of(problem, connection) from problem
        return connection

    async def _pass_on(self, connection: Connection) -> None:
        """Raises psycopg.OperationalError when the connection is lost."""
        for table in list(self._events):  # what was told while nobody listened
            self.wake(table)
        while True:
            await anyio.wait_readable(connection.fileno())
            connection.pgconn.consume_input()
            while (told := connection.pgconn.notifies()) is not None:
                self.wake(told.extra.decode())
