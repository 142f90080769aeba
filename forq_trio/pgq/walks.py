"""Where claims of a table begin to look for due messages: 50,000 in process make each claim ten times as long.

Due messages come first, by their times, and no index knows which of them are free: a lock ends by itself. So a
claim that took long is remembered for a second, by where it found the first free message, and the next ones begin
there. A message before it that becomes free meanwhile waits so long for its turn, if there are others; what this
process gives back or publishes is looked for at once.
"""

from time import monotonic
from typing import Any

from forq_trio.model import limits
from forq_trio.pgq.claims import Claimed, claim
from forq_trio.pgq.connections import PgqConnection

ClaimKey = tuple[Any, ...]
"""The table, and what a claim asks for there."""


class Walks:
    """Where long claims found their first free message. Used in threads: a method reads or changes the dict at once."""

    def __init__(self) -> None:
        self._walked: dict[ClaimKey, tuple[str, float]] = {}

    def claim(self, connection: PgqConnection, queue: str, asked: dict[str, Any], key: ClaimKey) -> Claimed:
        """`claim`, from where the latest long one found something; from the beginning if that gives too little."""
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
        """Messages of the table became free: the next claims begin at the first one."""
        for key in [each for each in list(self._walked) if each[0] == queue]:
            self._walked.pop(key, None)
