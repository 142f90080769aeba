"""The rows that pages show: a live view has to change exactly those, and all pages with the same rows share one view.

A page keeps the names of its rows here and puts their digest into the address of its live view. Names that were
forgotten (after a restart, or when very many pages were opened since) are those of the list as it is then.
"""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256

from forq_trio.model import limits


class RowLists:
    """The latest ROW_LISTS_MAX lists of names, by digest."""

    def __init__(self) -> None:
        self._lists: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def keep(self, names: Sequence[str]) -> str:
        """Keep these names; returns their digest."""
        digest = sha256("\0".join(names).encode()).hexdigest()[:16]
        self._lists[digest] = tuple(names)
        self._lists.move_to_end(digest)
        if len(self._lists) > limits.ROW_LISTS_MAX:
            self._lists.popitem(last=False)
        return digest

    def find(self, digest: str) -> list[str] | None:
        """The names of this digest; None if they are not known any more."""
        names = self._lists.get(digest)
        if names is None:
            return None
        self._lists.move_to_end(digest)
        return list(names)
