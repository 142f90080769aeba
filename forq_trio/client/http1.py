"""HTTP/1.1 as a client speaks it, without I/O: requests to bytes, and answers from bytes, which llhttp parses.

llhttp in its strict mode refuses what lets two readers disagree about where an answer ends: a length given twice or in
two ways, bad chunk sizes, folded headers, bare line feeds. It accepts, and we refuse: other versions than 1.0 and 1.1,
codings other than chunked, another protocol (101). What comes behind an answer is not read, and its connection is not
used again.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

import httptools

from forq_trio.client.address import ServerAddress
from forq_trio.client.failures import CannotSend, ClosedUnanswered, NoAnswer
from forq_trio.model.bounds.client import (
    CLIENT_FRAMING_PER_BYTE_MAX,
    CLIENT_HEAD_BYTES_MAX,
    CLIENT_HEADERS_MAX,
    CLIENT_INTERIM_ANSWERS_MAX,
)
from forq_trio.model.limits import ANSWERS_BYTES_MAX

Headers = tuple[tuple[str, str], ...]

_TARGET = re.compile(r"[!-~]+")
_TARGET_SAFE = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[!-~\x80-\xff](?:[\t !-~\x80-\xff]*[!-~\x80-\xff])?)?")
_LENGTH_NEEDED = ("POST", "PUT", "PATCH")
_MESSAGE_BYTES_MIN = len(b"HTTP/1.1 100 \r\n\r\n")
_NO_CONTENT = (204, 304)
_SWITCHING_PROTOCOLS = 101


class ClientRequest(NamedTuple):
    """A request, as a client gives it to a transport."""

    method: str
    path: str  # with the query, behind the URL of the server
    headers: Headers
    content: bytes  # the body
    answer_seconds: float  # how long the server may take for each part of the exchange, as in `deadlines`


class HttpAnswer(NamedTuple):
    """What a server answered. headers: names in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """A header, by its name in any case; None without it."""
        return self.headers.get(name.lower())


def encode_headers(headers: Headers) -> bytes:
    """Headers as lines. Raises CannotSend for one that HTTP cannot carry."""
    lines = []
    for name, value in headers:
        if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
            raise CannotSend(f"the header {name} has characters that HTTP cannot carry")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("latin-1")


def encode_request(method: str, target: str, head: bytes, content: bytes) -> bytes:
    """A request as bytes. target: a path, or a URL for a proxy; head: from `encode_headers`."""
    if not _TARGET.fullmatch(target):
        target = quote(target, safe=_TARGET_SAFE)
    start = f"{method} {target} HTTP/1.1\r\n".encode("ascii")
    if content or method in _LENGTH_NEEDED:
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (start, head, len(content), content)
    return b"%b%b\r\n" % (start, head)


def basic(address: ServerAddress) -> str:
    """The value of a header that shows the user and password of an address."""
    return f"Basic {b64encode(address.credentials.encode()).decode('ascii')}"


class _Refused(Exception):
    """Ends llhttp's parsing from inside a callback."""


