"""A read-only connection and what can be asked through it."""

from typing import Any

import apsw

from forq_trio.errors import ReadDeadlineExceeded, StorageUnavailable
from forq_trio.model import MessageInfo, QueueInfo, Status, is_dead_letter_queue
from forq_trio.storage.sqlite.open import open_reader
from forq_trio.storage.sqlite.sql import load

_SQL = load("reader")
_NEWEST = 2**63 - 1


class SqliteReader:
    """Reader over one SQLite file: each call is one statement, hence one consistent snapshot."""

    def __init__(self, path: str) -> None:
        self._connection = open_reader(path)

    def queues(self) -> list[QueueInfo]:
        return [QueueInfo(row[0], is_dead_letter_queue(row[0]), *row[1:]) for row in self._query("queues")]

    def queue(self, queue: str) -> QueueInfo:
        rows = self._query("queue", queue)
        ready, delayed, processing, failed = rows[0] if rows else (0, 0, 0, 0)
        oldest = self._query("oldest_ready", queue)[0][0] if ready else None
        return QueueInfo(queue, is_dead_letter_queue(queue), ready, delayed, processing, failed, oldest)

    def message(self, queue: str, message_id: str) -> MessageInfo | None:
        rows = self._query("message", queue, message_id)
        return _message(rows[0]) if rows else None

    def peek(self, queue: str, limit: int) -> list[MessageInfo]:
        return [_message(row) for row in self._query("peek", queue, limit)]

    def browse(self, queue: str, before_sequence: int | None, limit: int) -> list[MessageInfo]:
        before = _NEWEST if before_sequence is None else before_sequence
        return [_message(row) for row in self._query("browse", queue, before, limit)]

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()

    def _query(self, name: str, *bindings: Any) -> list[Any]:
        try:
            return self._connection.execute(_SQL[name], bindings).fetchall()
        except apsw.InterruptError:
            raise ReadDeadlineExceeded from None
        except apsw.Error as error:
            raise StorageUnavailable(str(error)) from error


def _message(row: tuple[Any, ...]) -> MessageInfo:
    message_id, queue, seq, status, *rest = row
    return MessageInfo(message_id, queue, seq, Status(status), *rest)
