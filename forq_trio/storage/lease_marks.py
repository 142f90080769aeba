"""Marks of leases that end with their process, because their consumers are inside of it: those of an embedded broker.

A mark is in the first bits of the random token of a claim, so that it costs nothing. It says that there is one, and by
which process. A file belongs to one process at a time. So the next process that opens it ends the leases that have the
mark of another one: nobody can have them any more. Clients of a server outlive it, and their leases have no mark.

A token with a mark has no hash of the message's id (`claim_token`): only receipts that came over SQS need that.
"""

import functools
import os
from random import getrandbits

from forq_trio.model.messages.types import RECEIPT_TOKEN_BITS

_PROCESS_BITS = 12
_MARKED_BITS = 14
_MARKED = 0b10_1101_0011_1001  # begins with 1, as no token without a mark does; old ones like this are rare

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
