"""An exchange is bounded as a whole: a server that sends a byte now and then is not waited for without end.

The clock of the client is the test's: it moves on by a second with each look, and then the server sends one byte more.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from queue import SimpleQueue

import pytest

from forq_trio import ForqUnreachable
from forq_trio.client import aio_waits, sync_waits
from forq_trio.client.deadlines import Deadline
from forq_trio.client.failures import NoAnswer
from forq_trio.client.http1 import AnswerReader
from forq_trio.client.protocol import ANSWER_SECONDS
from forq_trio.model.bounds.client import CLIENT_BYTES_PER_SECOND_MIN, CLIENT_HEAD_BYTES_MAX
from support.scripted_server import Peer, Script, answering, scripted

from .conftest import calls_of

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
DRIPS: dict[str, tuple[bytes, bytes]] = {
    "the first line": (b"", b"HTTP/1.1 200 " + b"O" * 5_000),
    "a header": (HEAD, b"X-Long: " + b"x" * 5_000),
    "headers": (HEAD, b"A: b\r\n" * 1_000),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 200),
    "content": (HEAD + b"Content-Length: 5000\r\n\r\n", b" " * 5_000),
    "content to the end": (HEAD + b"Connection: close\r\n\r\n", b" " * 5_000),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 1_000),
    "an extension of a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1;" + b"x" * 5_000),
    "trailers": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", b"A: b\r\n" * 1_000),
}


class Ticks:
    """seconds: by now. looks: True for each, False in the end."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.looks: SimpleQueue[bool] = SimpleQueue()

    def now(self) -> float:
        self.seconds += 1.0
        self.looks.put(True)
        return self.seconds

    def end(self) -> None:
        self.looks.put(False)


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    ticks = Ticks()
    for module in (aio_waits, sync_waits):
        monkeypatch.setattr(module, "now", ticks.now)
    return ticks


@contextmanager
def dripping(opening: bytes, rest: bytes, ticks: Ticks) -> Iterator[tuple[Script, list[int]]]:
    """A server that sends the opening at once, then a byte for each look at the clock; and how many it sent so."""
    sent = [0]

    def serve(peer: Peer, number: int, script: Script) -> None:
        peer.request()
        try:
            peer.send(opening)
            for byte in rest:
                if not ticks.looks.get():
                    return
                peer.send(bytes([byte]))
                sent[0] += 1
        except ConnectionError:
            pass

    with scripted(serve) as script:
        try:
            yield script, sent
        finally:
            ticks.end()


@pytest.mark.parametrize(
    ("kind", "part"), [*(("sync", part) for part in DRIPS), ("trio", "chunks"), ("asyncio", "chunks")]
)
def test_a_server_that_drips(kind: str, ticks: Ticks, part: str):
    opening, rest = DRIPS[part]
    with (
        dripping(opening, rest, ticks) as (script, sent),
        calls_of(kind, script.url) as call,
        pytest.raises(ForqUnreachable, match="timed out after") as caught,
    ):
        call("queues")
    assert caught.value.sent
    assert sent[0] >= ANSWER_SECONDS / 2, "it gave up on a server that made progress"
    assert ticks.seconds <= 4 * ANSWER_SECONDS


def test_a_long_answer_has_the_time_that_it_needs(kind: str, ticks: Ticks):
    """Two MiB come in portions of 64 KiB at most, a second or two for each: longer than an answer of a few bytes may
    take, and faster than the slowest line that is waited for."""
    body = b'{"queues": []' + b" " * 2_097_152 + b"}"
    answer = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with scripted(answering(answer)) as script, calls_of(kind, script.url) as call:
        assert call("queues") == []
    assert ticks.seconds > ANSWER_SECONDS


def test_what_is_left():
    seconds = iter([100.0, 110.0, 125.0, 130.0, 130.0])
    deadline = Deadline(30.0, seconds.__next__)
    assert deadline.left() == 20.0
    assert deadline.left() == 5.0
    with pytest.raises(TimeoutError, match="timed out after 30 s"):
        deadline.left()


def test_progress_gives_time_but_no_wait_takes_longer():
    deadline = Deadline(30.0, iter([0.0, 29.0, 29.0, 40.0, 40.0, 69.0]).__next__)
    assert deadline.left() == 1.0
    deadline.extend_for(1_000 * CLIENT_BYTES_PER_SECOND_MIN)
    assert deadline.left() == 30.0
    deadline.renew()  # at 40 s
    assert deadline.left() == 30.0
    assert deadline.left() == 1.0


@pytest.mark.parametrize("extension", [b"x" * 1_000, b"x" * 60_000])
def test_framing_is_bounded_by_the_content(extension: bytes):
    reader = AnswerReader()
    reader.feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    chunk = b"1;" + extension + b"\r\n \r\n"
    fed = 0

    def feed() -> None:
        nonlocal fed
        for _ in range(1_000):
            reader.feed(chunk)
            fed += len(chunk)

    with pytest.raises(NoAnswer, match="bytes beside a content of"):
        feed()
    assert fed < 4 * CLIENT_HEAD_BYTES_MAX


def test_chunks_of_one_byte_are_no_flood():
    """Five bytes each beside their content: 40,000 are more than two heads may have."""
    reader = AnswerReader()
    reader.feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for chunk in repeat(b"1\r\n \r\n", 40_000):
        reader.feed(chunk)
    reader.feed(b"0\r\n\r\n")
    assert reader.complete
