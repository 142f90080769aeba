"""A server that answers as it is told, for tests of the load generator itself."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench.load.generator import Address
from support.processes import WAIT_SECONDS_MAX


class Answering(ThreadingHTTPServer):
    """Keeps what it was asked; `answer` gets the number of the request, from 0, and returns raw bytes ("" closes)."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: Callable[[int], bytes] = lambda number: b"HTTP/1.1 204 No Content\r\n\r\n"
        self.closes = False  # each connection, after its answer
        self.bodies: list[bytes] = []
        self.lock = threading.Lock()

    @property
    def address(self) -> Address:
        return Address(*self.server_address[:2])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Answering

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(WAIT_SECONDS_MAX)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            number = len(self.server.bodies)
            self.server.bodies.append(body)
        answer = self.server.answer(number)
        self.wfile.write(answer)
        self.close_connection = not answer or self.server.closes

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def answering() -> Iterator[Answering]:
    with Answering() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
