"""A bound on the memory for requests that a server is receiving, over all its connections: bodies, and heads of HTTP/2.

Every body has its own bound, but ten thousand of them at once would not fit into memory, and they arrive before a key
is checked. Over HTTP/2 so may heads, of which a connection has many at once. A body that comes with its head over
HTTP/1.1 is small and not counted; every byte that is added is subtracted at the end.
"""


class BodyBudget:
    """How many of `bytes_max` bytes are in use. For one thread; does not wait."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes_used = 0

    def change(self, by_bytes: int) -> bool:
        """Add bytes, or subtract them with a negative number; False when more are in use than allowed."""
        self.bytes_used += by_bytes
        return self.bytes_used <= self._bytes_max
