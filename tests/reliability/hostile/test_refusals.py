"""Requests that are too big or too long (413, 414, 417, 431), over a real server with its real limits.

Those that are too slow (408) are in `test_many_connections`. The server answers and closes; nothing of the request
happens, and the next connection is served.
"""

from contextlib import suppress

import pytest

from forq_trio.model import limits

from .raw import KEY, connect, request, statuses, until_end

pytestmark = pytest.mark.process

PATH = "/api/v1/queues/refused/messages"
WITHOUT_KEY = f"POST {PATH} HTTP/1.1\r\nHost: x\r\n".encode()
HEAD = WITHOUT_KEY + "".join(f"{name}: {value}\r\n" for name, value in KEY.items()).encode()

REFUSED = {
    "a body said to be too long": (HEAD + b"Content-Length: %d\r\n\r\n" % (limits.BODY_BYTES_MAX * 100), 413),
    "a body of chunks that never end": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"100000\r\n%b\r\n" % (b"x" * 2**20) * 16,
        413,
    ),
    "a body without a key": (WITHOUT_KEY + b"Content-Length: 1000000\r\n\r\n" + b"x" * 100_000, 401),
    "a chunk of 2**60 bytes": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % 2**60 + b"x" * 2**24,
        413,
    ),
    "a target that never ends": (b"GET /" + b"x" * 200_000, 414),
    "a header that never ends": (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 200_000, 431),
    "headers that never end": (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 50_000, 431),
    "trailers that never end": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 50_000,
        431,
    ),
    "a chunk extension that never ends": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 200_000,
        431,
    ),
    "too many headers": (
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"A%d: b\r\n" % n for n in range(200)) + b"\r\n",
        431,
    ),
    "an expectation": (HEAD + b"Expect: the impossible\r\nContent-Length: 2\r\n\r\n{}", 417),
    "no HTTP at all": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500, 400),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_its_status_and_the_connection_closed(port, queue, name) -> None:
    data, status = REFUSED[name]
    with connect(port) as client:
        with suppress(ConnectionError):  # It may be refused before all of it was sent.
            client.sendall(data)
        received = until_end(client)
    assert statuses(received) == [status]
    assert b"\r\nConnection: close\r\n" in received
    assert queue.client.get(f"{queue.url}/api/v1/queues/refused").status_code == 404  # nothing was sent to it


def test_a_body_beyond_its_endpoints_limit_leaves_the_connection_usable(port) -> None:
    """It fits the transport, so it is read: 413 by the endpoint, and the next request is answered."""
    long = request("POST", PATH, {"content": "x" * (limits.SEND_BODY_BYTES_MAX + 1)})
    assert len(long) < limits.BODY_BYTES_MAX
    with connect(port) as client:
        client.sendall(long + request("GET", "/healthcheck", None, "Connection: close"))
        assert statuses(until_end(client)) == [413, 204]
