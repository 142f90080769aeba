"""A bound on the memory for request bodies that a server is receiving, over all its connections.

Every body has its own bound, but ten thousand of them at once would not fit into memory, and they arrive before anybody
has shown a key. A body that comes whole with its head is small and not counted; whoever counts one subtracts it again.
"""


class BodyBudget:
    """How much of `bytes_max` is in use. Plain numbers: one thread, no waiting."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes_used = 0

    def change(self, by_bytes: int) -> bool:
        """Add that many bytes, or with a negative number subtract them; False when more is in use than allowed."""
        self.bytes_used += by_bytes
        return self.bytes_used <= self._bytes_max
