"""Random conversations of an HTTP/2 client: frames that are valid, nearly valid and not at all, split anywhere."""

import random
import struct
from collections.abc import Callable, Iterator

import hpack

from forq_trio.http.transport.http2 import frames

PATHS = (b"/", b"/wait", b"/long", b"/long?a=b", b"/none", b"*", b"", b"x", b"/#", b"/" + b"p" * 9_000)
METHODS = (b"GET", b"POST", b"POST", b"HEAD", b"OPTIONS", b"CONNECT", b"get", b"G T", b"")
ODD_FIELDS = (
    (b"expect", b"100-continue"),
    (b"expect", b"something"),
    (b"content-length", b"10"),
    (b"content-length", b"-1"),
    (b"connection", b"close"),
    (b"te", b"trailers"),
    (b"te", b"gzip"),
    (b"host", b"other"),
    (b"Upper", b"case"),
    (b":path", b"/again"),
    (b":unknown", b"x"),
    (b"", b"x"),
    (b"a", b" x"),
    (b"a", b"x\ny"),
    (b"a", b"\xff" * 300),
    (b"long", b"x" * 5_000),
)


class Conversation:
    """The frames of one client. resets: it has reset a stream, so it may not get what is on its way."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._encoder = hpack.Encoder()
        self._next_stream = 1
        self.resets = False

    def pieces(self) -> list[bytes]:
        """What the client sends, as the server may receive it."""
        data = b"".join(self._frames())
        if self._rng.random() < 0.2:
            data = data[: self._rng.randrange(len(data) + 1)]
        cuts = sorted(self._rng.randrange(len(data) + 1) for _ in range(self._rng.choice((0, 1, 3, 20))))
        return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    def _frames(self) -> Iterator[bytes]:
        yield frames.PREFACE
        if self._rng.random() < 0.95:
            yield frames.settings_frame({})
        for _ in range(self._rng.randrange(12)):
            data = self._rng.choice(_KINDS)(self)
            if self._rng.random() < 0.05:
                changed = bytearray(data)
                changed[self._rng.randrange(min(len(changed), 30))] = self._rng.randrange(256)
                data = bytes(changed)
            yield data

    def _stream(self) -> int:
        """Mostly one that was opened."""
        if self._rng.random() < 0.9:
            return max(1, self._next_stream - 2 * self._rng.randrange(1, 4))
        return self._rng.choice((0, 2, self._next_stream, 2**31 - 1))

    def _request(self) -> bytes:
        rng = self._rng
        odd = rng.random() < 0.3
        method, path = (
            (rng.choice(METHODS), rng.choice(PATHS))
            if odd
            else (rng.choice(METHODS[:4]), rng.choice(PATHS[:4]))
        )
        fields = [(b":method", method), (b":scheme", b"http"), (b":authority", b"test"), (b":path", path)]
        fields += [(b"user-agent", b"a client"), (b"x-id", b"%d" % rng.randrange(50))]
        if odd:
            fields += rng.sample(ODD_FIELDS, rng.randrange(3))
        if rng.random() < 0.05:
            rng.shuffle(fields)
        stream_id, self._next_stream = self._next_stream, self._next_stream + 2
        body = [rng.randbytes(rng.choice((0, 1, 1_000, 16_384))) for _ in range(rng.choice((0, 0, 1, 1, 3)))]
        parts = [self._headers(stream_id, fields, is_last=not body)]
        parts += [self._data(stream_id, each, is_last=each is body[-1]) for each in body]
        if rng.random() < 0.1:
            parts.append(self._headers(stream_id, [(b"trailer", b"x")], is_last=True))
        return b"".join(parts[: rng.choice((len(parts), len(parts), len(parts), 1))])

    def _headers(self, stream_id: int, fields: list[tuple[bytes, bytes]], *, is_last: bool) -> bytes:
        rng = self._rng
        block = self._encoder.encode(fields, huffman=rng.random() < 0.5)
        flags = frames.END_STREAM if is_last else 0
        if rng.random() < 0.2:
            flags |= frames.WITH_PRIORITY
            block = struct.pack(">IB", rng.choice((0, 1, stream_id)), 7) + block
        if rng.random() < 0.2:
            flags |= frames.PADDED
            padding = rng.randrange(10)
            block = bytes((padding,)) + block + bytes(padding)
        at = rng.randrange(len(block)) if rng.random() < 0.2 and not flags & frames.PADDED else 16_384
        if len(block) <= at:
            return frames.frame(frames.HEADERS, flags | frames.END_HEADERS, stream_id, block)
        start = frames.frame(frames.HEADERS, flags, stream_id, block[:at])
        return start + frames.frame(frames.CONTINUATION, frames.END_HEADERS, stream_id, block[at:])

    def _data(self, stream_id: int, content: bytes, *, is_last: bool) -> bytes:
        flags = frames.END_STREAM if is_last else 0
        if self._rng.random() < 0.2 and len(content) < 16_000:
            return frames.frame(frames.DATA, flags | frames.PADDED, stream_id, b"\x05" + content + bytes(5))
        return frames.frame(frames.DATA, flags, stream_id, content)

    def _window_update(self) -> bytes:
        more = self._rng.choice((0, 1, 60_000, 2**30, 2**31 - 1, 2**31))
        return frames.frame(
            frames.WINDOW_UPDATE, 0, self._rng.choice((0, self._stream())), struct.pack(">I", more)
        )

    def _settings(self) -> bytes:
        settings = {
            self._rng.randrange(8): self._rng.choice((0, 1, 100, 4_096, 65_535, 2**20, 2**31 - 1, 2**32 - 1))
            for _ in range(self._rng.randrange(3))
        }
        return frames.settings_frame(settings)

    def _control(self) -> bytes:
        kind, payload = self._rng.choice(
            ((frames.PING, bytes(8)), (frames.PING, b""), (frames.PRIORITY, bytes(5)), (frames.PRIORITY, b"x"),
             (frames.SETTINGS, b"12345"), (0xEE, b"unknown"), (frames.PUSH_PROMISE, bytes(4)))
        )  # fmt: skip
        stream_id = self._rng.choice((0, self._stream()))
        return frames.frame(kind, self._rng.choice((0, 1)), stream_id, payload)

    def _reset(self) -> bytes:
        self.resets = True
        return frames.reset_frame(self._stream(), frames.CANCEL)

    def _goaway(self) -> bytes:
        return frames.goaway_frame(0, frames.NO_ERROR)

    def _noise(self) -> bytes:
        return self._rng.randbytes(self._rng.randrange(1, 60))


_KINDS: tuple[Callable[[Conversation], bytes], ...] = (
    *8 * (Conversation._request,),
    *2 * (Conversation._window_update,),
    Conversation._settings,
    Conversation._control,
    Conversation._reset,
    Conversation._goaway,
    Conversation._noise,
)


class Answer:
    """What a client has got of one answer."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.body = b""
        self.is_whole = False
        self.code: int | None = None


def read_answers(received: bytes) -> dict[int, Answer]:
    """The answers by their streams. Fails where the bytes are no frames of a server."""
    decoder = hpack.Decoder()
    answers: dict[int, Answer] = {}
    at = 0
    while at < len(received):
        length, kind, flags, stream_id = frames.read_frame_header(received, at)
        payload = received[at + 9 : at + 9 + length]
        assert len(payload) == length <= frames.FRAME_BYTES_MAX, "a frame breaks off"
        at += 9 + length
        if kind in (frames.HEADERS, frames.DATA, frames.RST_STREAM):
            answer = answers.setdefault(stream_id, Answer())
            if kind == frames.RST_STREAM:
                answer.code = frames.read_number(payload)[0]
                continue
            assert stream_id % 2
            assert not answer.is_whole, "an answer goes on behind its end"
            if kind == frames.HEADERS:
                answer.statuses.append(int(dict(decoder.decode(payload, raw=True))[b":status"]))
            else:
                assert answer.statuses, "a body without headers"
                answer.body += payload
            answer.is_whole = bool(flags & frames.END_STREAM)
        else:
            assert kind in (frames.SETTINGS, frames.PING, frames.GOAWAY, frames.WINDOW_UPDATE)
    return answers
