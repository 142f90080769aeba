"""The source of a worker as threads use it where the worker is not open: in a web process, for example."""

import atexit
import os
import threading
from typing import TYPE_CHECKING

from forq_trio.model.extras import needing
from forq_trio.worker.opened import refuse_in_event_loop
from forq_trio.worker.source import connection, is_database, is_server, unknown_kind

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient


class BlockingSource:
    """A client or a broker, opened when it is first asked for, until the process ends. After a fork each has its own.

    given, secret: see `Worker`.
    """

    def __init__(self, given: str | None, secret: str | None) -> None:
        self._given = given
        self._secret = secret
        self._opened: dict[int, ForqClient] = {}  # by process
        self._locks: dict[int, threading.Lock] = {}  # by process: another thread may hold one at a fork

    def opened(self) -> "ForqClient":
        """The source in this process. Raises RuntimeError in an event loop, and what opening it raises."""
        refuse_in_event_loop()
        process = os.getpid()
        with self._locks.setdefault(process, threading.Lock()):
            found = self._opened.get(process)
            if found is None:
                found = self._opened[process] = self._open()
                atexit.register(self.close)
            return found

    @property
    def is_open(self) -> bool:
        """Whether there is something to close in this process."""
        return os.getpid() in self._opened

    def close(self) -> None:
        """Close what is open in this process. The next use opens it again."""
        found = self._opened.pop(os.getpid(), None)
        if found is not None:
            atexit.unregister(self.close)
            found.close()

    def _open(self) -> "ForqClient":
        place, url, secret = connection(self._given, self._secret)
        if is_server(place):
            from forq_trio.client.sync import ForqClient

            return ForqClient(url, secret)
        if not is_database(place):
            raise unknown_kind(place)
        with needing("embed", "a worker on a database"):
            from forq_trio.embedded.blocking import open_blocking_broker
        return open_blocking_broker(place)
