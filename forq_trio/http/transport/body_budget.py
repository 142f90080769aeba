"""A bound on the bytes of request bodies that a server holds at once, over all its connections.

Every body has its own bound, but ten thousand of them at once would not fit into memory, and they arrive before anybody
has shown a key. Bodies that come whole with their head are small and not counted; whoever counts one gives it back.
"""


class BodyBudget:
    """What of `bytes_max` is taken. Plain numbers: one thread, no waiting."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes_held = 0

    def change(self, by_bytes: int) -> bool:
        """Take (or with a negative number give back) that many bytes; False when more is held than allowed."""
        self.bytes_held += by_bytes
        return self.bytes_held <= self._bytes_max
