"""The shop's own database: what was done, each once."""

import os
import sqlite3
from contextlib import closing


def database() -> sqlite3.Connection:
    """A connection. `effect` is unique: a step of an order is done once, however often it is asked for."""
    connection = sqlite3.connect(os.environ.get("ORDERS_DB", "orders.db"), timeout=10)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS done "
        "(effect TEXT PRIMARY KEY, step TEXT NOT NULL, number TEXT NOT NULL, amount INTEGER NOT NULL)"
    )
    return connection


def once(effect: str, step: str, number: str, amount: int) -> None:
    """Write that something is done, unless that is written already."""
    with closing(database()) as connection, connection:
        connection.execute("INSERT OR IGNORE INTO done VALUES (?, ?, ?, ?)", (effect, step, number, amount))
