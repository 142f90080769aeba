"""Gives free pages at the end of the file back, and moves pages from there into free ones: SQLite's incremental vacuum.

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
    """SQLite gives a row for each page. A long list of free pages makes pages slow to find, so time is a bound, too."""
    ((before,),) = tx.query("count_free_pages")
    ends_at = perf_counter() + STEP_SECONDS
    with closing(tx.connection.rows("give_pages_back")) as pages:
        for _ in islice(pages, min(command.pages, STEP_PAGES)):
            if perf_counter() > ends_at:
                break
    ((left,),) = tx.query("count_free_pages")
    return Compacted(before - left, left)
