"""The load generator: many connections on one core, each carrying on a conversation.

A conversation is a generator. It yields the next request and is resumed with the answer:

    def produce(request):
        while True:
            response = yield request

Closed loop: a conversation yields its next request when the last was answered, and time counts from the moment of
writing. Open loop: requests carry `due_ns`, the moment at which they were meant to be sent. They are not written
earlier, and their time counts from `due_ns` even if the connection was still busy then: a server that stalls is
charged for everything that had to wait behind the stall (no coordinated omission).

The loop is only epoll and non-blocking sockets; times are taken in the thread that waits. Answers of 2xx are counted by
`Series`, others by their status under `errors`.
"""

import gc
import select
import socket
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from heapq import heappop, heappush
from time import perf_counter_ns
from typing import NamedTuple

from bench.load.histogram import Histogram
from bench.load.wire import Response, WireError, scan_response

# Each receive allocates this much first; beyond 128 KiB the allocator would map and unmap pages for every answer.
RECEIVE_BYTES = 16 * 1024
EVENTS_MAX = 512
CLOSED = "connection closed"
MALFORMED = "malformed answer"


class Address(NamedTuple):
    host: str
    port: int


class Series:
    """The measurements of one kind of request: latencies of the good answers, errors by status."""

    __slots__ = ("errors", "latency", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.latency = Histogram()
        self.errors: Counter[str] = Counter()


class Request:
    """Bytes to send, and where its time is counted. due_ns: when to send (perf_counter_ns); 0 means now."""

    __slots__ = ("due_ns", "payload", "series")

    def __init__(self, payload: bytes, series: Series, due_ns: int = 0) -> None:
        self.payload = payload
        self.series = series
        self.due_ns = due_ns


Conversation = Generator[Request, Response, None]
Scan = Callable[[bytes], tuple[Response, int] | None]


class _Connection:
    __slots__ = (
        "address",
        "conversation",
        "receive",
        "received",
        "request",
        "send",
        "socket",
        "started_ns",
        "unsent",
    )

    def __init__(self, address: Address, conversation: Conversation) -> None:
        self.address = address
        self.conversation = conversation
        self.started_ns = 0
        self.request: Request
        self.connect()

    def connect(self) -> None:
        self.socket = socket.create_connection(self.address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.receive = self.socket.recv
        self.send = self.socket.send
        self.received = b""
        self.unsent = b""


class Load:
    """Connections to one server. Use as a context manager; `run` may be called several times in it."""

    def __init__(
        self, address: Address, scan: Scan = scan_response, *, keeps_connections: bool = True
    ) -> None:
        """address: the server. scan: finds an answer at the beginning of bytes, in the server's protocol.

        keeps_connections: False for a server that closes each connection after its answer.
        """
        self._address = address
        self._scan = scan
        self._keeps_connections = keeps_connections
        self._epoll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        self._scheduled: list[tuple[int, int]] = []
        self._starting: list[_Connection] = []
        self.record_from_ns = 0
        self.answered = 0

    def __enter__(self) -> "Load":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """End all conversations and close their connections, even those that wait for something."""
        for connection in list(self._connections.values()):
            self._end(connection)
        self._epoll.close()

    def add(self, conversation: Conversation, address: Address | None = None) -> None:
        """Connect for `conversation`; it starts with the next `run`. Raises OSError if nobody listens.

        address: if it is to another server than that of the other conversations.
        """
        connection = _Connection(address or self._address, conversation)
        self._connections[connection.socket.fileno()] = connection
        self._starting.append(connection)
        self._epoll.register(connection.socket, select.EPOLLIN)

    def add_all(self, conversations: Iterable[Conversation]) -> None:
        for conversation in conversations:
            self.add(conversation)

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def run(self, seconds: float, *, warm_up_seconds: float = 0.0, answers_max: int | None = None) -> float:
        """Carry on all conversations, first to warm up (not recorded), then for `seconds`; return the seconds taken.

        Ends earlier when `answers_max` recorded answers have come, or when no conversation is left. Requests still
        unanswered at the end stay so: the next `run` goes on with them.
        """
        begin_ns = perf_counter_ns()
        self.record_from_ns = begin_ns + int(warm_up_seconds * 1e9)
        end_ns = self.record_from_ns + int(seconds * 1e9)
        self.answered = 0
        collecting = gc.isenabled()
        gc.disable()
        try:
            self._loop(end_ns, answers_max if answers_max is not None else 1 << 62)
        finally:
            if collecting:
                gc.enable()
        return max(perf_counter_ns() - self.record_from_ns, 1) / 1e9

    def _loop(self, end_ns: int, answers_max: int) -> None:
        starting, self._starting = self._starting, []
        for connection in starting:
            self._advance(connection, None)
        connections, poll, scheduled = self._connections, self._epoll.poll, self._scheduled
        while connections and self.answered < answers_max:
            now_ns = perf_counter_ns()
            if now_ns >= end_ns:
                return
            wait_seconds = (end_ns - now_ns) / 1e9
            if scheduled:
                wait_seconds = self._wait_for_due(now_ns, end_ns)
            for fd, event in poll(wait_seconds, EVENTS_MAX):
                connection = connections[fd]
                if event & select.EPOLLOUT:
                    self._flush(connection)
                if event & ~select.EPOLLOUT:
                    self._read(connection)

    def _read(self, connection: _Connection) -> None:
        try:
            data = connection.receive(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now_ns = perf_counter_ns()
        if not data:
            connection.request.series.errors[CLOSED] += 1
            self._end(connection)
            return
        if connection.received:
            data = connection.received + data
        try:
            scanned = self._scan(data)
        except WireError:
            connection.request.series.errors[MALFORMED] += 1
            self._end(connection)
            return
        if scanned is None:
            connection.received = data
            return
        response, length = scanned
        connection.received = data[length:]
        if now_ns >= self.record_from_ns:
            self.answered += 1
            series = connection.request.series
            if 200 <= response.status < 300:
                series.latency.record(now_ns - connection.started_ns)
            else:
                series.errors[str(response.status)] += 1
        self._advance(connection, response)

    def _advance(self, connection: _Connection, response: Response | None) -> None:
        try:
            # A generator's first resumption takes None; there is no answer yet.
            connection.request = request = connection.conversation.send(response)  # type: ignore[arg-type]
        except StopIteration:
            self._end(connection)
            return
        if response is not None and not self._keeps_connections:
            self._renew(connection)
        if request.due_ns and request.due_ns > perf_counter_ns():
            heappush(self._scheduled, (request.due_ns, connection.socket.fileno()))
        else:
            self._send(connection, request)

    def _renew(self, connection: _Connection) -> None:
        """Connect anew, since the server closes."""
        del self._connections[connection.socket.fileno()]
        connection.socket.close()
        connection.connect()
        self._connections[connection.socket.fileno()] = connection
        self._epoll.register(connection.socket, select.EPOLLIN)

    def _wait_for_due(self, now_ns: int, end_ns: int) -> float:
        """Send requests that are due, then wait for an answer or the next due time; returns how long epoll may wait.

        epoll counts in whole milliseconds, which would send up to one late; select on the epoll itself does not.
        """
        self._send_due(now_ns)
        wake_ns = min(end_ns, self._scheduled[0][0]) if self._scheduled else end_ns
        select.select([self._epoll], [], [], max(wake_ns - perf_counter_ns(), 0) / 1e9)
        return 0.0

    def _send_due(self, now_ns: int) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0][0] <= now_ns:
            connection = self._connections.get(heappop(scheduled)[1])
            if connection is not None:
                self._send(connection, connection.request)

    def _send(self, connection: _Connection, request: Request) -> None:
        payload = request.payload
        connection.started_ns = request.due_ns or perf_counter_ns()
        try:
            sent = connection.send(payload)
        except BlockingIOError:
            sent = 0
        except OSError:
            return  # The reset also makes the socket readable; it is counted there.
        if sent < len(payload):
            connection.unsent = payload[sent:]
            self._epoll.modify(connection.socket, select.EPOLLIN | select.EPOLLOUT)

    def _flush(self, connection: _Connection) -> None:
        try:
            sent = connection.send(connection.unsent)
        except BlockingIOError:
            return
        except OSError:
            sent = len(connection.unsent)
        connection.unsent = connection.unsent[sent:]
        if not connection.unsent:
            self._epoll.modify(connection.socket, select.EPOLLIN)

    def _end(self, connection: _Connection) -> None:
        del self._connections[connection.socket.fileno()]
        connection.conversation.close()
        connection.socket.close()
