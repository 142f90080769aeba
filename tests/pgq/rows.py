"""The rows of a table, read and changed as anybody may: without our code."""

from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb


class Rows:
    def __init__(self, connection: psycopg.Connection, table: str) -> None:
        self.connection = connection
        self.table = sql.Identifier(table)
        self._escaped = sql.SQL(self.table.as_string(connection).replace("%", "%%"))
        """In a statement with parameters, where psycopg reads %% as %."""

    def run(self, text: str, *parameters: object) -> list[dict[str, Any]]:
        """Run a statement in which {} is the table."""
        cursor = self.connection.cursor(row_factory=dict_row)
        cursor.execute(sql.SQL(text).format(self._escaped), parameters)
        return cursor.fetchall() if cursor.description else []

    def all(self) -> list[dict[str, Any]]:
        return self.run("SELECT * FROM {} ORDER BY created_at")

    def one(self) -> dict[str, Any]:
        (row,) = self.all()
        return row

    def add(self, payload: object = None, metadata: object = None, **columns: str) -> UUID:
        """Insert a row as another publisher may. Values of columns are SQL: scheduled_for="now() + '1 h'"."""
        names = "".join(f", {name}" for name in columns)
        values = "".join(f", {value}" for value in columns.values())
        payload = {} if payload is None else payload
        (row,) = self.run(
            f"INSERT INTO {{}} (payload, metadata{names}) VALUES (%s, %s{values}) RETURNING id",
            Jsonb(payload),
            Jsonb({} if metadata is None else metadata),
        )
        return row["id"]
