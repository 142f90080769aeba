"""Work that a command gives up after some time."""

import threading
from collections.abc import Callable


def run_at_most(seconds: float, work: Callable[[], None]) -> None:
    """Run `work`, and return when it is done or the time is over. It leaves its result where the caller looks for it.

    In a thread, which ends with the process: a server that says a byte now and then never meets a time-out of sockets.
    """
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.001))
