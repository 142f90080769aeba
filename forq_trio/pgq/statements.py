"""The statements on a table of pgq's layout, with the table's name quoted in them."""

from functools import lru_cache

from psycopg import sql
from psycopg.abc import AdaptContext

from forq_trio.model import limits
from forq_trio.pgq.errors import InvalidTableName
from forq_trio.storage.relational.statements import load

SQL = load("pgq", __package__)
CHANNEL = "forq_pgq"
INDEXES = ("created_at", "processed_at_null", "scheduled_for", "metadata", "forq_order")
"""The indexes of each table, by the ends of their names."""


class _Name(sql.Identifier):
    """A quoted name in a statement that has parameters: there psycopg reads %% as %."""

    def as_bytes(self, context: AdaptContext | None = None) -> bytes:
        return super().as_bytes(context).replace(b"%", b"%%")


@lru_cache(maxsize=limits.PGQ_STATEMENTS_CACHED_MAX)
def statement(name: str, table: str) -> sql.Composed:
    """A statement of pgq.sql on a table. It must be run with parameters, {} if it has none: see `_Name`."""
    quoted = {f"{each}_idx": _Name(f"{table}_{each}_idx") for each in INDEXES}
    return sql.SQL(SQL[name]).format(
        table=_Name(table), function=_Name(f"{CHANNEL}_notify"), trigger=_Name(f"{CHANNEL}_notify"), **quoted
    )


def check_table_name(table: str, bytes_max: int = limits.PGQ_NAME_BYTES_MAX) -> str:
    """Return the name; raise InvalidTableName if it is invalid or so long that PostgreSQL would cut it silently."""
    try:
        length = len(table.encode())
    except UnicodeEncodeError:
        length = 0
    if not 1 <= length <= bytes_max or "\0" in table:
        raise InvalidTableName
    return table
