"""The ways in which statements and the database fail, by SQLSTATE code."""

from psycopg import pq

from forq_trio.model.errors import StorageFull, StorageUnavailable

_DISK_FULL = "53100"
LOCK_TIMEOUT = "55P03"
_OF_A_STATEMENT = ("22", "23")
"""The classes of errors that are caused by a value, not by the database: the command fails alone."""


class StatementFailed(Exception):
    """A statement was refused for its values"""


class DatabaseFailed(Exception):
    """The database, or the connection, failed; sqlstate is "" where the connection is lost"""

    def __init__(self, message: str, sqlstate: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


def unavailable(error: DatabaseFailed) -> StorageUnavailable:
    """The error for callers after a failure that changed nothing."""
    return (StorageFull if error.sqlstate == _DISK_FULL else StorageUnavailable)(str(error))


class Outdated(StorageUnavailable):
    """A newer version of forq-trio uses the database, and this one must not write to it any more"""

    message_for_callers = True


def one_line(message: str) -> str:
    """A message of the database on one line."""
    return " ".join(message.split())


def error_of(result: pq.abc.PGresult) -> Exception:
    """The error of a statement that failed, from its result."""
    sqlstate = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    message = one_line(primary.decode(errors="replace"))
    if sqlstate[:2] in _OF_A_STATEMENT:
        return StatementFailed(message)
    return DatabaseFailed(message, sqlstate)
