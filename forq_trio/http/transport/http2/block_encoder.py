"""Header blocks of our answers (HPACK, RFC 7541): literals that are not indexed.

Such a literal needs no table on either side, so a block does not depend on earlier ones. All its fields but the last
are encoded once a second, for all connections.
"""

import time
from collections.abc import Callable, Iterable
from email.utils import formatdate

from forq_trio.http.message import Response
from forq_trio.http.transport.response_bytes import CACHED_HEADS_MAX, WITHOUT_BODY, security_headers

# A client that lowers the size of our table has to be told that we have done so (RFC 7541 section 4.2): we use none.
NO_TABLE = b"\x20"

# Names of HPACK's static table that our answers have.
_STATIC_NAMES = {
    b":status": 8,
    b"allow": 22,
    b"content-length": 28,
    b"content-type": 31,
    b"date": 33,
    b"retry-after": 53,
    b"strict-transport-security": 56,
}


class BlockEncoder:
    """Encodes the headers of answers, for all connections of a server. Everything but the length and the headers of
    one answer is cached by status and content type for one second, the resolution of the date.
    """

    def __init__(self, *, hsts: bool = False, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._second = 0
        self._blocks: dict[tuple[int, bytes], bytes] = {}
        self._security = _literals(security_headers(hsts=hsts))

    def encode(self, response: Response) -> bytes:
        """The block of an answer. Raises ValueError if a header contains a line break."""
        second = int(self._now())
        if second != self._second:
            self._second = second
            self._blocks.clear()
        key = (response.status, response.content_type)
        block = self._blocks.get(key) or self._new_block(key)
        if response.headers:
            block += _literals(response.headers)
        if response.status in WITHOUT_BODY:
            return block
        return block + _literal(b"content-length", b"%d" % len(response.body))

    def _new_block(self, key: tuple[int, bytes]) -> bytes:
        status, content_type = key
        headers = [(b":status", b"%d" % status), (b"date", formatdate(self._second, usegmt=True).encode())]
        if status not in WITHOUT_BODY:
            headers.append((b"content-type", content_type))
        block = _literals(headers) + self._security
        if len(self._blocks) < CACHED_HEADS_MAX:
            self._blocks[key] = block
        return block


def _literals(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join(_literal(name.lower(), value.strip()) for name, value in headers)


def _literal(name: bytes, value: bytes) -> bytes:
    if b"\n" in value or b"\r" in value or b"\0" in value:
        raise ValueError("a response header contains a line break")
    index = _STATIC_NAMES.get(name)
    start = _integer(0, 4, 0) + _string(name) if index is None else _integer(0, 4, index)
    return start + _string(value)


def _string(text: bytes) -> bytes:
    return _integer(0, 7, len(text)) + text


def _integer(first: int, prefix_bits: int, number: int) -> bytes:
    """RFC 7541 section 5.1."""
    prefix_max = (1 << prefix_bits) - 1
    if number < prefix_max:
        return bytes((first | number,))
    encoded = bytearray((first | prefix_max,))
    number -= prefix_max
    while number >= 128:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


CONTINUE_BLOCK = _literal(b":status", b"100")
