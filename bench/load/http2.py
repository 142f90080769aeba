"""The load generator over HTTP/2: conversations share connections, as the requests of a Go or a browser client do.

It does as little as possible: frames are written by hand, and of a header block only the status is read, which every
server sends first. Like a real client, each connection puts the headers that all its requests share (authority, key,
content type) into the server's table with its first request, and refers to them from then on; paths are literals. There
are only closed loops: a conversation sends its next request when the last one was answered.
"""

import gc
import select
import socket
import struct
from collections import deque
from collections.abc import Iterable
from time import perf_counter_ns

from hpack.huffman_table import decode_huffman

from bench.load.api import Api
from bench.load.generator import CLOSED, EVENTS_MAX, Address, Conversation, Request
from bench.load.wire import Response, WireError

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
RECEIVE_BYTES = 256 * 1024
WINDOW_BYTES = 2**31 - 1
WINDOW_BYTES_DEFAULT = 65_535
INITIAL_WINDOW_SIZE = 4
_HEADER = struct.Struct(">IBI")
_NUMBER = struct.Struct(">I")
# HPACK: what the first request of a connection has put into the table, the last one first.
_AUTHORITY, _IN_COMMON = b"\xc0", b"\xbe\xbf"
_STATUSES = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}
_GET, _POST, _HTTP = b"\x82", b"\x83", b"\x86"


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return _HEADER.pack(len(payload) << 8 | kind, flags, stream_id) + payload


def text(value: bytes) -> bytes:
    """A string of HPACK, of less than 127 + 128 bytes."""
    return (bytes((len(value),)) if len(value) < 127 else bytes((127, len(value) - 127))) + value


def encode_request(
    method: str, path: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b""
) -> bytes:
    """The frames of a request on stream 0, to be given its own by `on_stream`."""
    block = (_GET if method == "GET" else _POST) + _HTTP + _AUTHORITY + b"\x04" + text(path.encode())
    block += _IN_COMMON
    for name, value in headers:
        block += b"\x00" + text(name.lower().encode()) + text(value.encode())
    if method != "GET":
        block += b"\x0f\x0d" + text(b"%d" % len(body))
    if not body:
        return frame(HEADERS, END_HEADERS | END_STREAM, 0, block)
    return frame(HEADERS, END_HEADERS, 0, block) + frame(DATA, END_STREAM, 0, body)


def body_start(payload: bytes) -> int:
    """Where the body begins in the frames of a request, which is their end if there is none."""
    end = 9 + (_NUMBER.unpack_from(payload)[0] >> 8)
    return min(end + 9, len(payload))


def on_stream(payload: bytes, stream_id: int) -> bytes:
    """The same frames for this stream."""
    number = _NUMBER.pack(stream_id)
    end = 9 + (_NUMBER.unpack_from(payload)[0] >> 8)
    if end == len(payload):
        return payload[:5] + number + payload[9:]
    return payload[:5] + number + payload[9 : end + 5] + number + payload[end + 9 :]


def status_of(block: bytes) -> int:
    """The status that a header block begins with. Raises WireError if it does not."""
    at = 0
    while block[at] & 0xE0 == 0x20:  # changes of the table's size, of one byte each
        at += 1
    if block[at] in _STATUSES:
        return _STATUSES[block[at]]
    if block[at] not in (0x08, 0x48):
        raise WireError(f"a header block that does not begin with its status: {block[:20]!r}")
    value = block[at + 2 : at + 2 + (block[at + 1] & 0x7F)]
    return int(decode_huffman(value) if block[at + 1] & 0x80 else value)


class Http2Api(Api):
    """The same requests as frames of HTTP/2, for `Http2Load`; `get` and `exchange` are those of HTTP/1.1."""

    def _request(self, method: str, path: str, body: object = None, **headers: str) -> bytes:
        return encode_request(method, path, headers.items(), self.encode_body(body))

    def _ack_request(self, path: str, receipt: str) -> bytes:
        return encode_request("POST", path, (("x-forq-receipt", receipt),) if receipt else ())


class _Exchange:
    """A conversation, its current request, and the part of the answer that has come."""

    __slots__ = ("body", "conversation", "request", "started_ns", "status")

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.request: Request
        self.started_ns = 0
        self.status = 0
        self.body = b""


