"""Message ids: UUIDs of version 7 that grow in the order they are made, and end with the message's sequence number.

    0192aabb-ccdd-7e1b-83c0-000000001234
    time in ms   random    sequence number, in decimal digits

So a message is found by its id without an index of all ids. Any other id (of a Forq file, of forq.send, of a version
before) is in the index `messages_id`, which has only rows whose id does not end with their sequence number.

Somebody who knows roughly when a message was sent has 24 bits to guess. No right hangs on an id: whoever may read or
settle a message by its id may do that with every message of its queue.
"""

from random import getrandbits

from uuid6 import uuid7

_SEQUENCES = 10**12
"""How many sequence numbers fit; an id with a later one has its last digits, and so is in the index."""


class MessageIds:
    """Makes ids. Call `at` with the time of each batch first."""

    def __init__(self) -> None:
        self._now_ms = self._begun_ms = -1
        self._time_ms = -1  # in the ids; not earlier than before if the clock is set back
        self._start = ""  # of all ids of this millisecond: so they grow with their sequence numbers

    def at(self, now_ms: int) -> None:
        """Make the next ids for this millisecond (epoch ms)."""
        self._now_ms = now_ms

    def next(self, seq: int) -> str:
        """A new id, in the usual text form, for the message with this sequence number."""
        if self._begun_ms != self._now_ms:
            self._begun_ms = self._now_ms
            self._begin()
        return f"{self._start}{seq % _SEQUENCES:012d}"

    def _begin(self) -> None:
        time_ms = uuid7().time
        if time_ms > self._time_ms:
            self._time_ms = time_ms
            digits = f"{time_ms:012x}"
            self._start = f"{digits[:8]}-{digits[8:]}-7{getrandbits(12):03x}-8{getrandbits(12):03x}-"
