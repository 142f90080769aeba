"""Databases as they were at the end of development, when steps and not a baseline had made their tables."""

from contextlib import closing
from pathlib import Path

import apsw
import psycopg

SQLITE_VERSION, POSTGRES_VERSION = 23, 11
"""Of the last step, and of the baseline."""
_HERE = Path(__file__).parent


def make_unreleased_file(path: str, version: int = SQLITE_VERSION) -> None:
    """An empty file of that version; of an earlier one it has the record only, not the tables."""
    with closing(apsw.Connection(path)) as connection:
        connection.execute((_HERE / "sqlite.sql").read_text(encoding="utf-8"))
        connection.execute("DELETE FROM migrations WHERE version > ?", (version,))
        connection.pragma("user_version", version)


def make_unreleased_database(url: str, version: int = POSTGRES_VERSION) -> None:
    """The same in an empty database of PostgreSQL."""
    with psycopg.connect(url) as connection:
        connection.execute((_HERE / "postgres.sql").read_bytes())
        connection.execute("DELETE FROM forq.migrations WHERE version > %s", [version])