class _Channel:
    """One connection. exchanges: the conversations that wait for an answer, by their streams."""

    def __init__(self, address: Address, authority: str, key: str) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.exchanges: dict[int, _Exchange] = {}
        self.idle: list[_Exchange] = []
        self.waiting: deque[tuple[int, bytes]] = deque()
        self.window = WINDOW_BYTES_DEFAULT
        self.next_stream = 3
        self.received = b""
        first = _GET + _HTTP + b"\x41" + text(authority.encode()) + b"\x04" + text(b"/healthcheck")
        first += b"\x40" + text(b"x-api-key") + text(key.encode()) + b"\x5f" + text(b"application/json")
        setting = struct.pack(">HI", INITIAL_WINDOW_SIZE, WINDOW_BYTES)
        more = _NUMBER.pack(WINDOW_BYTES - WINDOW_BYTES_DEFAULT)
        self.unsent = PREFACE + frame(SETTINGS, 0, 0, setting) + frame(WINDOW_UPDATE, 0, 0, more)
        self.unsent += frame(HEADERS, END_HEADERS | END_STREAM, 1, first)

    def ask(self, exchange: _Exchange, request: Request) -> None:
        """Add a request to the output, if the server's window allows."""
        exchange.request, exchange.body, exchange.status = request, b"", 0
        exchange.started_ns = perf_counter_ns()
        stream_id, self.next_stream = self.next_stream, self.next_stream + 2
        self.exchanges[stream_id] = exchange
        body_bytes = len(request.payload) - body_start(request.payload)
        self.waiting.append((body_bytes, on_stream(request.payload, stream_id)))
        self.fill()

    def fill(self) -> None:
        """Add the requests that wait for the window."""
        while self.waiting and self.waiting[0][0] <= self.window:
            length, payload = self.waiting.popleft()
            self.window -= length
            self.unsent += payload

    def flush(self) -> bool:
        """Send; False if the socket does not take everything now."""
        try:
            sent = self.socket.send(self.unsent)
        except BlockingIOError:
            return False
        self.unsent = self.unsent[sent:]
        return not self.unsent


class Http2Load:
    """Conversations over some connections to one server; used like `Load`."""

    def __init__(self, api: Http2Api, connections: int = 1) -> None:
        self._epoll = select.epoll()
        self._channels: dict[int, _Channel] = {}
        for _ in range(connections):
            channel = _Channel(api.address, api.host, api.key)
            self._channels[channel.socket.fileno()] = channel
            self._epoll.register(channel.socket, select.EPOLLIN | select.EPOLLOUT)
        self._added = 0
        self.record_from_ns = 0
        self.answered = 0

    def __enter__(self) -> "Http2Load":
        return self

    def __exit__(self, *exc_info: object) -> None:
        for channel in self._channels.values():
            channel.socket.close()
        self._epoll.close()

    def add(self, conversation: Conversation) -> None:
        """Add a conversation, which starts with `run`. They are spread evenly over the connections."""
        channels = list(self._channels.values())
        channels[self._added % len(channels)].idle.append(_Exchange(conversation))
        self._added += 1

    def run(self, seconds: float, *, warm_up_seconds: float = 0.0, answers_max: int = 1 << 62) -> float:
        """Like `Load.run`, but once, with conversations that do not end. Raises WireError when a connection ends."""
        self.record_from_ns = perf_counter_ns() + int(warm_up_seconds * 1e9)
        end_ns = self.record_from_ns + int(seconds * 1e9)
        gc.disable()
        try:
            for channel in self._channels.values():
                for exchange in channel.idle:
                    channel.ask(exchange, next(exchange.conversation))
                channel.idle.clear()
            while self.answered < answers_max and (now_ns := perf_counter_ns()) < end_ns:
                for fd, event in self._epoll.poll((end_ns - now_ns) / 1e9, EVENTS_MAX):
                    self._serve(self._channels[fd], event)
        finally:
            gc.enable()
        return max(perf_counter_ns() - self.record_from_ns, 1) / 1e9

    def _serve(self, channel: _Channel, event: int) -> None:
        if event & ~select.EPOLLOUT:
            data = channel.socket.recv(RECEIVE_BYTES)
            if not data:
                raise WireError(CLOSED)
            self._read(channel, channel.received + data)
        if channel.unsent:
            watched = select.EPOLLIN if channel.flush() else select.EPOLLIN | select.EPOLLOUT
            self._epoll.modify(channel.socket, watched)

    def _read(self, channel: _Channel, data: bytes) -> None:
        at = 0
        while len(data) - at >= 9:
            length, flags, stream_id = _HEADER.unpack_from(data, at)
            end = at + 9 + (length >> 8)
            if end > len(data):
                break
            kind, payload, at = length & 0xFF, data[at + 9 : end], end
            if kind in (HEADERS, DATA):
                self._answer(channel, kind, flags, stream_id, payload)
            elif kind == SETTINGS and not flags & ACK:
                channel.unsent += frame(SETTINGS, ACK, 0)
            elif kind == PING and not flags & ACK:
                channel.unsent += frame(PING, ACK, 0, payload)
            elif kind == WINDOW_UPDATE and not stream_id:
                channel.window += _NUMBER.unpack(payload)[0]
                channel.fill()
            elif kind in (RST_STREAM, GOAWAY):
                raise WireError(f"the server ended a stream or the connection: {kind} {payload!r}")
        channel.received = data[at:]

    def _answer(self, channel: _Channel, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        exchange = channel.exchanges.get(stream_id)
        if exchange is None:  # the first request, which belongs to no conversation
            return
        if kind == HEADERS:
            exchange.status = exchange.status or status_of(payload)
        else:
            exchange.body += payload
        if not flags & END_STREAM:
            return
        del channel.exchanges[stream_id]
        now_ns = perf_counter_ns()
        if now_ns >= self.record_from_ns:
            self.answered += 1
            if 200 <= exchange.status < 300:
                exchange.request.series.latency.record(now_ns - exchange.started_ns)
            else:
                exchange.request.series.errors[str(exchange.status)] += 1
        channel.ask(exchange, exchange.conversation.send(Response(exchange.status, exchange.body)))
