"""A proxy between Spark and the server that does something at a chosen request: the moments at which a kill is worst.

A trip is a request, counted by what it asks for, and a moment of it:

- before: it has not reached the server.
- within: the server has it; the deed comes some milliseconds later.
- behind: the server has answered, and nobody hears the answer.
- after: the answer arrives, and the deed comes some time later, wherever Spark is then.
"""

import random
import re
import threading
from collections.abc import Callable
from http.client import HTTPException
from typing import NamedTuple

from support.proxy import LOST, Answer, Proxy

REQUESTS = {
    "lease": re.compile(r"POST .*/consumers/[^/]+/lease"),
    "acknowledge": re.compile(r"POST .*/consumers/[^/]+/acknowledge"),
    "read": re.compile(r"GET .*/consumers/[^/]+/leases/\d+"),
    "stage": re.compile(r"POST .*/stages/[^/]+/pages/\d+"),
    "publish": re.compile(r"POST .*/publications"),
}
MOMENTS = ("before", "within", "behind", "after")
WITHIN_SECONDS = 0.02
AFTER_SECONDS = 2.0
COUNT_MAX = 3


class Trip(NamedTuple):
    """When the deed is done: at the `count`-th request of this kind, at a moment; delay: of `within` and `after`."""

    request: str
    count: int
    moment: str
    delay: float

    @classmethod
    def drawn(cls, rng: random.Random) -> "Trip":
        moment = rng.choice(MOMENTS)
        longest = {"within": WITHIN_SECONDS, "after": AFTER_SECONDS}.get(moment, 0.0)
        return cls(rng.choice(list(REQUESTS)), rng.randint(1, COUNT_MAX), moment, rng.uniform(0.0, longest))


class Gate(Proxy):
    """done: set when the deed has been done."""

    keeps_connections = False  # Spark's workers keep them for minutes

    def __init__(self, server_url: str) -> None:
        super().__init__(server_url)
        self._lock = threading.Lock()
        self._trip: Trip | None = None
        self._left = 0
        self._deed: Callable[[], None] = lambda: None
        self.done = threading.Event()

    def arm(self, trip: Trip, deed: Callable[[], None]) -> None:
        """Do this once, then."""
        with self._lock:
            self._trip, self._left, self._deed = trip, trip.count, deed
            self.done.clear()

    def ask(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """The answer to a request."""
        trip = self._tripped(f"{method} {target}")
        if trip is not None and trip.moment == "before":
            self._do()
            return LOST
        timer = None
        if trip is not None and trip.moment == "within":
            timer = threading.Timer(trip.delay, self._do)
            timer.start()
        try:
            answer = self.passed_on(method, target, headers, body)
        except (OSError, HTTPException):
            answer = LOST
        if timer is not None:
            timer.join()
        elif trip is not None and trip.moment == "behind":
            self._do()
            return LOST
        elif trip is not None:
            threading.Timer(trip.delay, self._do).start()
        return answer

    def _tripped(self, request: str) -> Trip | None:
        """The trip, for the request that it is about."""
        with self._lock:
            if self._trip is None or not REQUESTS[self._trip.request].match(request):
                return None
            self._left -= 1
            if self._left:
                return None
            trip, self._trip = self._trip, None
            return trip

    def _do(self) -> None:
        self._deed()
        self.done.set()
