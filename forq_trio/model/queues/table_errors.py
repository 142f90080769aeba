"""The errors about tables to which queues are bound; `errors` has them, too."""

from forq_trio.model.forq_error import CallerError, ForqError, NotFound


class WrongTable(ForqError, code="conflict.wrong_table", status=409):
    """The table does not have pgq's layout"""

    message_for_callers = True

    def __init__(
        self,
        message: str | None = None,
        columns: tuple[str, ...] = (),
        indexes: tuple[str, ...] = (),
        *,
        field: str | None = None,
        code: str | None = None,
    ) -> None:
        """columns: those that are missing. indexes: the columns for which an index is missing."""
        super().__init__(message, field=field, code=code)
        self.columns = columns
        self.indexes = indexes


class NoTable(WrongTable, code="not_found.table", status=404):
    """There is no such table in the database"""


class InvalidTableName(CallerError, code="bad_request.table.invalid"):
    """The name of a table is 1 to 63 bytes of UTF-8 without NUL; of one that is to be made, 1 to 41"""


class InvalidPayload(CallerError, code="bad_request.payload.invalid"):
    """A payload is a JSON object, and metadata are texts"""


class DatabaseRefused(CallerError, code="bad_request.database_refused"):
    """The database refused the statement"""


class QueueNotBound(NotFound, code="not_found.bound_table"):
    """The queue is not bound to a table"""


class QueueBound(CallerError, code="conflict.queue_bound", status=409):
    """The queue is bound to a table, and can do no more than what the table can"""
