"""A proxy before a real server: notes what is asked, and spoils an answer where a test says so.

It is for what a sound server never does: break off, lose an answer, or fail at a chosen moment.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from forq_trio.http.forq_api import refusals
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.model.forq_error import REASONS

PASSED_ON = ("X-API-Key", "Content-Type")
PASSED_BACK = ("X-Forq-Next", "X-Forq-First", "X-Forq-Last")


class Answer(NamedTuple):
    """An answer that is given instead of the server's, which is not asked."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def error(cls, code: str) -> "Answer":
        """What a server answers with this code."""
        response = refusals.answer(Refused(REASONS[code]))
        return cls(response.status, response.body)


CUT_OFF = Answer(200, b"{")
"""An answer whose end never comes; the server is not asked."""
LOST = Answer(200, b"")
"""The server is asked, and nobody hears its answer."""


class Proxy:
    """requests: the last word of the path, and the body. spoiled: answers to the next ones, None for a real one.

    at: called with "asked" before a request is passed on and with "answered" before its answer is. keeps_connections:
    whether a client may send another request on its connection; those that nobody closes would delay the end.
    """

    keeps_connections = True

    def __init__(self, server_url: str) -> None:
        self._address = urlsplit(server_url).netloc
        self.requests: list[tuple[str, dict[str, object]]] = []
        self.spoiled: deque[Answer | None] = deque()
        self.at: Callable[[str], None] = lambda moment: None

    def ask(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """The answer to a request."""
        answer = self._ask(method, target, headers, body)
        self.at("answered")
        return answer

    def _ask(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        self.requests.append((target.rpartition("/")[2], msgspec.json.decode(body) if body else {}))
        self.at("asked")
        spoiled = self.spoiled.popleft() if self.spoiled else None
        if spoiled is not None and spoiled is not LOST:
            return spoiled
        answer = self.passed_on(method, target, headers, body)
        return LOST if spoiled is LOST else answer

    def passed_on(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """What the server answers."""
        connection = HTTPConnection(self._address, timeout=60)
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            passed_back = tuple(
                (name, response.headers[name]) for name in PASSED_BACK if name in response.headers
            )
            return Answer(response.status, response.read(), passed_back)
        finally:
            connection.close()

    def sent(self, action: str) -> list[dict[str, object]]:
        """The bodies of the requests whose paths end in `action`."""
        return [body for last, body in self.requests if last == action]


@contextmanager
def proxying(server_url: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy on a free port of the loopback, and its URL. Clients have to be closed before the end."""
    proxy = Proxy(server_url)
    with listening(proxy) as url:
        yield proxy, url


@contextmanager
def listening(proxy: Proxy) -> Iterator[str]:
    """The URL, on a free port of the loopback, at which this proxy is asked."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
            answer = proxy.ask(self.command, self.path, headers, body)
            self.close_connection = answer is LOST or answer is CUT_OFF
            if answer is LOST:
                return
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            if answer.status != 204:
                self.send_header("Content-Length", "999" if answer is CUT_OFF else str(len(answer.body)))
            if not proxy.keeps_connections:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(answer.body)

        do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, *arguments: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Clients may be killed."""
            if not isinstance(sys.exc_info()[1], ConnectionError):
                super().handle_error(request, client_address)

    server = Listener(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
