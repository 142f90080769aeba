"""Header blocks of a client: put together from HEADERS and CONTINUATION frames, decoded (HPACK, RFC 7541) by hpack.

No other frame may come between the frames of a block. Every block is decoded, even that of a refused stream, because
each may change the table that the next ones use; so a block that cannot be decoded ends the connection. The encoded and
the decoded size of a block have a bound each: a few bytes may encode a long header, many times. A block may begin with
changes of the table's size, which decode to nothing: two at most (RFC 7541 section 4.2); hpack itself takes any number.
"""

from typing import NamedTuple

import hpack

from forq_trio.http.transport.http2 import frames
from forq_trio.http.transport.http2.frames import ConnectionFault
from forq_trio.model import limits

Fields = list[tuple[bytes, bytes]]


class Block(NamedTuple):
    """A whole header block."""

    stream_id: int
    fields: Fields
    is_last: bool  # it ends the client's side of the stream
    is_circular: bool  # its priority makes the stream depend on itself


class BlockReader:
    """Reads the header blocks of one connection. open_stream: the stream of an unfinished block, or 0."""

    __slots__ = ("_decoder", "_encoded", "_is_circular", "_is_last", "open_stream")

    def __init__(self) -> None:
        self.open_stream = 0
        self._decoder = hpack.Decoder(max_header_list_size=limits.HTTP2_HEADER_LIST_BYTES_MAX)
        self._encoded = bytearray()
        self._is_last = self._is_circular = False

    def start(self, flags: int, stream_id: int, payload: bytes) -> Block | None:
        """Take a HEADERS frame; returns the block if it is whole. Raises ConnectionFault."""
        encoded = frames.without_padding(payload, flags)
        self._is_last = bool(flags & frames.END_STREAM)
        self._is_circular = False
        if flags & frames.WITH_PRIORITY:
            if len(encoded) < frames.PRIORITY_BYTES:
                raise ConnectionFault(frames.FRAME_SIZE_ERROR)
            self._is_circular = frames.depends_on(encoded) == stream_id
            encoded = encoded[frames.PRIORITY_BYTES :]
        if flags & frames.END_HEADERS:
            return self._decode(stream_id, encoded)
        self.open_stream = stream_id
        self._encoded = bytearray(encoded)
        return None

    def go_on(self, flags: int, payload: bytes) -> Block | None:
        """Take a CONTINUATION frame of `open_stream`; returns the block if it is whole. Raises ConnectionFault."""
        self._encoded += payload
        if len(self._encoded) > limits.HTTP2_HEADER_BLOCK_BYTES_MAX:
            raise ConnectionFault(frames.ENHANCE_YOUR_CALM)
        if not flags & frames.END_HEADERS:
            return None
        stream_id, self.open_stream = self.open_stream, 0
        encoded, self._encoded = bytes(self._encoded), bytearray()
        return self._decode(stream_id, encoded)

    def _decode(self, stream_id: int, encoded: bytes) -> Block:
        _check_table_sizes(encoded)
        try:
            fields: Fields = self._decoder.decode(encoded, raw=True)  # type: ignore[assignment]
        except hpack.OversizedHeaderListError:
            raise ConnectionFault(frames.ENHANCE_YOUR_CALM) from None
        except hpack.HPACKError:
            raise ConnectionFault(frames.COMPRESSION_ERROR) from None
        return Block(stream_id, fields, self._is_last, self._is_circular)


def _check_table_sizes(encoded: bytes) -> None:
    """Raise ConnectionFault if a block begins with more than two changes of the table's size."""
    at = 0
    for _ in range(limits.HTTP2_TABLE_SIZES_MAX + 1):
        if at >= len(encoded) or encoded[at] & 0xE0 != 0x20:
            return
        is_long, at = encoded[at] == 0x3F, at + 1
        while is_long and at < len(encoded):
            is_long, at = encoded[at] >= 0x80, at + 1
    raise ConnectionFault(frames.COMPRESSION_ERROR)
