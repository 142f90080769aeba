"""Finds messages by id or sequence number. Those that are only in the page of a lease are moved back first."""

from collections.abc import Iterable, Sequence
from json import dumps

from forq_trio.storage.relational.operations.moved_pages import (
    id_of_moved,
    move_first_back,
    move_ids_back,
    move_sequences_back,
)
from forq_trio.storage.relational.row import Row, rows_of
from forq_trio.storage.relational.transaction import Transaction


def find_by_id(tx: Transaction, wanted: Iterable[tuple[str, str]]) -> tuple[list[Row], frozenset[str]]:
    """The messages with these (queue, id), and the ids of those that the next batch has to look for.

    Raises StorageFull while there is no space to move messages back.
    """
    wanted = list(wanted)
    ids = dumps([message_id for _, message_id in wanted])
    found = rows_of(tx.query("find_by_id", ids))
    more, later = move_ids_back(tx, wanted, found)
    return (rows_of(tx.query("find_by_id", ids)) if more else found), later


def find_by_sequence(
    tx: Transaction, statement: str, names: str | int, perhaps_leased: Sequence[tuple[str, int]]
) -> tuple[list[Row], frozenset[int]]:
    """The messages that this statement finds by these names, and those numbers that the next batch has to look for.

    perhaps_leased: (queue, sequence number) of those that may be in the page of a lease. Raises StorageFull while there
    is no space to move messages back.
    """
    found = rows_of(tx.query_without_inserts(statement, names))
    if not perhaps_leased:
        return found, frozenset()
    more, later = move_sequences_back(tx, perhaps_leased, found)
    return (rows_of(tx.query(statement, names)) if more else found), later


def find_oldest(tx: Transaction, queue: str, up_to: int, most: int) -> tuple[list[Row], int]:
    """At most `most` of the oldest messages of a queue up to a sequence number, and up to where none is missing."""
    all_to = move_first_back(tx, queue, up_to)
    return rows_of(tx.query("select_purged", queue, all_to, most)), all_to


def id_in_queue(tx: Transaction, queue: str, sequence: int) -> str | None:
    """The id of the message with this sequence number; None if it is no longer in this queue."""
    found = tx.query("id_in_queue", sequence, queue)
    return found[0][0] if found else id_of_moved(tx, queue, sequence)
