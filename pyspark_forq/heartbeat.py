"""A request now and then, so that a consumer counts as used while Spark is busy with a batch."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

from forq_trio.model.errors import ForqError
from forq_trio.model.limits import CONSUMER_IDLE_SECONDS_MIN

HEARTBEAT_SECONDS = CONSUMER_IDLE_SECONDS_MIN / 3


class Heartbeat:
    """Runs `beat` every HEARTBEAT_SECONDS in a thread of its own, from `begin` until `end` or the end of the process.

    A server's error is dropped, because the query's next request gets it again. A copy that Spark sends to another
    process does not beat.
    """

    def __init__(self) -> None:
        self._beat: Callable[[], object] = lambda: None
        self._ended = Event()
        self._thread: Thread | None = None

    def __reduce__(self) -> tuple[type["Heartbeat"], tuple[()]]:
        return Heartbeat, ()

    def begin(self, beat: Callable[[], object]) -> None:
        """Run `beat` from now on, instead of an earlier one."""
        self._beat = beat
        if self._thread is None:
            self._thread = Thread(target=self._run, name="forq heartbeat", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Stop. Does not wait for a beat that is running."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            with suppress(ForqError):
                self._beat()
