"""Clients that count every request until the server is gone: each is answered, or was refused before it began.

Raw connections, because a client library may send a request twice or call things by one name that are two:
- a request on a connection that has served one already must be answered, whatever happens to the server;
- a connection may be refused, or reset before its first answer: then it never reached the server, and whatever was
  asked for on it must not have happened.
"""

import json
import socket
from collections.abc import Callable

import trio

from reliability.process.books import LOAD, Books
from reliability.process.load import messages_of
from support.real_server import SECRET
from support.transport import Answer, Client

KEEPING = 8
CONNECTING = 3
POLLING = 20


def request(method: str, path: str, body: object = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {SECRET}\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


class Stopping:
    """refused: contents of sends that never reached the server.

    polls: status and body of each long poll, and what its answer says of the connection.
    """

    def __init__(self, port: int, books: Books, enough: int) -> None:
        self._port = port
        self._books = books
        self._enough = enough
        self._reached = trio.Event()
        self.refused: set[str] = set()
        self.polls: list[tuple[int, bytes, bytes | None]] = []
        self.statuses: set[int] = set()
        self.closed_between = 0

    async def until_enough(self) -> None:
        await self._reached.wait()

    async def run(self) -> None:
        """Ask until nobody answers any more, all of them."""
        async with trio.open_nursery() as nursery:
            for _ in range(POLLING):
                nursery.start_soon(self._poll)
            for _ in range(KEEPING):
                nursery.start_soon(self._until_refused, self._send_many)
            for _ in range(CONNECTING):
                nursery.start_soon(self._until_refused, self._send_one)

    async def _until_refused(self, work: Callable) -> None:
        try:
            while True:
                client = Client(await trio.open_tcp_stream("127.0.0.1", self._port))
                try:
                    await work(client)
                finally:
                    await client.close()
        except OSError:
            return

    async def _poll(self) -> None:
        client = Client(await trio.open_tcp_stream("127.0.0.1", self._port))
        await client.send(request("POST", f"{messages_of('idle')}/receive", {"waitMs": 30_000}))
        answer = await client.answer()
        self.polls.append((answer.status, answer.body, answer.headers.get(b"connection")))
        await client.close()

    async def _send_one(self, client: Client) -> None:
        """One message on a connection of its own."""
        content = self._books.next_content()
        try:
            await client.send(_send(content))
            answer = await client.answer()
        except (trio.BrokenResourceError, AssertionError):
            self.refused.add(content)
            raise OSError("refused after all") from None
        self._note(content, answer)

    async def _send_many(self, client: Client) -> None:
        """One after another until the server says that it closes."""
        await self._send_one(client)
        while not _has_ended(client):
            content = self._books.next_content()
            await client.send(_send(content))
            answer = await client.answer()
            self._note(content, answer)
            if answer.headers.get(b"connection") == b"close":
                return
        self.closed_between += 1

    def _note(self, content: str, answer: Answer) -> None:
        self.statuses.add(answer.status)
        if answer.status == 204:
            self._books.answered.add(content)
            if len(self._books.answered) >= self._enough:
                self._reached.set()
        else:
            self.refused.add(content)


def _send(content: str) -> bytes:
    return request("POST", messages_of(LOAD), {"content": content})


def _has_ended(client: Client) -> bool:
    """Whether the server has closed the connection: what every client looks at before it uses one again."""
    connected = socket.socket(fileno=client.stream.socket.fileno())
    try:
        return connected.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connected.detach()
