"""Requests as bytes, plain blocking sockets to send them by, and the ways a connection can break."""

import json
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from support.real_server import SECRET

KEY = {"X-API-Key": SECRET}


def request(method: str, path: str, body: object = None, *headers: str, key: str = SECRET) -> bytes:
    """A whole request; a body that is not bytes is sent as JSON."""
    raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: x",
        f"X-API-Key: {key}",
        f"Content-Length: {len(raw)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + raw


def connect(port: int, *, receive_buffer_bytes: int | None = None, source: str = "") -> socket.socket:
    """A connection. receive_buffer_bytes: how little the kernel takes for us while we do not read. source: from this
    address.

    Without a source it is not bound: the kernel looks for a port that no connection of the machine has, nor had in the
    last minute, and once half of the ports are used that takes it 2 to 4 ms. `connect` shares ports between servers.
    """
    connected = socket.socket()
    if source:
        connected.bind((source, 0))
    if receive_buffer_bytes is not None:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    connected.settimeout(120)
    connected.connect(("127.0.0.1", port))
    return connected


def close(connected: socket.socket) -> None:
    connected.close()


def half_close(connected: socket.socket) -> None:
    """Say that nothing more will be sent, and go on as if one might still read."""
    connected.shutdown(socket.SHUT_WR)


def reset(connected: socket.socket) -> None:
    """Close with a TCP reset."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connected.close()


BREAKS: dict[str, Callable[[socket.socket], None]] = {
    "close": close,
    "half close": half_close,
    "reset": reset,
}


def send_and_break(connected: socket.socket, data: bytes, break_off: Callable[[socket.socket], None]) -> None:
    """Let the bytes and the end of the connection arrive together: the kernel holds both back until the end is said."""
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    connected.sendall(data)
    break_off(connected)


def until_end(connected: socket.socket) -> bytes:
    """Everything that comes until the server closes; a reset counts as the end. A server that does not is an error."""
    received = b""
    try:
        while portion := connected.recv(65_536):
            received += portion
    except ConnectionError:
        return received
    return received


def statuses(received: bytes) -> list[int]:
    """The statuses of the answers in what was received."""
    return [int(head[:3]) for head in received.split(b"HTTP/1.1 ")[1:]]


@dataclass
class Queue:
    """One queue of a server, as an honest client sees it."""

    url: str
    name: str
    client: httpx.Client

    @property
    def path(self) -> str:
        return f"/api/v1/queues/{self.name}/messages"

    def send(self, content: str = "x") -> None:
        assert self.client.post(f"{self.url}{self.path}", json={"content": content}).status_code == 204

    def receive(self, wait_ms: int = 20_000, most: int = 1) -> list[dict[str, Any]]:
        wanted = {"max": most, "waitMs": wait_ms, "leaseMs": 60_000}
        answer = self.client.post(f"{self.url}{self.path}/receive", json=wanted)
        assert answer.status_code == 200
        return answer.json()["messages"]

    def counts(self) -> dict[str, Any]:
        return self.client.get(f"{self.url}/api/v1/queues/{self.name}").json()

    def until_waiting(self, receivers: int) -> None:
        """Return when so many receivers are parked on it; a queue that nobody has used has no counts."""
        while self.counts().get("waiting", 0) != receivers:
            pass
