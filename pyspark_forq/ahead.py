"""The next lease, made while Spark is at work on a batch: a call in a thread of its own."""

from collections.abc import Callable
from threading import Thread

from forq_trio.model.errors import ForqError
from forq_trio.wire.consumers import ConsumerLease


class Ahead:
    """At most one call at a time. A copy, which Spark sends to another process, has none under way."""

    def __init__(self) -> None:
        self._thread: Thread | None = None
        self._lease: ConsumerLease | None = None

    def __reduce__(self) -> tuple[type["Ahead"], tuple[()]]:
        return Ahead, ()

    def begin(self, make: Callable[[], ConsumerLease | None]) -> None:
        """Call `make` in the thread. An error of the server is dropped: the query's next request gets it again."""

        def run() -> None:
            try:
                self._lease = make()
            except ForqError:
                self._lease = None

        self._thread = Thread(target=run, name="forq lease ahead", daemon=True)
        self._thread.start()

    def take(self) -> ConsumerLease | None:
        """The lease of the last call, once that has ended; None where there was none, or it failed."""
        if self._thread is None:
            return None
        self._thread.join()
        self._thread = None
        return self._lease
