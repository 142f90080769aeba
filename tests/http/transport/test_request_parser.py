"""The parser alone: the same requests and refusals however the bytes are split (F9 codes are the transport's)."""

from contextlib import nullcontext

import pytest

from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.h1 import BODY, HEAD, IDLE, RequestParser
from forq_trio.http.transport.response_bytes import CLOSE, KEEP_ALIVE, KEEP_DEFAULT
from support.http1_streams import HEAD_11, REFUSED, STREAMS
from support.transport import chunked, get

SMALL = TransportConfig(header_bytes_max=400, uri_bytes_max=100, headers_max=6, body_bytes_max=50)


def parse(pieces, config=SMALL):
    """What a connection would see: its requests and the refusal."""
    parser = RequestParser(config, "192.0.2.1", nullcontext)
    seen = []
    for piece in pieces:
        parser.feed(piece)
        for request, connection in parser.complete:
            shown = (request.method, request.path, request.query, request.headers, request.body)
            seen.append((*shown, request.client, connection))
            if connection is CLOSE:
                return seen, 0
        parser.complete.clear()
        if parser.refused:
            break
    return seen, parser.refused


def assert_same_however_split(stream: bytes):
    whole = parse([stream])
    assert parse([stream[i : i + 1] for i in range(len(stream))]) == whole
    for cut in range(1, len(stream)):
        assert parse([stream[:cut], stream[cut:]]) == whole, f"split at {cut}"
    return whole


@pytest.mark.parametrize("name", STREAMS)
def test_splitting_changes_nothing(name):
    seen, _ = assert_same_however_split(STREAMS[name])
    assert seen


@pytest.mark.parametrize("name", REFUSED)
def test_refused_however_split(name):
    text, status = REFUSED[name]
    assert assert_same_however_split(text.encode("latin-1"))[1] == status


def test_a_request_as_the_handler_sees_it():
    [(method, path, query, headers, body, client, connection)], refused = parse([STREAMS["post"]])
    assert (method, path, query, body, client) == ("POST", "/", "", b'{"content":"hello"}', "192.0.2.1")
    assert headers == {b"host": b"test", b"content-length": b"19", b"content-type": b"application/json"}
    assert connection is KEEP_DEFAULT
    assert refused == 0


def test_path_stays_encoded_and_query_is_apart():
    [(_, path, query, *_)], _ = parse([STREAMS["get"]])
    assert (path, query) == ("/a/b%20c", "x=1&y=?")


def test_absolute_targets_lose_their_host():
    seen, _ = parse([STREAMS["absolute form"]])
    assert [(path, query) for _, path, query, *_ in seen] == [("/p", "q"), ("/", "")]


def test_repeated_headers_are_joined():
    [(_, _, _, headers, *_)], _ = parse([STREAMS["repeated header"]])
    assert headers[b"accept"] == b"a, b"


def test_connection_of_each_version():
    def connections(name):
        return [connection for *_, connection in parse([STREAMS[name]])[0]]

    assert connections("1.0") == [CLOSE]
    assert connections("1.0 kept") == [KEEP_ALIVE, KEEP_DEFAULT]
    assert connections("close") == [CLOSE]


def test_the_body_after_a_declined_upgrade_is_a_body():
    seen, refused = parse([STREAMS["upgrade with a body"]])
    assert [(path, body) for _, path, _, _, body, *_ in seen] == [
        ("/", b"GET / HTTP/1.1\r\n\r\n"),
        ("/2", b""),
    ]
    assert b"upgrade" in seen[0][3]
    assert refused == 0


def test_earlier_requests_are_kept_when_a_later_one_is_bad():
    seen, refused = parse([STREAMS["good, then bad"]])
    assert [path for _, path, *_ in seen] == ["/1"]
    assert refused == 400


def test_phases_and_what_is_left_of_the_body():
    parser = RequestParser(SMALL, "", nullcontext)
    phases = []
    for piece in (
        b"\r\n",
        b"P",
        b"OST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n",
        b"\r\n",
        b"ab",
        b"cd",
    ):
        parser.feed(piece)
        phases.append((parser.phase, parser.body_bytes_left))
    assert phases == [(IDLE, 0), (HEAD, 0), (HEAD, 0), (BODY, 4), (BODY, 2), (IDLE, 0)]


@pytest.mark.parametrize(
    "start",
    [
        HEAD_11 + "A: ",
        "GET /",
        chunked().decode()[:-2] + "T: ",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;",
    ],
    ids=["header", "target", "trailer", "chunk extension"],
)
def test_what_never_ends_is_refused_early(start):
    parser = RequestParser(SMALL, "", nullcontext)
    parser.feed(start.encode())
    for _ in range(50):
        parser.feed(b"x" * 20)
        if parser.refused:
            break
    assert parser.refused in (414, 431)


def test_a_burst_of_requests_is_not_taken_for_a_long_head():
    burst = get("/p") * 40
    seen, refused = parse([burst + get("/p")[:-4], get("/p")[-4:]])
    assert (len(seen), refused) == (41, 0)


def test_a_long_chunked_body_may_arrive_in_large_pieces():
    config = TransportConfig(header_bytes_max=100, uri_bytes_max=100)
    seen, refused = parse(
        [chunked(b"x" * 1000, b"y" * 1000)[:-1500], chunked(b"x" * 1000, b"y" * 1000)[-1500:]], config
    )
    assert (refused, len(seen[0][4])) == (0, 2000)


def test_expect_continue_is_asked_until_the_body_comes():
    parser = RequestParser(SMALL, "", nullcontext)
    parser.feed(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-Continue\r\n\r\n")
    assert parser.asks_continue
    parser.feed(b"ab")
    assert not parser.asks_continue
