"""Decides when a connection plans its statements again: on an empty table every index looks as good as any other."""

from time import monotonic

PLANNED_SECONDS = 5.0
"""Plans are renewed after this time; planning the statements of a batch takes 3 ms."""
PLANNED_MESSAGES = 1_000
"""Plans are renewed after so many messages, and again whenever their number has doubled."""


class Plans:
    """The age of a connection's plans."""

    def __init__(self) -> None:
        self._until = 0.0  # monotonic seconds
        self._messages_max = PLANNED_MESSAGES

    def are_made(self) -> None:
        """Note that all plans from now on are new."""
        self._until = monotonic() + PLANNED_SECONDS

    def outdate(self) -> None:
        """Renew the plans when the next transaction begins."""
        self._until = 0.0

    def note_messages(self, count: int) -> None:
        """Note how many messages were ever sent."""
        if count >= self._messages_max:
            self.outdate()
            self._messages_max = 2 * count + PLANNED_MESSAGES

    @property
    def are_outdated(self) -> bool:
        return monotonic() >= self._until
