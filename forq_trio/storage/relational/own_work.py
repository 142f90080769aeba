"""What batches do without a command, beside due messages: each kind is declared in the file of its operations."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from forq_trio.storage.relational.transaction import Transaction


class OwnWork(NamedTuple):
    """One kind of it. It stores messages, so it rests while sends are refused or calls go first."""

    due_at: Callable[[Transaction], int | None]  # when there is something to do; None for never
    work: Callable[[Transaction], None]  # does it, as far as the allowances go
    # what the batch did of it, for those who count it
    done: Callable[[Transaction], Sequence[Struct]] = lambda tx: ()


OWN_WORK: list[OwnWork] = []
"""All kinds, in the order in which a batch does them: that of their files."""
