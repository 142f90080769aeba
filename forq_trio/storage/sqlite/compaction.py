"""Shrinks the file with SQLite's incremental vacuum: moves pages from its end into free ones, and drops the end.

The file becomes shorter with the checkpoint that moves the commit into it.
"""

from contextlib import closing
from itertools import islice
from time import perf_counter

from forq_trio.model.commands import Compact, Compacted
from forq_trio.storage.relational import operations
from forq_trio.storage.relational.operations import Operations, operation_on_each
from forq_trio.storage.relational.transaction import Transaction

OPERATIONS: Operations = {**operations.OPERATIONS}
"""The shared ones, and SQLite's own."""

STEP_PAGES = 64
STEP_SECONDS = 0.002


@operation_on_each(Compact, OPERATIONS)
def compact(tx: Transaction, command: Compact) -> Compacted:
    """Give free pages back until a bound is reached; SQLite returns a row for each.

    Time is a bound, too, because pages are slow to find in a long list of free ones.
    """
    ((before,),) = tx.query("count_free_pages")
    ends_at = perf_counter() + STEP_SECONDS
    with closing(tx.connection.rows("give_pages_back")) as pages:
        for _ in islice(pages, min(command.pages, STEP_PAGES)):
            if perf_counter() > ends_at:
                break
    ((left,),) = tx.query("count_free_pages")
    return Compacted(before - left, left)
