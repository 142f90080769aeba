"""The relay's side of an outbox: its own connection to the application's database, used in a thread.

The server's position and these tables change in an order that makes a kill at any point harmless. First the server
stores messages and position in one commit. Then the messages are removed here. A relay that starts again asks for the
position, removes the messages up to it, and goes on behind it.

Each transaction first checks that this is still the same outbox and not an older copy of it: at any time the file may
be replaced, or a copy restored into it.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from forq_trio.model import limits
from forq_trio.model.clock import machine_ms
from forq_trio.model.errors import CallerError, ContentTooLarge, InvalidRequest
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.outboxes.types import OutboxRefusal, RelayedMessage
from forq_trio.outbox.errors import NoOutbox, OutboxOlder, OutboxReplaced
from forq_trio.outbox.table import SQL

ResultT = TypeVar("ResultT")

_BUSY_SECONDS = 1.0
_PREFIX = "sqlite:///"
_decode = msgspec.json.Decoder(NewMessage).decode


def path_of(database: str | os.PathLike[str]) -> str:
    """The path of a database that is named by its path or as sqlite:///path. Raises NoOutbox for PostgreSQL."""
    path = os.fspath(database)
    if path.startswith(("postgresql:", "postgres:")):
        raise NoOutbox("PostgreSQL needs no relay: a server moves what is committed there into its queues")
    return os.path.realpath(path.removeprefix(_PREFIX))


class OutboxDatabase:
    """An outbox, to be closed in the end. identity: its id, as of `begin`. last_id: the highest id that was ever given
    to a message, as of the latest transaction.

    Every method raises sqlite3.Error, which is an OperationalError while the database is locked, and NoOutbox. All but
    `begin` also raise OutboxReplaced, and OutboxOlder if the given position is higher than any id that the outbox has
    ever used.
    """

    def __init__(self, path: str) -> None:
        self.identity = ""
        self.last_id = 0
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._one_at_a_time = anyio.CapacityLimiter(1)

    async def begin(self) -> None:
        """Read the id of the outbox."""

        def begin(connection: sqlite3.Connection) -> None:
            self.identity = _identity(connection)

        await self._run(begin)

    async def page(self, position: int, most: int, *, locked: bool) -> list[RelayedMessage] | OutboxRefusal:
        """The next messages behind a position, at most `most` and OUTBOX_PAGE_BYTES_MAX, but at least one.

        An invalid row ends the page; if it is the first one, returns its refusal. locked: first wait until no other
        connection writes, so that a transaction whose writes were noticed has ended.
        """
        begin = "BEGIN IMMEDIATE" if locked else "BEGIN"
        return await self._transaction(begin, position, lambda connection: _page(connection, position, most))

    async def remove(self, position: int) -> None:
        """Remove the messages up to a position, which the server has stored."""
        await self._transaction(
            "BEGIN IMMEDIATE",
            position,
            lambda connection: connection.execute(SQL["remove_relayed"], (position,)),
        )

    async def set_aside(self, refusal: OutboxRefusal) -> None:
        """Set a message aside with its reason."""

        def set_aside(connection: sqlite3.Connection) -> None:
            for row in connection.execute(SQL["find_one"], (refusal.id,)).fetchall():
                values = (refusal.id, *map(_text, row), refusal.code, refusal.message)
                connection.execute(SQL["set_aside"], values)
            connection.execute(SQL["remove_one"], (refusal.id,))

        await self._transaction("BEGIN IMMEDIATE", refusal.id, set_aside)

    async def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await anyio.to_thread.run_sync(connection.close, limiter=self._one_at_a_time)

    async def _transaction(
        self, begin: str, position: int, work: Callable[[sqlite3.Connection], ResultT]
    ) -> ResultT:
        def transaction(connection: sqlite3.Connection) -> ResultT:
            connection.execute(begin)
            try:
                if _identity(connection) != self.identity:
                    raise OutboxReplaced
                last = connection.execute(SQL["last_id"]).fetchone()
                self.last_id = 0 if last is None else last[0]
                if position > self.last_id:
                    raise OutboxOlder
                result = work(connection)
                connection.execute("COMMIT")
                return result
            except BaseException:
                with suppress(sqlite3.Error):  # a failed commit may have rolled back
                    connection.execute("ROLLBACK")
                raise

        return await self._run(transaction)

    async def _run(self, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        """Run `work` in a thread; a cancellation waits for its end."""

        def connected() -> ResultT:
            file = _file(self._path)
            if self._connection is not None and file != self._file:
                self._connection.close()
                self._connection = None
                raise OutboxReplaced
            if self._connection is None:
                self._connection, self._file = _connect(self._path), file
            return work(self._connection)

        return await anyio.to_thread.run_sync(connected, limiter=self._one_at_a_time)


def _file(path: str) -> tuple[int, int] | None:
    """The identity of the file that has the path now; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _connect(path: str) -> sqlite3.Connection:
    if not os.path.exists(path):
        raise NoOutbox(f"there is no database {path}")
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.text_factory = bytes  # a text may be any bytes: a row that is not UTF-8 fails alone
    return connection


def _identity(connection: sqlite3.Connection) -> str:
    try:
        found = connection.execute(SQL["find_identity"]).fetchone()
    except sqlite3.OperationalError as problem:
        if "no such table" in str(problem):
            raise NoOutbox from None
        raise
    if found is None:
        raise NoOutbox
    return _text(found[0])


def _page(connection: sqlite3.Connection, position: int, most: int) -> list[RelayedMessage] | OutboxRefusal:
    messages: list[RelayedMessage] = []
    size = 0
    now_ms = machine_ms()
    for id, queue, text in connection.execute(SQL["next_page"], (position, most)):
        size += len(text)
        if messages and size > limits.OUTBOX_PAGE_BYTES_MAX:
            break
        try:
            if len(text) > limits.SEND_BODY_BYTES_MAX:  # no server would read the request
                raise ContentTooLarge(f"the message has {len(text):,} bytes")
            messages.append(RelayedMessage(id, _text(queue), _due(_read(text), now_ms)))
        except CallerError as error:
            return messages or OutboxRefusal.of(id, error)
    return messages


def _read(text: bytes) -> NewMessage:
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidRequest(f"the row has no message: {problem}") from None


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def _due(message: NewMessage, now_ms: int) -> NewMessage:
    """The message as it is sent now: if its due time has passed, it is due at once."""
    if message.process_after is None or message.process_after > now_ms:
        return message
    return msgspec.structs.replace(message, process_after=None)
