"""A client that shuts its sending side behind its request, as `nc -N` does: what is claimed for it is given back."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from forq_trio import ForqClient
from support.in_process import in_process_server
from support.real_server import SECRET

SECONDS_MAX = 30.0


@pytest.fixture
def queue() -> str:
    """A queue that no other test uses."""
    return f"q-{uuid4().hex}"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with in_process_server() as url:
        yield url


def half_closed(url: str, method: str, path: str, body: object = None) -> bytes:
    """All that the server sends to such a client until it closes."""
    parts = urlsplit(url)
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} /api/v1/queues/{path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {SECRET}\r\nConnection: close\r\n"
    request = f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
    with socket.create_connection((parts.hostname, parts.port), SECONDS_MAX) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)  # the server sees the end with the request
        sock.sendall(request)
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        while received := sock.recv(65_536):
            answer += received
    return answer


def test_what_claims_nothing_is_answered(url: str):
    sent = half_closed(url, "POST", "answered/messages", {"content": "a"})
    assert sent.startswith(b"HTTP/1.1 204 ")
    seen = half_closed(url, "GET", "answered/messages?peek=true")
    assert seen.startswith(b"HTTP/1.1 200 ")
    assert b'"a"' in seen
    with ForqClient(url, SECRET) as client:
        (delivery,) = client.receive("answered", wait_ms=0)
        acked = half_closed(url, "POST", "answered/messages/ack", {"receipts": [delivery.receipt]})
        assert acked.startswith(b"HTTP/1.1 200 ")
        assert client.queue_stats("answered").total == 0


RECEIVES = [
    ("GET", "messages", None),
    ("GET", "messages?waitMs=30000", None),
    ("POST", "messages/receive", {"max": 1}),
    ("POST", "messages/receive", {"max": 1, "waitMs": 30_000}),
]


@pytest.mark.parametrize(("method", "path", "body"), RECEIVES)
def test_a_receive_has_no_answer_and_no_message_is_lost(url: str, queue: str, method: str, path: str, body):
    """A client that died looks the same, and would have the message for a whole lease."""
    with ForqClient(url, SECRET) as client:
        client.produce(queue, "a")
        assert half_closed(url, method, f"{queue}/{path}", body) == b""
        (delivery,) = client.receive(queue, wait_ms=30_000)
        assert (delivery.content, delivery.attempts) == ("a", 1)


@pytest.mark.parametrize(
    ("method", "path", "body", "answer"),
    [
        ("GET", "messages", None, b""),  # which waits unless it says otherwise
        ("GET", "messages?waitMs=0", None, b"HTTP/1.1 204 No Content"),
        ("POST", "messages/receive", {"waitMs": 0}, b"HTTP/1.1 200 OK"),
        ("POST", "messages/receive", {"waitMs": 30_000}, b""),
    ],
)
def test_a_receive_that_finds_nothing_waits_for_nothing(
    url: str, queue: str, method: str, path: str, body: object, answer: bytes
):
    assert half_closed(url, method, f"{queue}/{path}", body).partition(b"\r\n")[0] == answer
