"""Wall time in milliseconds, injected so that tests decide what time it is.

Messages carry wall-clock times (they outlive the process); waiting uses trio's own clock. Only the
composition root makes a `SystemClock`; everything else is handed a `Clock`.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, UTC. May step backwards when the machine's clock is set."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
