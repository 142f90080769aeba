"""Locks out addresses that keep presenting wrong keys: 5 failures in 60 s, locked for 60 s.

A lock-out changes only the answer to wrong keys. Keys from a locked address are still compared, because a right key
always passes. So a lock-out does not slow down guessing (keys are too long to be guessed); it tells a client with a
wrong key to stop, and tells the operator about it. A wrong key from a locked address is not counted, not remembered and
not logged.

Plain decisions over an injected monotonic clock; used by the key checks of the API and of the metrics.
AUTH_TRACKED_CLIENTS_MAX addresses are remembered; the one that failed longest ago is forgotten first.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from math import inf

from forq_trio.model import limits


class _Failures:
    """An address's recent failures, oldest first, and until when it is locked out (0.0: it is not)."""

    __slots__ = ("locked_until", "times")

    def __init__(self) -> None:
        self.times: list[float] = []
        self.locked_until = 0.0


class Throttle:
    """Counts failures by address. monotonic: seconds of a clock that never goes back."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._clients: OrderedDict[str, _Failures] = OrderedDict()
        self._logged_at = -inf

    def __len__(self) -> int:
        """How many addresses are remembered."""
        return len(self._clients)

    def locked_seconds(self, client: str) -> float:
        """How many more seconds `client` is locked out; 0.0 if it is not."""
        failures = self._clients.get(client)
        if failures is None or not failures.locked_until:
            return 0.0
        seconds = failures.locked_until - self._monotonic()
        if seconds > 0.0:
            return seconds
        del self._clients[client]
        return 0.0

    def failed(self, client: str) -> bool:
        """Count a failure; the fifth within 60 s locks the address out from now on.

        Returns whether to log it: the failure locked the address out, and the last log entry is AUTH_LOG_SECONDS old.
        Behind a proxy right and wrong keys come from one address, which would be locked and logged again and again.
        """
        now = self._monotonic()
        failures = self._clients.get(client)
        if failures is None:
            failures = self._clients[client] = _Failures()
            if len(self._clients) > limits.AUTH_TRACKED_CLIENTS_MAX:
                self._clients.popitem(last=False)
        else:
            self._clients.move_to_end(client)
        oldest = now - limits.AUTH_WINDOW_SECONDS
        failures.times = [time for time in failures.times if time > oldest]
        failures.times.append(now)
        if len(failures.times) < limits.AUTH_FAILURES_MAX:
            return False
        failures.locked_until = now + limits.AUTH_WINDOW_SECONDS
        is_logged = now >= self._logged_at + limits.AUTH_LOG_SECONDS
        if is_logged:
            self._logged_at = now
        return is_logged

    def succeeded(self, client: str) -> None:
        """Forget the failures of `client`, and its lock."""
        self._clients.pop(client, None)
