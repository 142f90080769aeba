"""Finds messages by what names them, wherever their rows are: what is only in the page of a lease comes back first."""

from collections.abc import Iterable
from json import dumps

from forq_trio.storage.relational.operations.moved_pages import id_of_moved, move_first_back, move_ids_back
from forq_trio.storage.relational.row import Row, rows_of
from forq_trio.storage.relational.transaction import Transaction


def find_by_id(tx: Transaction, wanted: Iterable[tuple[str, str]]) -> tuple[list[Row], frozenset[str]]:
    """The messages of these queues and ids; and the ids of which the next batch will find more.

    Raises StorageFull while there is no space for those that have to come back.
    """
    wanted = list(wanted)
    ids = dumps([message_id for _, message_id in wanted])
    found = rows_of(tx.query("find_by_id", ids))
    more, later = move_ids_back(tx, wanted, found)
    return (rows_of(tx.query("find_by_id", ids)) if more else found), later


def find_oldest(tx: Transaction, queue: str, up_to: int, most: int) -> tuple[list[Row], int]:
    """The oldest messages of a queue up to a sequence, at most so many; and up to where these are all of them."""
    all_to = move_first_back(tx, queue, up_to)
    return rows_of(tx.query("select_purged", queue, all_to, most)), all_to


def id_in_queue(tx: Transaction, queue: str, sequence: int) -> str | None:
    """The id of the message with a sequence; None if it is not in this queue any more."""
    found = tx.query("id_in_queue", sequence, queue)
    return found[0][0] if found else id_of_moved(tx, queue, sequence)
