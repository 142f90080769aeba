"""Errors of a table or a database. Except for TableBusy none of them goes away by itself, so they end a consumer."""

from forq_trio.model.errors import CallerError, StorageUnavailable
from forq_trio.model.errors import DatabaseRefused as DatabaseRefused
from forq_trio.model.errors import InvalidPayload as InvalidPayload
from forq_trio.model.errors import InvalidTableName as InvalidTableName
from forq_trio.model.errors import NoTable as NoTable
from forq_trio.model.errors import WrongTable as WrongTable


class InvalidDatabaseUrl(CallerError):
    """The URL of the database is not of the form postgresql://user@host:port/database"""

    code = "pgq.database_url"


class TableBusy(StorageUnavailable):
    """The table is locked, or the statement took too long; nothing was changed"""

    message_for_callers = True
