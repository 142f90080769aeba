"""A bound on something that all clients of a server use together, and the share of it that each may use.

Rules
- The holder of the server's own secret may use everything that is free.
- A token may use at most BUDGET_SHARE times as much as is free: a single token two thirds, two tokens two fifths each.
  So the next token always finds something free (dynamic thresholds, Choudhury and Hahne 1998).
- All requests without a key together have a quarter; within it the same rule holds for each address. The other three
  quarters are reserved for requests with a right key.
- A connection that can carry many requests has a share as well, which the subclasses and callers check.

Every amount that is added is subtracted at the end.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from forq_trio.model import limits
from forq_trio.model.errors import Overloaded
from forq_trio.model.holders import HOLDER, Holder, HolderKind


class Share(StrEnum):
    """What was used up when something was refused: the whole budget, or the share of a token, address or connection."""

    ALL = "all"
    TOKEN = "token"
    ADDRESS = "address"
    CONNECTION = "connection"


class Budget:
    """How much of `size` is in use, by holder. For one thread; does not wait. refused: how often, by share."""

    __slots__ = ("_by_holder", "_keyless", "_keyless_size", "refused", "size", "used")

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        self.refused: Counter[str] = Counter()
        self._by_holder: dict[Holder, int] = {}
        self._keyless = 0
        self._keyless_size = size // limits.BUDGET_KEYLESS_PART

    def change(self, holder: Holder, by: int) -> bool:
        """Add an amount (below 0: subtract it). False if more is in use afterwards than allowed."""
        held = self._add(holder, by)
        if by <= 0:
            return True
        if self.used > self.size:
            return self.refuse(Share.ALL)
        kind = holder.kind
        if kind is HolderKind.OWNER:
            return True
        if kind is HolderKind.ADDRESS:
            fits = held <= limits.BUDGET_SHARE * (self._keyless_size - self._keyless)
            return fits or self.refuse(Share.ADDRESS)
        return held <= limits.BUDGET_SHARE * (self.size - self.used) or self.refuse(Share.TOKEN)

    def take(self, holder: Holder) -> bool:
        """Add one, unless more would be in use than allowed; then nothing is added and this returns False."""
        if self.change(holder, 1):
            return True
        self._add(holder, -1)
        return False

    @contextmanager
    def one_used(self) -> Iterator[None]:
        """Use one more for the current task while the body runs. Raises Overloaded."""
        holder = HOLDER.get()
        if not self.take(holder):
            raise Overloaded
        try:
            yield
        finally:
            self.change(holder, -1)

    def _add(self, holder: Holder, by: int) -> int:
        """Add an amount without a check, and return how much the holder uses; 0 for the owner, who has no share."""
        self.used += by
        if holder.kind is HolderKind.OWNER:
            return 0
        held = self._by_holder.get(holder, 0) + by
        if held:
            self._by_holder[holder] = held
        else:
            self._by_holder.pop(holder, None)
        if holder.kind is HolderKind.ADDRESS:
            self._keyless += by
        return held

    def refuse(self, share: Share) -> bool:
        """Count a refusal; returns False."""
        self.refused[share] += 1
        return False
