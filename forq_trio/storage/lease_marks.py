"""Marks in receipts of an embedded broker: its leases end when its process ends.

The consumers of an embedded broker are inside its process. When that is gone, nobody can settle what they had received.
So the next process that opens the file ends these leases at once. It knows them by a mark: the first bits of the token
in the receipt say that it has a mark, and which process made it. Bits that were random anyway have this meaning, so it
costs nothing. Consumers of a server outlive it, so their receipts have no mark.

A token with a mark has no hash of the message's id (`claim_token`): only receipts of any claim need that.
"""

import functools
import os
from random import getrandbits

from forq_trio.model.messages.types import RECEIPT_TOKEN_BITS

_PROCESS_BITS = 12
_MARKED_BITS = 14
_MARKED = 0b10_1101_0011_1001  # a token without a mark begins with 0; of those made before, 1 in 16,384 looks marked

RANDOM_BITS = RECEIPT_TOKEN_BITS - _MARKED_BITS - _PROCESS_BITS
"""How many bits of a marked token are random."""
MARKED = _MARKED << _PROCESS_BITS << RANDOM_BITS
"""The lowest token with a mark."""
MARKED_MAX = MARKED | (1 << _PROCESS_BITS + RANDOM_BITS) - 1
"""The highest one."""


def own_mark() -> int:
    """The mark of this process, to which RANDOM_BITS are added. A forked child has one of its own."""
    return _mark_of(os.getpid())


@functools.cache
def _mark_of(process: int) -> int:
    return MARKED | getrandbits(_PROCESS_BITS) << RANDOM_BITS
