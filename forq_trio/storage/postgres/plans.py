"""When a connection makes the plans of its statements anew: on an empty table every index is as good as any other."""

from time import monotonic

PLANNED_SECONDS = 5.0
"""After this time plans are made anew; to make those of a batch takes 3 ms."""
PLANNED_MESSAGES = 1_000
"""After so many messages, and then when there were twice as many, plans are made anew."""


class Plans:
    """How old the plans of a connection are."""

    def __init__(self) -> None:
        self._until = 0.0  # monotonic seconds
        self._messages_max = PLANNED_MESSAGES

    def are_made(self) -> None:
        """All plans that are used from now on are new."""
        self._until = monotonic() + PLANNED_SECONDS

    def outdate(self) -> None:
        """Have new ones made when the next transaction begins."""
        self._until = 0.0

    def note_messages(self, count: int) -> None:
        """So many messages were ever sent."""
        if count >= self._messages_max:
            self.outdate()
            self._messages_max = 2 * count + PLANNED_MESSAGES

    @property
    def are_outdated(self) -> bool:
        return monotonic() >= self._until
