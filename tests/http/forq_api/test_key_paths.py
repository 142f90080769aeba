"""Keys in paths through sockets: the same key over HTTP/1.1 and HTTP/2, as clients that others wrote encode it."""

import socket
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import httpx
import pytest

from forq_trio import ForqClient
from forq_trio.model import limits
from support.in_process import in_process_server
from support.real_server import SECRET

KEYS = [
    "a/b",
    "/",
    "..",
    ".",
    "%2F",
    "%252F",
    "%",
    "a b",
    "a+b",
    "'\"\\_%",
    "käse",
    "😀" * limits.KEY_LENGTH_MAX,
    "?#&",
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with in_process_server() as url:
        yield url


@pytest.fixture(scope="module", params=["HTTP/1.1", "HTTP/2"])
def http(url: str, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    second = request.param == "HTTP/2"
    headers = {"X-API-Key": SECRET}
    with httpx.Client(base_url=url, http1=not second, http2=second, headers=headers, verify=False) as client:
        assert client.get("/healthcheck").http_version == request.param
        yield client


def in_path(key: str) -> str:
    """Every byte encoded: nothing is left for a client to normalise."""
    return "".join(f"%{byte:02X}" for byte in key.encode())


def test_d08_a_key_is_the_same_over_both_versions(http: httpx.Client, url: str):
    with ForqClient(url, SECRET) as client:
        for key in KEYS:
            path = f"/api/v1/queues/q/keys/{in_path(key)}"
            created = http.put(path, json={"content": "m"})
            assert created.status_code == 201, key
            found = client.keyed_message("q", key)
            assert found is not None
            assert found.message.id == created.json()["id"]
            assert client.drop_key("q", key)
            assert http.get(path).status_code == 404


def test_a_key_of_two_hundred_characters_and_one_more(http: httpx.Client):
    path = "/api/v1/queues/q/keys/"
    for key in ("k", "\U0010ffff"):
        most = quote(key * limits.KEY_LENGTH_MAX, safe="")
        assert http.get(path + most).status_code == 404
        refused = http.get(path + most + quote(key, safe=""))
        assert (refused.status_code, refused.json()["code"]) == (400, "bad_request.key.invalid")


def test_what_is_no_key(http: httpx.Client):
    for path in ("%00", "%FF", "%ED%A0%80", ""):
        refused = http.delete(f"/api/v1/queues/q/keys/{path}")
        assert (refused.status_code, refused.json()["code"]) == (400, "bad_request.key.invalid")


def test_a_path_that_a_client_shortened_removes_no_queue(http: httpx.Client, url: str):
    """Our clients send `kind` always: with it, the path of a queue itself is refused."""
    with ForqClient(url, SECRET) as client:
        client.configure("empty", lease_ms=1_000)
    for path in ("/api/v1/queues/empty/", "/api/v1/queues/empty?kind="):
        assert http.delete(path).status_code in (400, 404)
    assert http.get("/api/v1/queues/empty").status_code == 200


def test_literal_dots_are_a_key_like_any_other(url: str):
    """Sent as they are, which most clients do not."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        for status, request in ((b"201", b"PUT"), (b"204", b"DELETE")):
            body = b'{"content":"m"}' if request == b"PUT" else b""
            head = b"%b /api/v1/queues/q/keys/.. HTTP/1.1\r\nHost: h\r\nX-API-Key: %b\r\nContent-Length: %d\r\n\r\n"
            connection.sendall(head % (request, SECRET.encode(), len(body)) + body)
            assert connection.recv(65_536).split()[1] == status


def test_d35_the_confirmation_is_in_the_query(http: httpx.Client):
    for key in ("a", "b"):
        assert http.put(f"/api/v1/queues/drops/keys/{key}", json={"content": "m"}).status_code == 201
    assert http.delete("/api/v1/queues/drops/keys").status_code == 400
    dropped = http.delete("/api/v1/queues/drops/keys", params={"confirm": "drops"})
    assert (dropped.status_code, dropped.json()) == (200, {"dropped": 2})
