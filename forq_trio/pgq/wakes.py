"""Wakes the calls that wait for messages of a table: when this process publishes, or the table's trigger notifies.

The trigger notifies only while somebody waits (model/wake_ups.py). Nothing depends on it, because waiting consumers
also check at intervals. A lost connection is made again.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
import psycopg
from anyio.abc import TaskStatus

from forq_trio.model.errors import ForqError
from forq_trio.model.wake_ups import WakeUps
from forq_trio.pgq.connections import PgqConnection, connect, error_of
from forq_trio.pgq.statements import SQL

logger = logging.getLogger("forq_trio.pgq")

PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 5.0


class Wakes:
    """The events of the tables for which somebody waits."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._events: WeakValueDictionary[str, anyio.Event] = WeakValueDictionary()
        """The events of the calls that check or wait: without such a call a table has no entry."""
        self._waiting: Counter[str] = Counter()
        self._wake_ups: dict[str, WakeUps] = {}
        self._payloads: list[str] = []
        self._rest: anyio.CancelScope | None = None

    def event(self, table: str) -> anyio.Event:
        """The event of the next wake-up. Take it before you check for messages, so that no wake-up is lost."""
        return self._events.setdefault(table, anyio.Event())

    def wake(self, table: str) -> None:
        """Wake those who wait for messages of a table."""
        event = self._events.pop(table, None)
        if event is not None:
            event.set()

    @contextmanager
    def waiting(self, table: str) -> Iterator[None]:
        """Note that a call waits for messages of a table while the body runs."""
        wake_ups = self._wake_ups.setdefault(table, WakeUps())
        self._waiting[table] += 1
        if not wake_ups.holds_lock and self._rest is not None:
            self._rest.cancel()
        try:
            yield
        finally:
            self._waiting[table] -= 1
            if not self._waiting[table]:
                del self._waiting[table]
                if self._rest is None:  # nobody listens yet, or ever: through a pool
                    del self._wake_ups[table]

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Listen until cancelled, but not through a pool.

        It reports its start at once, so that nobody waits for a database that does not answer.
        """
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

    def _listen(self) -> PgqConnection:
        connection = connect(self._url)
        try:
            if not connection.pooled:
                connection.execute(SQL["listen"])
        except psycopg.Error as problem:
            connection.close()
            raise error_of(problem, connection) from problem
        return connection

    async def _pass_on(self, connection: PgqConnection) -> None:
        """Pass notifications on, for ever. Raises psycopg.Error when the connection is lost."""
        connection.add_notify_handler(lambda notice: self._payloads.append(notice.payload))
        self._rest = anyio.CancelScope()  # from now on the trigger is told when nobody waits any more
        for wake_ups in self._wake_ups.values():
            wake_ups.set_lock(anyio.current_time(), held=False)
        for table in list(self._events):  # what was told while nobody listened
            self.wake(table)
        while True:
            changes = self._changes(anyio.current_time())
            if changes:
                await self._change(connection, changes)
            self._rest = anyio.CancelScope(deadline=self._wake_due(anyio.current_time()))
            if not self._payloads:
                with self._rest:
                    await anyio.wait_readable(connection.fileno())
            connection.pgconn.consume_input()
            while (notice := connection.pgconn.notifies()) is not None:
                self._payloads.append(notice.extra.decode())
            tables, self._payloads = self._payloads, []
            for table in tables:
                if table in self._wake_ups:
                    self._wake_ups[table].notice(anyio.current_time())
                self.wake(table)

    def _changes(self, now: float) -> dict[str, bool]:
        """The tables whose trigger is to notify from now on (True), or no longer (False)."""
        for table in self._waiting:
            self._wake_ups[table].await_until(now)
        for table, wake_ups in list(self._wake_ups.items()):
            if not wake_ups.holds_lock and not wake_ups.awaited(now):
                del self._wake_ups[table]
        return {
            table: wake_ups.wanted(now)
            for table, wake_ups in self._wake_ups.items()
            if wake_ups.wanted(now) != wake_ups.holds_lock
            and (wake_ups.holds_lock or wake_ups.next_look_at(now) <= now)
        }

    async def _change(self, connection: PgqConnection, changes: dict[str, bool]) -> None:
        def change() -> list[bool]:
            names = {True: "await_messages", False: "stop_awaiting_messages"}
            rows = [
                connection.execute(SQL[names[is_held]], {"table": table}).fetchone()
                for table, is_held in changes.items()
            ]
            return [row == (True,) for row in rows]

        done = await anyio.to_thread.run_sync(change)
        for (table, is_held), is_done in zip(changes.items(), done, strict=True):
            if is_done:
                self._wake_ups[table].set_lock(anyio.current_time(), held=is_held)

    def _wake_due(self, now: float) -> float:
        """Wake the calls whose check is due; returns when the next check or change of a trigger is due."""
        for table, wake_ups in self._wake_ups.items():
            if wake_ups.next_look_at(now) <= now:
                wake_ups.note_look(now, len(self._wake_ups))
                self.wake(table)
        times = (min(each.next_look_at(now), each.changes_at(now)) for each in self._wake_ups.values())
        return min(times, default=inf)
