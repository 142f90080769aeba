"""A proxy before PostgreSQL that cuts connections at a chosen byte, or goes silent there, as a network does.

    with database_proxy(url) as proxy:
        engine = PostgresEngine(proxy.url, …)
        proxy.faults.append(Fault(ASKED, COMMIT, 3))

Each connection is passed on by two threads. The first fault in line waits for its byte, in whatever connection that
comes; then it is over, and the next one waits.
"""

import socket
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from support.pgbouncer import PORT, through

ASKED, ANSWERED = "asked", "answered"
ANYTHING = b""
COMMIT = b"\0commit\0"
"""In what is asked: the statement of that name is to run."""
COMMITTED = b"COMMIT\0"
"""In what is answered: it has run."""
SOCKET = ".s.PGSQL."


class Fault(NamedTuple):
    """A connection ends, in both ways, when so many bytes from `mark` on have passed in one way.

    silent: it stays open, and nothing passes any more.
    """

    way: str
    mark: bytes
    passed: int
    silent: bool = False


class Link:
    """A connection to the proxy, and the one to the server behind it. seen: the end of what passed, by way."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.ends = {ASKED: (client, server), ANSWERED: (server, client)}
        self.seen = {ASKED: b"", ANSWERED: b""}
        self.is_silent = False

    def end(self) -> None:
        for each in self.ends[ASKED]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class DatabaseProxy:
    """url: of the database through the proxy. faults: those that come. hit: how many came.

    refuses: new connections end at once; refuses_after_hit: from the next fault on. accepts: called with each new
    connection, in a thread; False has the proxy hold it without a word.
    """

    def __init__(self, url: str, directory: Path) -> None:
        self.url = through(directory, url)
        parts = parse_qs(urlsplit(url).query)
        self._server = f"{parts['host'][0]}/{SOCKET}{parts.get('port', ['5432'])[0]}"
        self.faults: deque[Fault] = deque()
        self.hit = 0
        self.refuses = self.refuses_after_hit = False
        self.accepts: Callable[[], bool] = lambda: True
        self._lock = threading.Lock()
        self._marked: int | None = None
        """Bytes that passed since the mark of the first fault; None before it."""
        self._links: list[Link] = []
        self._held: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / f"{SOCKET}{PORT}"))
        self._listener.listen()
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads = [each for each in self._threads if each.is_alive()]
        self._threads.append(threading.Thread(target=work, args=arguments))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuses:
                client.close()
            elif not self.accepts():
                self._held.append(client)
            else:
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._server)
        except OSError:
            server.close()
            client.close()
            return
        link = Link(client, server)
        self._links = [each for each in self._links if each.ends[ASKED][0].fileno() >= 0]
        self._links.append(link)
        passing = threading.Barrier(2, action=lambda: [each.close() for each in (client, server)])
        for way in (ASKED, ANSWERED):
            self._start(self._pass, link, way, passing)

    def _pass(self, link: Link, way: str, both_ended: threading.Barrier) -> None:
        source, target = link.ends[way]
        with suppress(OSError):
            while data := source.recv(65_536):
                with self._lock:
                    passed, ends = self._judge(link, way, data)
                if passed:
                    target.sendall(passed)
                if ends:
                    break
        link.end()
        both_ended.wait()

    def _judge(self, link: Link, way: str, data: bytes) -> tuple[bytes, bool]:
        """What passes of these bytes, and whether the connection ends behind it."""
        if link.is_silent:
            return b"", False
        before, link.seen[way] = link.seen[way], (link.seen[way] + data)[-len(COMMIT) + 1 :]
        fault = self.faults[0] if self.faults else None
        if fault is None or fault.way != way:
            return data, False
        start = 0
        if self._marked is None:
            found = (before + data).find(fault.mark)
            if found < 0:
                return data, False
            self._marked = 0
            start = max(0, found - len(before))
        if self._marked + len(data) - start < fault.passed:
            self._marked += len(data) - start
            return data, False
        stop = start + fault.passed - self._marked
        self.faults.popleft()
        self._marked = None
        self.hit += 1
        self.refuses = self.refuses_after_hit
        link.is_silent = True
        return data[:stop], not fault.silent

    def calm(self) -> None:
        """No fault comes any more, and connections are taken again."""
        with self._lock:
            self.faults.clear()
            self._marked = None
            self.refuses = self.refuses_after_hit = False

    def release(self) -> None:
        """End the connections that were held."""
        while self._held:
            self._held.pop().close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.release()
        for link in self._links:
            link.end()
        for thread in self._threads:
            thread.join()


@contextmanager
def database_proxy(url: str) -> Iterator[DatabaseProxy]:
    """A proxy on a Unix socket of its own; whoever uses it has to close its connections before the end."""
    with tempfile.TemporaryDirectory(prefix="forq-proxy-") as directory:
        proxy = DatabaseProxy(url, Path(directory))
        try:
            yield proxy
        finally:
            proxy.close()
