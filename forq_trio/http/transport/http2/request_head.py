"""From decoded header fields to the head of a request, by the rules of RFC 9113 section 8; no I/O.

A head that is malformed by RFC 9113 resets its stream. One that is well formed but not served (too long, CONNECT, an
invalid target) is answered with the same status as over HTTP/1.1.
"""

from string import ascii_lowercase, digits

from msgspec import Struct

from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.http2.block_reader import Fields
from forq_trio.http.transport.http2.frames import PROTOCOL_ERROR, StreamFault
from forq_trio.model import limits

_TOKEN = (ascii_lowercase + digits + "!#$%&'*+-.^_`|~").encode()
_METHOD = _TOKEN + _TOKEN.upper()
_PATH = bytes(range(0x21, 0x7F))
_PSEUDO = frozenset((b":method", b":scheme", b":authority", b":path"))
_OF_CONNECTIONS = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
_FIELD_OVERHEAD_BYTES = 32  # RFC 9113 section 6.5.2


class RequestHead(Struct):
    """The head of a request."""

    method: str
    path: str
    query: str
    headers: dict[bytes, bytes]
    size: int  # of its fields, as RFC 9113 counts them
    body_bytes: int | None = None  # its Content-Length, or None
    asks_continue: bool = False
    refused: int = 0  # 0, or the status to answer


def read_head(fields: Fields, config: TransportConfig) -> RequestHead:
    """The head of a request. Raises StreamFault if it is malformed."""
    pseudo: dict[bytes, bytes] = {}
    headers: dict[bytes, bytes] = {}
    for name, value in fields:
        if name[:1] == b":":
            if headers or name in pseudo or name not in _PSEUDO:
                raise StreamFault(PROTOCOL_ERROR)
            pseudo[name] = value
        elif name in headers:
            headers[name] += b", " + value
        else:
            headers[name] = value
    _check_fields(fields, headers)
    method, target = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
    if not method or method.translate(None, _METHOD):
        raise StreamFault(PROTOCOL_ERROR)
    is_connect = method == b"CONNECT"
    if is_connect == (b":scheme" in pseudo) or is_connect == bool(target):
        raise StreamFault(PROTOCOL_ERROR)
    _set_host(headers, pseudo.get(b":authority"))
    path, _, query = target.decode("latin-1").partition("?")
    size = sum([len(name) + len(value) for name, value in fields]) + len(fields) * _FIELD_OVERHEAD_BYTES
    head = RequestHead(method.decode(), path, query, headers, size)
    if b"content-length" in headers:
        head.body_bytes = _content_length(headers[b"content-length"])
    if b"expect" in headers:
        head.asks_continue = headers[b"expect"].lower() == b"100-continue"
    head.refused = _refused(head, target, fields, config)
    return head


def check_trailers(fields: Fields) -> None:
    """Raise StreamFault for malformed trailers. Valid ones are not used."""
    if any(name[:1] == b":" for name, _ in fields):
        raise StreamFault(PROTOCOL_ERROR)
    _check_fields(fields, dict(fields))


def _check_fields(fields: Fields, headers: dict[bytes, bytes]) -> None:
    """Check names and values all at once, joined: each test is one pass in C."""
    names = b"\n".join(headers)
    values = b"\n".join([b"", *[value for _, value in fields], b""])
    if (
        b"" in headers
        or names.translate(None, _TOKEN) != b"\n" * (len(headers) - 1)
        or values.count(b"\n") != len(fields) + 1
        or b"\r" in values
        or b"\0" in values
        or b"\n " in values
        or b" \n" in values
        or b"\n\t" in values
        or b"\t\n" in values
        or not _OF_CONNECTIONS.isdisjoint(headers)
        or headers.get(b"te", b"trailers") != b"trailers"
    ):
        raise StreamFault(PROTOCOL_ERROR)


def _set_host(headers: dict[bytes, bytes], authority: bytes | None) -> None:
    """Set the Host header, which handlers read, from `:authority`; if the client sent both, they have to agree."""
    if authority is None:
        if not headers.get(b"host"):
            raise StreamFault(PROTOCOL_ERROR)
    elif not authority or headers.setdefault(b"host", authority) != authority:
        raise StreamFault(PROTOCOL_ERROR)


def _content_length(value: bytes) -> int:
    """The length in a header, which may repeat the same number (RFC 9110 section 8.6)."""
    lengths = set(value.split(b", "))
    length = lengths.pop()
    if lengths or not length.isdigit() or len(length) > limits.HTTP2_LENGTH_DIGITS_MAX:
        raise StreamFault(PROTOCOL_ERROR)
    return int(length)


def _refused(head: RequestHead, target: bytes, fields: Fields, config: TransportConfig) -> int:
    if head.method == "CONNECT":
        return 501
    if len(target) > config.uri_bytes_max:
        return 414
    if head.size > config.header_bytes_max or len(fields) - len(_PSEUDO) > config.headers_max:
        return 431
    if head.body_bytes is not None and head.body_bytes > config.body_bytes_max:
        return 413
    if b"expect" in head.headers and not head.asks_continue:
        return 417
    is_path = target[:1] == b"/" or (target == b"*" and head.method == "OPTIONS")
    if not is_path or b"#" in target or target.translate(None, _PATH):
        return 400
    return 0
