"""The clock of the database server, so that all processes agree on when messages are due."""

import time
from math import inf

from forq_trio.model.clock import AheadClock
from forq_trio.storage.postgres.connection import PgConnection

CLOCK_SECONDS = 60.0
"""How often the server's clock is read."""
CLOCK_READ_SECONDS_MAX = 0.1
"""A reading that takes longer is repeated: it may be wrong by half the time that it took."""
CLOCK_READS_MAX = 5


class ServerClock(AheadClock):
    """The server's clock as of the last reading; before the first one, this machine's clock."""

    def __init__(self) -> None:
        super().__init__()
        self._read_at = -inf  # on the monotonic clock, seconds

    def is_old(self) -> bool:
        """Whether it is time to read the server's clock again."""
        return time.monotonic() >= self._read_at + CLOCK_SECONDS

    def read(self, connection: PgConnection) -> None:
        """Read the server's clock, which may differ from this machine's; repeated until an answer comes quickly."""
        quickest = inf
        for _ in range(CLOCK_READS_MAX):
            began = time.monotonic()
            ((server_ms,),) = connection.query("clock")
            now, self._read_at = time.time(), time.monotonic()
            seconds = self._read_at - began
            if seconds < quickest:  # a slower reading says less: this process may have been stopped
                quickest = seconds
                self.ahead_ms = round(server_ms - (now - seconds / 2) * 1_000)
            if quickest < CLOCK_READ_SECONDS_MAX:
                return
