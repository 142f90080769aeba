"""How statements and the database fail: what SQLSTATE codes mean to us."""

from psycopg import pq

from forq_trio.model.errors import StorageFull, StorageUnavailable

_DISK_FULL = "53100"
LOCK_TIMEOUT = "55P03"
_OF_A_STATEMENT = ("22", "23")
"""Classes of errors that are the fault of a value, not of the database: the command fails alone."""


class StatementFailed(Exception):
    """A statement was refused for its values"""


class DatabaseFailed(Exception):
    """The database, or the connection, failed; sqlstate is "" where the connection is lost"""

    def __init__(self, message: str, sqlstate: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


def unavailable(error: DatabaseFailed) -> StorageUnavailable:
    """The error for callers when nothing was changed."""
    return (StorageFull if error.sqlstate == _DISK_FULL else StorageUnavailable)(str(error))


class Outdated(StorageUnavailable):
    """A newer version of forq-trio uses the database, and this one must not write to it any more"""

    told = True


def one_line(message: str) -> str:
    """A message of the database without its line ends."""
    return " ".join(message.split())


def error_of(result: pq.abc.PGresult) -> Exception:
    """The error of a result that is none of a statement that was carried out."""
    sqlstate = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    message = one_line(primary.decode(errors="replace"))
    if sqlstate[:2] in _OF_A_STATEMENT:
        return StatementFailed(message)
    return DatabaseFailed(message, sqlstate)
