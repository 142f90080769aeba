"""Remembers which rows pages show: a live view has to update exactly those, and pages with the same rows share a view.

A page stores the names of its rows here and puts their digest into the URL of its live view. If the names were dropped
(after a restart, or because very many pages were opened since), the view has the rows of the current list.
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
        """Store these names; returns their digest."""
        digest = sha256("\0".join(names).encode()).hexdigest()[:16]
        self._lists[digest] = tuple(names)
        self._lists.move_to_end(digest)
        if len(self._lists) > limits.ROW_LISTS_MAX:
            self._lists.popitem(last=False)
        return digest

    def find(self, digest: str) -> list[str] | None:
        """The names of this digest; None if they were dropped."""
        names = self._lists.get(digest)
        if names is None:
            return None
        self._lists.move_to_end(digest)
        return list(names)
