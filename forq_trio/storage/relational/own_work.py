"""The work that batches do without a command, besides due messages. Its operations declare each kind of it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from forq_trio.storage.relational.transaction import Transaction


class Follow(Protocol):
    """Does what follows from the changes of messages so far: after the commands, and again after the claims."""

    def __call__(self, tx: Transaction, *, sends: bool) -> None:
        """sends: whether it may store messages now; if not, the next batch does."""


class OwnWork(NamedTuple):
    """A kind of work without a command. It stores messages, so it pauses while sends are refused or calls go first."""

    due_at: Callable[[Transaction], int | None]  # when there is work (epoch ms); None for never
    work: Callable[[Transaction], None]  # does as much as the allowances permit
    # what the batch did, for metrics
    done: Callable[[Transaction], Sequence[Struct]] = lambda tx: ()
    follow: Follow | None = None  # what follows from the changes so far; None for nothing


def follow_up(tx: Transaction, *, sends: bool) -> None:
    """Do what follows from the changes so far, for all kinds of work."""
    for each in OWN_WORK:
        if each.follow is not None:
            each.follow(tx, sends=sends)


OWN_WORK: list[OwnWork] = []
"""All kinds, in the order in which a batch does them, which is that of their files."""
