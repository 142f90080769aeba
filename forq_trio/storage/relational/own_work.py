"""The work that batches do without a command, besides due messages. Its operations declare each kind of it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from forq_trio.storage.relational.transaction import Transaction


class OwnWork(NamedTuple):
    """A kind of work without a command. It stores messages, so it pauses while sends are refused or calls go first."""

    due_at: Callable[[Transaction], int | None]  # when there is work (epoch ms); None for never
    work: Callable[[Transaction], None]  # does as much as the allowances permit
    # what the batch did, for metrics
    done: Callable[[Transaction], Sequence[Struct]] = lambda tx: ()


OWN_WORK: list[OwnWork] = []
"""All kinds, in the order in which a batch does them, which is that of their files."""
