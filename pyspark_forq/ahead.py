"""Makes the next lease while Spark works on a batch, by a call in a thread of its own."""

from collections.abc import Callable
from threading import Thread

from forq_trio.model.consumers.bodies import ConsumerLease
from forq_trio.model.errors import ForqError


class Ahead:
    """Runs at most one call at a time. A copy that Spark sends to another process has no call running."""

    def __init__(self) -> None:
        self._thread: Thread | None = None
        self._lease: ConsumerLease | None = None

    def __reduce__(self) -> tuple[type["Ahead"], tuple[()]]:
        return Ahead, ()

    def begin(self, make: Callable[[], ConsumerLease | None]) -> None:
        """Call `make` in the thread. A server's error is dropped, because the query's next request gets it again."""

        def run() -> None:
            try:
                self._lease = make()
            except ForqError:
                self._lease = None

        self._thread = Thread(target=run, name="forq lease ahead", daemon=True)
        self._thread.start()

    def take(self) -> ConsumerLease | None:
        """Wait for the last call and return its lease; None if there was no call, or it failed."""
        if self._thread is None:
            return None
        self._thread.join()
        self._thread = None
        return self._lease
