"""Wall time in milliseconds, injected so that tests decide what time it is.

Messages carry wall-clock times (they outlive the process); waiting uses trio's own clock. An engine
says which clock its messages have; everything else is handed a `Clock`.
"""

import time
from typing import Protocol


def machine_ms() -> int:
    """The time of the machine's wall clock (epoch ms)."""
    return time.time_ns() // 1_000_000


class Clock(Protocol):
    """What tells the time; tests hand in one that they set."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, UTC. May step backwards when the machine's clock is set."""
        ...


class AheadClock:
    """The clock of another machine: this machine's wall clock plus `ahead_ms`."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return machine_ms() + self.ahead_ms


class SystemClock:
    """The machine's wall clock."""

    def now_ms(self) -> int:
        return machine_ms()
