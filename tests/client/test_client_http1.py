"""HTTP/1.1 from bytes and to bytes: every answer whole, byte by byte, and cut short."""

from collections import deque

import pytest

from forq_trio.client.failures import CannotSend, ClosedUnanswered, NoAnswer
from forq_trio.client.http1 import AnswerReader, HttpAnswer, encode_headers, encode_request
from forq_trio.model.bounds import client as limits

START = b"HTTP/1.1 200 OK\r\n"
PLAIN = START + b"Content-Length: 3\r\nX-Forq-Next: 7\r\n\r\nabc"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;more=1\r\nbc\r\n0\r\nTrailer: x\r\n\r\n"


def read(*parts: bytes, end: bool = False) -> AnswerReader:
    reader = AnswerReader()
    for part in parts:
        reader.feed(part)
    if end:
        reader.end()
    return reader


@pytest.mark.parametrize(
    ("data", "status", "content", "reusable"),
    [
        (PLAIN, 200, b"abc", True),
        (CHUNKED, 200, b"abc", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, b"", True),
        (START + b"Content-Length: 0\r\n\r\n", 200, b"", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n" + PLAIN, 200, b"abc", True),
        (START + b"Connection: close\r\nContent-Length: 1\r\n\r\na", 200, b"a", False),
        (b"HTTP/1.0 502 Bad Gateway\r\nContent-Length: 1\r\n\r\na", 502, b"a", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na", 200, b"a", True),
    ],
)
def test_answers(data: bytes, status: int, content: bytes, reusable: bool):
    for parts in ([data], [data[i : i + 1] for i in range(len(data))]):
        reader = read(*parts)
        assert reader.complete
        assert (reader.answer.status, reader.answer.content, reader.reusable) == (status, content, reusable)
        for cut in range(1, len(data)):
            unfinished = read(data[:cut])
            assert not unfinished.complete
            with pytest.raises(NoAnswer, match="before the answer was whole"):
                unfinished.end()


def test_headers_are_found_in_any_case_and_trailers_are_none():
    answer = read(START + b"X-Forq-Next: 7\r\nA: 1\r\na: 2\r\nContent-Length: 0\r\n\r\n").answer
    assert answer.header("x-forq-NEXT") == "7"
    assert answer.header("A") == "1, 2"
    assert answer.header("B") is None
    assert read(CHUNKED).answer.header("Trailer") is None


def test_the_headers_of_an_interim_answer_are_not_those_of_the_answer():
    assert read(b"HTTP/1.1 103 Early\r\nA: b\r\n\r\n" + PLAIN).answer.header("A") is None


def test_an_answer_without_a_length_ends_with_its_connection():
    reader = read(b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>", end=True)
    assert reader.answer == HttpAnswer(502, {}, b"<html>")
    assert not reader.reusable


def test_nothing_at_all():
    with pytest.raises(ClosedUnanswered):
        read(end=True)


@pytest.mark.parametrize(
    "data",
    [
        b"<html>",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
        START + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        START + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        START + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        START + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        START + b"Transfer-Encoding: gzip\r\n\r\n",
        START + b"Transfer-Encoding: chunked\r\n\r\nz\r\n",
        START + b"Content-Length: -1\r\n\r\n",
        START + b"A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    ],
)
def test_what_is_no_answer_is_refused(data: bytes):
    with pytest.raises(NoAnswer, match=r"is no answer in HTTP/1\.1"):
        read(data)


@pytest.mark.parametrize("data", [PLAIN, CHUNKED, b"HTTP/1.1 204 No Content\r\n\r\n"])
def test_an_answer_with_something_behind_it_ends_its_connection(data: bytes):
    for more in (b"x", PLAIN):
        reader = read(data + more)
        assert reader.complete
        assert not reader.reusable
        assert reader.answer == read(data).answer


def test_a_tunnel_begins_behind_the_head_of_a_success_only():
    reader = AnswerReader(tunnel=True)
    reader.feed(b"HTTP/1.1 200 Connection established\r\n\r\n")
    assert (reader.complete, reader.reusable) == (True, True)
    reader = AnswerReader(tunnel=True)
    reader.feed(b"HTTP/1.1 200 OK\r\n\r\nunasked")
    assert (reader.complete, reader.reusable) == (True, False)
    reader = AnswerReader(tunnel=True)
    reader.feed(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\n")
    assert not reader.complete
    reader.feed(b"no")
    assert (reader.answer.status, reader.reason) == (407, "Proxy Authentication Required")


PART = 60_000
ENDLESS = {
    "header": (START + b"A: ", b"x" * PART),
    "headers": (START, b"A: %b\r\n" % (b"x" * 1_000)),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "reason": (b"HTTP/1.1 200 ", b"x" * PART),
    "trailer": (START + b"Transfer-Encoding: chunked\r\n\r\n0\r\nA: ", b"x" * PART),
    "trailers": (START + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n"),
    "chunk extension": (START + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * PART),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_is_refused(name: str):
    start, part = ENDLESS[name]
    reader = read(start) if start else AnswerReader()
    parts = [part] * (4 * limits.CLIENT_HEAD_BYTES_MAX // len(part))
    with pytest.raises(NoAnswer, match=r"more than \d+ (bytes|headers|interim answers)"):
        deque(map(reader.feed, parts), maxlen=0)


def test_more_interim_answers_than_are_taken():
    interim = b"HTTP/1.1 103 Early\r\n\r\n"
    taken = interim * limits.CLIENT_INTERIM_ANSWERS_MAX
    assert read(taken + PLAIN).answer.content == b"abc"
    with pytest.raises(NoAnswer, match=r"more than 10 interim answers came before it$"):
        read(taken + interim + PLAIN)


def test_more_headers_than_are_taken():
    lines = b"".join(b"A%d: b\r\n" % number for number in range(limits.CLIENT_HEADERS_MAX + 1))
    with pytest.raises(NoAnswer, match="headers"):
        read(START + lines + b"\r\n")


def test_a_body_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("forq_trio.client.http1.ANSWERS_BYTES_MAX", 10)
    read(START + b"Content-Length: 10\r\n\r\n" + b"x" * 10)
    for data in (START + b"Content-Length: 11\r\n\r\n" + b"x" * 11, START + b"\r\n" + b"x" * 11):
        with pytest.raises(NoAnswer, match="more than 10 bytes"):
            read(data)


def test_requests():
    head = encode_headers((("Host", "forq"), ("X-API-Key", "s3cret")))
    assert encode_request("GET", "/a?b=c", head, b"") == (
        b"GET /a?b=c HTTP/1.1\r\nHost: forq\r\nX-API-Key: s3cret\r\n\r\n"
    )
    assert encode_request("POST", "/a", head, b"").endswith(b"\r\nContent-Length: 0\r\n\r\n")
    assert encode_request("DELETE", "/a", head, b"xy").endswith(b"\r\nContent-Length: 2\r\n\r\nxy")


def test_no_path_begins_another_request():
    data = encode_request("GET", "/a b\r\nX: y\r\n\r\nGET /é%20", b"", b"")
    assert data == b"GET /a%20b%0D%0AX:%20y%0D%0A%0D%0AGET%20/%C3%A9%20 HTTP/1.1\r\n\r\n"


def test_no_header_begins_another_one():
    values = ("a\r\nB: c", "a\nb", "a\rb", "a\0b", " a", "a ", "\x7f", "€")
    names = ("", "X Y", "X:", "X\r\n", "é")
    for header in (*(("X", value) for value in values), *((name, "a") for name in names)):
        with pytest.raises(CannotSend, match="characters that HTTP cannot carry"):
            encode_headers((header,))
