"""The least of HTTP/1.1 that a load generator needs: requests as ready bytes, and a scanner for answers.

Answers are framed by Content-Length, or have no body (204, 304), or are chunked (the Go original chunks long ones).
The scanner trusts the server: it looks for what it needs instead of checking everything, which is what lets one core
generate the load for another.
"""

import socket
from typing import NamedTuple

END = b"\r\n\r\n"


class WireError(Exception):
    """The server's bytes are not an answer that this scanner understands"""


class Response(NamedTuple):
    """An answer: its status and its body."""

    status: int
    body: bytes


def encode_request(
    method: str, host: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
) -> bytes:
    """A whole request as bytes, keep-alive."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    elif method == "POST":
        lines.append("Content-Length: 0")
    return "\r\n".join(lines).encode() + END + body


_NO_CONTENT = Response(204, b"")


def scan_response(data: bytes) -> tuple[Response, int] | None:
    """The answer at the start of `data` and its length in bytes; None while it is incomplete.

    Raises WireError if the data is not an answer.
    """
    head_end = data.find(END)
    if head_end < 0:
        return None
    body_start = head_end + 4
    if data[9:12] == b"204":
        return _NO_CONTENT, body_start
    try:
        status = int(data[9:12])
    except ValueError:
        raise WireError(f"not an HTTP answer: {data[:40]!r}") from None
    if status == 304:
        return Response(status, b""), body_start
    head = data[:head_end].lower()
    found = head.find(b"\r\ncontent-length:")
    if found >= 0:
        line_end = head.find(b"\r\n", found + 17)
        length = int(head[found + 17 : line_end if line_end >= 0 else head_end])
        end = body_start + length
        return (Response(status, data[body_start:end]), end) if len(data) >= end else None
    if b"\r\ntransfer-encoding: chunked" in head:
        return _scan_chunks(status, data, body_start)
    raise WireError(f"an answer of status {status} without Content-Length")


def _scan_chunks(status: int, data: bytes, start: int) -> tuple[Response, int] | None:
    chunks: list[bytes] = []
    while (line_end := data.find(b"\r\n", start)) >= 0:
        size = int(data[start:line_end].split(b";")[0], 16)
        chunk_start = line_end + 2
        start = chunk_start + size + 2
        if len(data) < start:
            return None
        if size == 0:
            return Response(status, b"".join(chunks)), start
        chunks.append(data[chunk_start : chunk_start + size])
    return None


def exchange(address: tuple[str, int], payload: bytes, timeout_seconds: float = 10.0) -> Response:
    """Send one request over a connection of its own and wait for its answer.

    Raises WireError when the server closes before it answered, OSError when it cannot be reached or is too slow.
    """
    with socket.create_connection(address, timeout_seconds) as connection:
        connection.sendall(payload)
        received = b""
        while (scanned := scan_response(received)) is None:
            data = connection.recv(1 << 16)
            if not data:
                raise WireError("the server closed the connection without an answer")
            received += data
        return scanned[0]
