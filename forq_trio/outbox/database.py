"""The relay's side of an outbox: its own connection to the application's database, used in a thread.

The server's position and these tables change in two places, in an order that a kill cannot break. First the server
stores messages and position in one commit. Then they are removed here. A relay that starts again asks for the position,
removes what is up to it, and goes on behind it.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import anyio
import anyio.to_thread
import msgspec

from forq_trio.model import limits
from forq_trio.model.messages import NewMessage
from forq_trio.model.outboxes import OutboxRefusal, RelayedMessage
from forq_trio.outbox.errors import NoOutbox
from forq_trio.outbox.table import SQL

ResultT = TypeVar("ResultT")

_BUSY_SECONDS = 1.0
_PREFIX = "sqlite:///"
_decode = msgspec.json.Decoder(NewMessage).decode


class Page(NamedTuple):
    """The next messages. last_id: the highest id that was ever given."""

    messages: list[RelayedMessage]
    last_id: int


def path_of(database: str | os.PathLike[str]) -> str:
    """The path of a database that is named by its path or as sqlite:///path."""
    return os.path.realpath(os.fspath(database).removeprefix(_PREFIX))


class OutboxDatabase:
    """Close it in the end. Every method raises sqlite3.Error, which is an OperationalError while it is locked."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._one_at_a_time = anyio.CapacityLimiter(1)

    async def identity(self) -> str:
        """The id of the outbox. Raises NoOutbox."""
        return await self._run(_identity)

    async def page(self, position: int, *, locked: bool) -> Page:
        """The next messages behind a position, at most OUTBOX_PAGE_MAX and OUTBOX_PAGE_BYTES_MAX, but at least one.

        locked: wait first until no other connection writes. A transaction whose writes were noticed has then ended.
        """
        return await self._run(lambda connection: _page(connection, position, locked=locked))

    async def remove(self, position: int) -> None:
        """Remove the messages up to a position, which the server has."""
        await self._run(lambda connection: connection.execute(SQL["remove_relayed"], (position,)))

    async def set_aside(self, refusal: OutboxRefusal) -> None:
        """Set a message aside with its reason, in one transaction."""
        await self._run(lambda connection: _set_aside(connection, refusal))

    async def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await anyio.to_thread.run_sync(connection.close, limiter=self._one_at_a_time)

    async def _run(self, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        """Run `work` in a thread; a cancellation waits for its end."""

        def connected() -> ResultT:
            if self._connection is None:
                self._connection = _connect(self._path)
            return work(self._connection)

        return await anyio.to_thread.run_sync(connected, limiter=self._one_at_a_time)


def _connect(path: str) -> sqlite3.Connection:
    if not os.path.exists(path):
        raise NoOutbox(f"there is no database {path}")
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _identity(connection: sqlite3.Connection) -> str:
    try:
        found = connection.execute(SQL["find_identity"]).fetchone()
    except sqlite3.OperationalError as problem:
        if "no such table" in str(problem):
            raise NoOutbox from None
        raise
    if found is None:
        raise NoOutbox
    return str(found[0])


def _page(connection: sqlite3.Connection, position: int, *, locked: bool) -> Page:
    connection.execute("BEGIN IMMEDIATE" if locked else "BEGIN")
    try:
        messages: list[RelayedMessage] = []
        size = 0
        now_ms = time.time_ns() // 1_000_000
        for id, queue, text in connection.execute(SQL["next_page"], (position, limits.OUTBOX_PAGE_MAX)):
            size += len(text) if text.isascii() else len(text.encode())
            if messages and size > limits.OUTBOX_PAGE_BYTES_MAX:
                break
            messages.append(RelayedMessage(id, queue, _due(_decode(text), now_ms)))
        last = connection.execute(SQL["last_id"]).fetchone()
        return Page(messages, 0 if last is None else last[0])
    finally:
        connection.execute("ROLLBACK")


def _due(message: NewMessage, now_ms: int) -> NewMessage:
    """The message as it is sent now: one whose time has come is due at once."""
    if message.process_after is None or message.process_after > now_ms:
        return message
    return msgspec.structs.replace(message, process_after=None)


def _set_aside(connection: sqlite3.Connection, refusal: OutboxRefusal) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(SQL["set_aside"], (refusal.id, refusal.code, refusal.message))
        connection.execute(SQL["remove_one"], (refusal.id,))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
