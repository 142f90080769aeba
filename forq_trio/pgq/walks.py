"""Where claims of a table begin to search for due messages: 50,000 in process make each claim ten times as long.

Due messages are sorted by their times, and no index knows which of them are free, because a lock ends by itself. So
after a slow claim the place of the first free message is remembered for a second, and the next claims begin there. If
an earlier message becomes free meanwhile, it waits for up to that second, as long as there are others. Messages that
this process releases or publishes are found at once.
"""

from time import monotonic
from typing import Any

from forq_trio.model import limits
from forq_trio.pgq.claims import Claimed, claim
from forq_trio.pgq.connections import PgqConnection

ClaimKey = tuple[Any, ...]
"""The table, and what a claim asks for there."""


class Walks:
    """Where slow claims found their first free message. Used in threads: each access to the dict is atomic."""

    def __init__(self) -> None:
        self._walked: dict[ClaimKey, tuple[str, float]] = {}

    def claim(self, connection: PgqConnection, queue: str, asked: dict[str, Any], key: ClaimKey) -> Claimed:
        """Like `claim`, from the place of the latest slow claim; if that finds too little, from the beginning."""
        began = monotonic()
        walked, ends_at = self._walked.get(key, ("", 0.0))
        if began < ends_at:
            claimed = claim(connection, queue, asked | {"walked": walked})
            if len(claimed.deliveries) + len(claimed.invalid) < asked["limit"]:
                self._walked.pop(key, None)
            if claimed.due_at is not None:
                return claimed
            began = monotonic()
        claimed = claim(connection, queue, asked)
        if claimed.due_at is not None and monotonic() >= began + limits.PGQ_LONG_WALK_SECONDS:
            if len(self._walked) >= limits.PGQ_WALKS_MAX:
                self._walked.clear()
            self._walked[key] = claimed.due_at, began + limits.PGQ_WALKED_SECONDS
        return claimed

    def forget(self, queue: str) -> None:
        """Forget the places in a table, because messages became free: the next claims begin at the first message."""
        for key in [each for each in list(self._walked) if each[0] == queue]:
            self._walked.pop(key, None)
