"""From a Response to the bytes of HTTP/1.1, and the headers that every answer carries whatever the transport."""

import time
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus

from forq_trio.http.message import Response

# The Connection line of an answer; empty where the connection stays open by the default of its version.
KEEP_DEFAULT = b""
KEEP_ALIVE = b"Connection: keep-alive\r\n"
CLOSE = b"Connection: close\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

WITHOUT_BODY = frozenset((204, 304))
CACHED_HEADS_MAX = 256


def security_headers(*, hsts: bool) -> tuple[tuple[bytes, bytes], ...]:
    """The security headers of every answer, names in lower case."""
    headers = (
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
    )
    if not hsts:
        return headers
    return (*headers, (b"strict-transport-security", b"max-age=31536000; includeSubDomains"))


class ResponseEncoder:
    """Serialises responses. Everything up to Content-Length is cached by status and content type for one second,
    the resolution of the Date header.
    """

    def __init__(self, *, hsts: bool = False, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._second = 0
        self._heads: dict[tuple[int, bytes], bytes] = {}
        self._security = _header_lines(security_headers(hsts=hsts))

    def encode(
        self, response: Response, connection: bytes = KEEP_DEFAULT, *, omit_body: bool = False
    ) -> bytes:
        """The whole response. connection: KEEP_DEFAULT, KEEP_ALIVE or CLOSE. omit_body: answer a HEAD request.

        Raises ValueError if a header of the response contains a line break.
        """
        second = int(self._now())
        if second != self._second:
            self._second = second
            self._heads.clear()
        status = response.status
        key = (status, response.content_type)
        head = self._heads.get(key) or self._new_head(key)
        if response.headers:
            connection += _header_lines(response.headers)
        if status in WITHOUT_BODY:
            return b"%b%b\r\n" % (head, connection)
        body = response.body
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (head, connection, len(body), b"" if omit_body else body)

    def _new_head(self, key: tuple[int, bytes]) -> bytes:
        status, content_type = key
        headers = [(b"date", formatdate(self._second, usegmt=True).encode())]
        if status not in WITHOUT_BODY:
            headers.append((b"content-type", content_type))
        head = b"HTTP/1.1 %d %b\r\n%b%b" % (status, _reason(status), _header_lines(headers), self._security)
        if len(self._heads) < CACHED_HEADS_MAX:
            self._heads[key] = head
        return head


def _reason(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""


def _header_lines(headers: "tuple[tuple[bytes, bytes], ...] | list[tuple[bytes, bytes]]") -> bytes:
    lines = b"".join(b"%b: %b\r\n" % (name.title(), value) for name, value in headers)
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers) or b"\0" in lines:
        raise ValueError("a response header contains a line break")
    return lines