class AnswerReader:
    """Reads one answer. complete: whether it is whole; reusable: whether its connection may carry another request.

    tunnel: it is the answer to a CONNECT, and a success ends with its head.
    """

    def __init__(self, *, tunnel: bool = False) -> None:
        self.complete = False
        self.reusable = False
        self.reason = ""
        self._tunnel = tunnel
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body: bytes | bytearray = b""
        self._head_ended = False
        self._ends_with_connection = False
        self._head_bytes = 0
        self._interim_answers = 0
        self._unreported_bytes = 0
        self._received_bytes = 0
        self._parser = httptools.HttpResponseParser(self)

    @property
    def answer(self) -> HttpAnswer:
        """The answer, once it is complete."""
        return HttpAnswer(self._status, self._headers, bytes(self._body))

    @property
    def content_bytes(self) -> int:
        """How long the content is so far."""
        return len(self._body)

    @property
    def head_ended(self) -> bool:
        """Whether the status and the headers are there; `answer` then has what came of the body so far."""
        return self._head_ended

    def feed(self, data: bytes) -> None:
        """Read what arrived next. Raises NoAnswer for what is no HTTP, or more than is taken."""
        self._received_bytes += len(data)
        before = self._head_ended, len(self._body)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as problem:
            self.reusable = False
            if not self.complete:
                self._forget_parser()
                cause = problem.__context__ if isinstance(problem.__context__, _Refused) else problem
                raise NoAnswer(f"what came is no answer in HTTP/1.1: {cause}") from None
        if self.complete:
            self._forget_parser()
            return
        # What llhttp takes without reporting any of it: an unfinished header, trailers, chunk extensions.
        self._unreported_bytes = (
            self._unreported_bytes + len(data) if before == (self._head_ended, len(self._body)) else 0
        )
        if self._unreported_bytes > CLIENT_HEAD_BYTES_MAX:
            self._forget_parser()
            raise NoAnswer(f"its head has more than {CLIENT_HEAD_BYTES_MAX} bytes")
        beside = self._received_bytes - len(self._body)
        if beside > 2 * CLIENT_HEAD_BYTES_MAX + CLIENT_FRAMING_PER_BYTE_MAX * len(self._body):
            self._forget_parser()
            raise NoAnswer(f"it has {beside} bytes beside a content of {len(self._body)}")

    def end(self) -> None:
        """The connection has ended. Raises NoAnswer unless that is how this answer ends."""
        self._forget_parser()
        if not self._received_bytes:
            raise ClosedUnanswered("the connection was closed without an answer")
        if not self._ends_with_connection:
            raise NoAnswer("the connection was closed before the answer was whole")
        self.complete = True

    def _forget_parser(self) -> None:
        """It refers to this reader: nothing is left for the garbage collector."""
        del self._parser

    def on_message_begin(self) -> None:
        if self.complete:
            self.reusable = False  # bytes that nobody asked for
        self._count_head(_MESSAGE_BYTES_MIN)

    def on_status(self, part: bytes) -> None:
        if not self.complete:
            self.reason += part.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value))
        if self.complete or self._head_ended:
            return  # of what nobody asked for, or a trailer
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text
        if len(self._headers) > CLIENT_HEADERS_MAX:
            raise _Refused(f"it has more than {CLIENT_HEADERS_MAX} headers")

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        self._status = self._parser.get_status_code()
        if self._status == _SWITCHING_PROTOCOLS or self._parser.get_http_version() not in ("1.0", "1.1"):
            raise _Refused("it speaks another protocol")
        if self._status < 200:
            return
        coding = self._headers.get("transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            raise _Refused(f"it is encoded as {coding}")
        self._head_ended = True
        self._ends_with_connection = (
            coding is None and "content-length" not in self._headers and self._status not in _NO_CONTENT
        )
        if self._tunnel and 200 <= self._status < 300:
            self._ends_with_connection = False
            self.complete = self.reusable = True

    def on_body(self, part: bytes) -> None:
        if self.complete:
            self.reusable = False
            return
        if len(self._body) + len(part) > ANSWERS_BYTES_MAX:
            raise _Refused(f"its body has more than {ANSWERS_BYTES_MAX} bytes")
        if not self._body:
            self._body = part
            return
        if not isinstance(self._body, bytearray):
            self._body = bytearray(self._body)
        self._body += part

    def on_message_complete(self) -> None:
        if self._head_ended:
            if not self.complete:
                self.complete = True
                self.reusable = self._parser.should_keep_alive()
        else:
            self._interim_answers += 1
            if self._interim_answers > CLIENT_INTERIM_ANSWERS_MAX:
                raise _Refused(f"more than {CLIENT_INTERIM_ANSWERS_MAX} interim answers came before it")
            self._headers = {}
            self.reason = ""

    def _count_head(self, number: int) -> None:
        self._head_bytes += number
        if self._head_bytes > CLIENT_HEAD_BYTES_MAX:
            raise _Refused(f"its head has more than {CLIENT_HEAD_BYTES_MAX} bytes")
