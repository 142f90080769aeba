"""What is wrong with a table or a database; none of it mends itself, so a consumer ends with it."""

from forq_trio.model.errors import CallerError, ForqError


class WrongTable(ForqError):
    """The table does not have pgq's layout

    columns, indexes: the columns that are missing, and those of which an index is missing.
    """

    code = "pgq.wrong_table"

    def __init__(self, message: str, columns: tuple[str, ...] = (), indexes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.columns = columns
        self.indexes = indexes


class NoTable(WrongTable):
    """There is no such table in the database"""

    code = "pgq.no_table"


class InvalidTableName(CallerError):
    """The name of a table is 1 to 63 bytes of UTF-8 without NUL; of one that is to be made, 1 to 41"""

    code = "pgq.table_name"


class InvalidDatabaseUrl(CallerError):
    """The URL of the database is not of the form postgresql://user@host:port/database"""

    code = "pgq.database_url"


class InvalidPayload(CallerError):
    """A payload is a JSON object, and metadata are texts"""

    code = "pgq.payload"


class DatabaseRefused(CallerError):
    """The database refused the statement"""

    code = "pgq.refused"
