"""Responses as bytes (F9: security headers on every answer)."""

import pytest

from forq_trio.http.message import NO_CONTENT, Response
from forq_trio.http.transport.response_bytes import CLOSE, KEEP_ALIVE, ResponseEncoder

SECURITY = b"X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"


class Wall:
    seconds = 1_700_000_000.9

    def __call__(self) -> float:
        return self.seconds


def test_a_whole_response():
    encoder = ResponseEncoder(now=Wall())
    assert encoder.encode(Response(200, b'{"a":1}', headers=((b"x-more", b"1"),))) == (
        b"HTTP/1.1 200 OK\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nContent-Type: application/json\r\n"
        + SECURITY
        + b'X-More: 1\r\nContent-Length: 7\r\n\r\n{"a":1}'
    )


@pytest.mark.parametrize("response", [NO_CONTENT, Response(304, b"ignored")])
def test_no_content_has_neither_type_nor_length(response):
    data = ResponseEncoder().encode(response)
    assert b"Content-" not in data.replace(b"X-Content-", b"")
    assert data.endswith(b"\r\n\r\n")


def test_head_keeps_the_length_and_drops_the_body():
    data = ResponseEncoder().encode(Response(200, b"12345"), omit_body=True)
    assert data.endswith(b"Content-Length: 5\r\n\r\n")


def test_connection_lines():
    encoder = ResponseEncoder()
    assert b"\r\nConnection: close\r\n" in encoder.encode(NO_CONTENT, CLOSE)
    assert b"\r\nConnection: keep-alive\r\n" in encoder.encode(NO_CONTENT, KEEP_ALIVE)
    assert b"\r\nConnection:" not in encoder.encode(NO_CONTENT)


def test_the_date_follows_the_clock():
    wall = Wall()
    encoder = ResponseEncoder(now=wall)
    first = encoder.encode(NO_CONTENT)
    wall.seconds += 0.05
    assert encoder.encode(NO_CONTENT) == first
    wall.seconds += 0.06
    assert b"22:13:21 GMT" in encoder.encode(NO_CONTENT)


def test_strict_transport_security_only_where_configured():
    assert b"Strict-Transport-Security: max-age=" in ResponseEncoder(hsts=True).encode(NO_CONTENT)
    assert b"Strict-Transport-Security" not in ResponseEncoder().encode(NO_CONTENT)


@pytest.mark.parametrize("value", [b"a\r\nX-Injected: 1", b"a\nb", b"a\rb", b"a\0b"])
def test_header_injection_is_an_error(value):
    with pytest.raises(ValueError, match="line break"):
        ResponseEncoder().encode(Response(200, headers=((b"location", value),)))


def test_an_unknown_status_has_no_reason():
    assert ResponseEncoder().encode(Response(299)).startswith(b"HTTP/1.1 299 \r\n")
