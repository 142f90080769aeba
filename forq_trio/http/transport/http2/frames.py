"""HTTP/2's frames as numbers and bytes (RFC 9113 sections 4, 6 and 7), and the two kinds of errors they cause."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEADER_BYTES = 9
# The longest payload that we accept, and that we send: every peer accepts it.
FRAME_BYTES_MAX = 16_384
# The longest that a client may say it accepts.
FRAME_BYTES_LIMIT = 2**24 - 1
PRIORITY_BYTES = 5
NUMBER_BYTES = 4
PING_BYTES = 8
GOAWAY_BYTES_MIN = 8
WINDOW_BYTES_DEFAULT = 65_535
WINDOW_BYTES_MAX = 2**31 - 1
STREAM_ID_MAX = 2**31 - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)

END_STREAM = 0x1
ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
WITH_PRIORITY = 0x20

# Settings.
HEADER_TABLE_SIZE = 1
ENABLE_PUSH = 2
MAX_CONCURRENT_STREAMS = 3
INITIAL_WINDOW_SIZE = 4
MAX_FRAME_SIZE = 5
MAX_HEADER_LIST_SIZE = 6

# Error codes.
NO_ERROR = 0
PROTOCOL_ERROR = 1
INTERNAL_ERROR = 2
FLOW_CONTROL_ERROR = 3
STREAM_CLOSED = 5
FRAME_SIZE_ERROR = 6
REFUSED_STREAM = 7
CANCEL = 8
COMPRESSION_ERROR = 9
ENHANCE_YOUR_CALM = 11

# Length and type share the first four bytes; then flags, then the stream.
_HEADER = struct.Struct(">IBI")
_NUMBER = struct.Struct(">I")
_SETTING = struct.Struct(">HI")
_GOAWAY = struct.Struct(">II")

pack_number = _NUMBER.pack
read_number = _NUMBER.unpack_from


class ConnectionFault(Exception):
    """The client broke a rule that ends the connection: it is told by GOAWAY. code: HTTP/2's error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class StreamFault(Exception):
    """The client broke a rule that ends one stream: it is told by RST_STREAM. code: HTTP/2's error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def frame(kind: int, flags: int, stream_id: int, payload: bytes | memoryview = b"") -> bytes:
    """One whole frame."""
    return _HEADER.pack(len(payload) << 8 | kind, flags, stream_id) + payload


def frame_header(kind: int, flags: int, stream_id: int, payload_bytes: int) -> bytes:
    """The header of a frame whose payload follows."""
    return _HEADER.pack(payload_bytes << 8 | kind, flags, stream_id)


def read_frame_header(data: bytes, offset: int) -> tuple[int, int, int, int]:
    """Length of the payload, type, flags and stream of the frame at `offset`."""
    length_and_kind, flags, stream_id = _HEADER.unpack_from(data, offset)
    return length_and_kind >> 8, length_and_kind & 0xFF, flags, stream_id & STREAM_ID_MAX


def settings_frame(settings: dict[int, int]) -> bytes:
    """Our settings, to be acknowledged by the client."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*setting) for setting in settings.items()))


def read_settings(payload: bytes) -> dict[int, int]:
    """Values by their identifiers; the last one of each counts. Raises ConnectionFault for invalid values."""
    if len(payload) % _SETTING.size:
        raise ConnectionFault(FRAME_SIZE_ERROR)
    settings = dict(_SETTING.iter_unpack(payload))
    if settings.get(ENABLE_PUSH, 0) > 1:
        raise ConnectionFault(PROTOCOL_ERROR)
    if not FRAME_BYTES_MAX <= settings.get(MAX_FRAME_SIZE, FRAME_BYTES_MAX) <= FRAME_BYTES_LIMIT:
        raise ConnectionFault(PROTOCOL_ERROR)
    if settings.get(INITIAL_WINDOW_SIZE, 0) > WINDOW_BYTES_MAX:
        raise ConnectionFault(FLOW_CONTROL_ERROR)
    return settings


def depends_on(priority: bytes) -> int:
    """The stream on which a frame's priority makes its stream depend."""
    number: int = read_number(priority)[0]
    return number & STREAM_ID_MAX


def goaway_frame(last_stream_id: int, code: int) -> bytes:
    """GOAWAY: streams above `last_stream_id` will not be processed."""
    return frame(GOAWAY, 0, 0, _GOAWAY.pack(last_stream_id, code))


def window_update_frame(stream_id: int, bytes_more: int) -> bytes:
    """WINDOW_UPDATE: the client may send `bytes_more` on this stream, or for stream 0 on the whole connection."""
    return frame(WINDOW_UPDATE, 0, stream_id, pack_number(bytes_more))


def reset_frame(stream_id: int, code: int) -> bytes:
    """RST_STREAM: the stream ends, in both directions."""
    return frame(RST_STREAM, 0, stream_id, pack_number(code))


def without_padding(payload: bytes, flags: int) -> bytes:
    """The content of a DATA or HEADERS payload. Raises ConnectionFault if there is more padding than payload."""
    if not flags & PADDED:
        return payload
    if not payload:
        raise ConnectionFault(FRAME_SIZE_ERROR)
    if payload[0] >= len(payload):
        raise ConnectionFault(PROTOCOL_ERROR)
    return payload[1 : len(payload) - payload[0]]
