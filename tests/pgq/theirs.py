"""pgq's side of a table: the statements that its publishers and consumers run, as they run them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from pgq.rows import Rows

CLAIM = """
    UPDATE {table} SET locked_until = %(until)s, started_at = CURRENT_TIMESTAMP, consumed_count = consumed_count + 1
    WHERE id IN (
        SELECT id FROM {table}
        WHERE (locked_until IS NULL OR locked_until < CURRENT_TIMESTAMP) AND consumed_count < %(most)s {where}
            AND processed_at IS NULL AND (scheduled_for IS NULL OR scheduled_for < CURRENT_TIMESTAMP)
        ORDER BY scheduled_for ASC NULLS LAST, consumed_count ASC, created_at ASC
        LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    )
    RETURNING id, payload, metadata, consumed_count, locked_until
"""


class Theirs(Rows):
    """Their locks end by the clock of the consumer, and they are not fenced."""

    def publish(self, payload: object, metadata: object, scheduled_for: datetime | None = None) -> UUID:
        text = "INSERT INTO {} (scheduled_for, payload, metadata) VALUES (%s, %s, %s) RETURNING id"
        (row,) = self.run(text, scheduled_for, Jsonb(payload), Jsonb(metadata))
        return row["id"]

    def claim(
        self, limit: int = 1, *, seconds: float = 3_600, most: int = 3, where: str = ""
    ) -> list[dict[str, Any]]:
        cursor = self.connection.cursor(row_factory=dict_row)
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        text = sql.SQL(CLAIM).format(table=self._escaped, where=sql.SQL(where))
        return cursor.execute(text, {"until": until, "limit": limit, "most": most}).fetchall()

    def ack(self, id: UUID) -> None:
        self.run("UPDATE {} SET locked_until = NULL, processed_at = CURRENT_TIMESTAMP WHERE id = %s", id)

    def nack(self, id: UUID, reason: str) -> None:
        self.run("UPDATE {} SET locked_until = NULL, error_detail = %s WHERE id = %s", reason, id)

    def discard(self, id: UUID, reason: str) -> None:
        self.run(
            "UPDATE {} SET locked_until = NULL, processed_at = CURRENT_TIMESTAMP, error_detail = %s WHERE id = %s",
            reason,
            id,
        )

    def deadline(self, id: UUID, seconds: float) -> None:
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        self.run("UPDATE {} SET locked_until = %s WHERE id = %s", until, id)
