"""A transport on a loopback socket, and a client that says exactly the bytes it is told to."""

import fcntl
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h11
import trio
import trio.testing

from forq_trio.http.message import Request, Response, admit_everybody
from forq_trio.http.transport.listeners import open_listeners
from forq_trio.http.transport.server import Server

ERROR_BODIES = {status: b'{"refused":%d}' % status for status in range(400, 600)}


def refuse(status: int, *asked: object) -> Response:
    return Response(status, ERROR_BODIES[status])


async def echo(request: Request) -> Response:
    """Answers with what it was asked, so that a test sees what the handler saw."""
    target = f"{request.method} {request.path}?{request.query}\n".encode()
    return Response(200, target + request.body, b"text/plain")


@dataclass
class Running:
    server: Server
    errors: list[Exception] = field(default_factory=list)
    clients: "list[Client]" = field(default_factory=list)

    @property
    def port(self) -> int:
        return self.server.ports[0]

    async def connect(self) -> "Client":
        client = Client(await trio.open_tcp_stream("127.0.0.1", self.port))
        self.clients.append(client)
        return client

    async def until_nobody_is_connected(self) -> None:
        while self.server.connections:
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()

    async def close(self) -> None:
        for client in self.clients:
            await client.close()


@asynccontextmanager
async def running(
    handler=echo,
    config=None,
    *,
    admit=admit_everybody,
    refuse=refuse,
    ssl_context=None,
    errors_expected=False,
    seconds=120.0,
) -> AsyncIterator[Running]:
    """A server for the length of a test; what it reported as an error fails the test unless it was expected.

    config: None has the usual bounds. refuse: by default with a body of ERROR_BODIES.
    """
    errors: list[Exception] = []
    server = Server(
        handler,
        await open_listeners("127.0.0.1", 0),
        config,
        admit=admit,
        on_error=errors.append,
        refuse=refuse,
        ssl_context=ssl_context,
    )
    with trio.fail_after(seconds):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve)
            transport = Running(server, errors)
            yield transport
            await server.drain(0)
        await transport.close()
    if not errors_expected:
        assert errors == []


@dataclass
class Answer:
    status: int
    headers: dict[bytes, bytes]
    body: bytes | bytearray
    informational: tuple[int, ...] = ()


class Client:
    """One connection. Responses are read with h11, which shares no code with what is tested."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._received = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def arrived(self) -> None:
        """Wait until the server's side has everything that was sent, and every task waits for something else."""
        unconfirmed = bytearray(4)
        while fcntl.ioctl(self.stream.socket.fileno(), termios.TIOCOUTQ, unconfirmed) or any(unconfirmed):
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()

    async def answer(self, method: str = "GET") -> Answer:
        """The next response; fails if the connection ends first."""
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        parser.send(h11.EndOfMessage())
        if self._received:
            parser.receive_data(self._received)
        informational: list[int] = []
        response, body = None, bytearray()  # bytes would be copied for each part
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                parser.receive_data(await self.stream.receive_some())
            elif isinstance(event, h11.InformationalResponse):
                informational.append(event.status_code)
            elif isinstance(event, h11.Response):
                response = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                self._received = parser.trailing_data[0]
                return Answer(response.status_code, dict(response.headers), bytes(body), tuple(informational))
            else:
                raise AssertionError(f"the connection ended instead of an answer: {event}")

    async def ends(self) -> bytes:
        """Everything that comes until the server closes; a reset counts as the end."""
        rest = self._received
        try:
            while received := await self.stream.receive_some():
                rest += received
        except trio.BrokenResourceError:
            return rest
        return rest

    async def close(self) -> None:
        await self.stream.aclose()


def get(path: str = "/", *headers: str, version: str = "1.1") -> bytes:
    lines = [f"GET {path} HTTP/{version}", "Host: test", *headers, "", ""]
    return "\r\n".join(lines).encode()


def post(body: bytes, *headers: str, path: str = "/") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(*chunks: bytes, trailer: str = "", headers: tuple[str, ...] = ()) -> bytes:
    lines = ["POST / HTTP/1.1", "Host: test", "Transfer-Encoding: chunked", *headers, "", ""]
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return "\r\n".join(lines).encode() + body + b"0\r\n" + trailer.encode() + b"\r\n"
