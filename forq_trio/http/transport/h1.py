"""HTTP/1.1 requests from bytes, without I/O: llhttp parses, `RequestParser` collects, checks and refuses.

`feed` takes whatever arrived, split anywhere. Afterwards
- `complete` has the whole requests, in order, each with the Connection line its answer needs; the caller empties it,
- `phase` says how far the request that follows them has come: IDLE (no byte yet), HEAD or BODY,
- `refused` is 0, or the status to answer, after the requests in `complete`, before the connection is closed,
- `asks_continue` is true while a client waits for `100 Continue` before it sends its body,
- `begun()` is, in the phase BODY, the request whose body is arriving.

A request that asks for another protocol (Upgrade) is a request like any other: a server may decline by answering in
HTTP/1.1 (RFC 9110 section 7.8), and we always do. llhttp stops after such a head, so it is told to continue.

llhttp in its strict mode refuses the means of request smuggling: a body length given twice or in two ways, bad chunk
sizes, folded headers, space before the colon, bare line feeds, control characters. It accepts, and we refuse: more than
one Host or none (HTTP/1.1), codings other than chunked, chunked in HTTP/1.0, versions 0.9 and 2.0.

The size of a head is that of its target, names and values, each with its usual punctuation.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import httptools

from forq_trio.http.message import Request
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.response_bytes import CLOSE, KEEP_ALIVE, KEEP_DEFAULT
from forq_trio.model.holders import at_address

IDLE, HEAD, BODY = range(3)

# The shortest request: it bounds how many requests a number of bytes can contain.
REQUEST_BYTES_MIN = len(b"GET / HTTP/1.0\r\n\r\n")
_REQUEST_LINE_PUNCTUATION = len(b"  HTTP/1.1\r\n\r\n")
_INTERRUPTIONS = (httptools.HttpParserError, httptools.HttpParserUpgrade)
_HEADER_PUNCTUATION = len(b": \r\n")
_NO_HEADERS: dict[bytes, bytes] = {}


class _Refused(Exception):
    """Ends llhttp's parsing from inside a callback; the status is in `refused`."""


class RequestParser:
    """Parses the requests of one connection. client and watch become part of every Request."""

    __slots__ = (
        "_begun",
        "_body",
        "_body_bytes",
        "_body_bytes_max",
        "_body_follows_upgrade",
        "_body_seen",
        "_client",
        "_connection",
        "_header_bytes_max",
        "_headers",
        "_headers_max",
        "_holder",
        "_measures_head",
        "_method",
        "_parser",
        "_path",
        "_query",
        "_repeated",
        "_unreported_bytes",
        "_uri_bytes_max",
        "_url",
        "_watch",
        "asks_continue",
        "complete",
        "phase",
        "refused",
    )

    def __init__(
        self, config: TransportConfig, client: str, watch: Callable[[], AbstractAsyncContextManager[None]]
    ) -> None:
        self.complete: list[tuple[Request, bytes]] = []
        self.phase = IDLE
        self.refused = 0
        self.asks_continue = False
        self._header_bytes_max = config.header_bytes_max
        self._uri_bytes_max = config.uri_bytes_max
        self._headers_max = config.headers_max
        self._body_bytes_max = config.body_bytes_max
        self._client = client
        self._holder = at_address(client)
        self._watch = watch
        self._begun: Request | None = None
        self._body_follows_upgrade = False
        self._measures_head = False
        self._unreported_bytes = 0
        self._body_seen = 0
        self._parser = httptools.HttpRequestParser(self)
        self._connection = KEEP_DEFAULT
        self._method = self._path = self._query = ""
        self._headers: dict[bytes, bytes] = {}
        self._body: bytes | bytearray = b""
        self._url = b""
        self._repeated = 0
        self._body_bytes = 0

    @property
    def head(self) -> tuple[str, str, dict[bytes, bytes]]:
        """Method, path and headers of the current request; empty until its head is whole."""
        is_whole = self.phase != IDLE and self._method
        return (self._method, self._path, self._headers) if is_whole else ("", "", _NO_HEADERS)

    @property
    def body_bytes_left(self) -> int:
        """How many of the next bytes belong to the current body; 0 if its length is not known."""
        return self._body_bytes - len(self._body) if self.phase == BODY else 0

    @property
    def body_bytes_received(self) -> int:
        """How many bytes of the current body were received."""
        return len(self._body) if self.phase == BODY else 0

    def begun(self) -> Request:
        """The request whose body is arriving; it is the one that will be in `complete`, as yet without its body."""
        if self._begun is None:
            self._begun = self._request(b"")
        return self._begun

    def discard_body(self) -> None:
        """Discard what has arrived of the current body, because its request is refused."""
        self._body = b""

    def close(self) -> None:
        """Drop the reference cycles, so that nothing is left for the garbage collector."""
        self.complete.clear()
        self._begun = None
        del self._parser, self._watch

    def feed(self, data: bytes) -> None:
        """Parse the bytes that arrived next. Not to be called again once `refused` is set."""
        phase_before = self.phase
        self._measures_head = phase_before == HEAD or len(data) > self._uri_bytes_max
        try:
            self._parser.feed_data(data)
        except _INTERRUPTIONS as error:
            self._interrupted(data, error)
        if self.phase != IDLE:
            self._check_unfinished(len(data), phase_before)

    def _check_unfinished(self, fed_bytes: int, phase_before: int) -> None:
        """Bound bytes that llhttp has not reported: an unfinished head, trailers, chunk extensions."""
        if self.refused:
            return
        if self.phase != phase_before or len(self._body) != self._body_seen or self.complete:
            # Bytes of a head that share a chunk with an earlier request are counted when the head is whole.
            self._unreported_bytes = fed_bytes if self.phase == HEAD and not self.complete else 0
            self._body_seen = len(self._body)
        else:
            self._unreported_bytes += fed_bytes
        if self.phase == HEAD and len(self._url) > self._uri_bytes_max:
            self.refused = 414
        elif self._unreported_bytes > self._header_bytes_max:
            self.refused = 431

    def _interrupted(self, data: bytes, error: Exception) -> None:
        """llhttp stopped: at malformed bytes, or after a head with Upgrade, which we decline."""
        while isinstance(error, httptools.HttpParserUpgrade):
            data = data[error.args[0] :]
            if self._body_follows_upgrade:
                self._expect_body()
            try:
                self._parser.feed_data(data)
                return
            except _INTERRUPTIONS as next_error:
                error = next_error
        self.refused = self.refused or 400

    def _expect_body(self) -> None:
        """Make a new parser read the body, because llhttp takes what follows a head with Upgrade for another protocol.

        The new parser is fed a head with the same framing, and then gets the original head again.
        """
        head = (self._headers, self._method, self._path, self._query, self._connection, self.asks_continue)
        length = self._headers.get(b"content-length")
        framing = b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %b" % length
        self._body_follows_upgrade = False
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(b"POST / HTTP/1.1\r\nHost: declined\r\n%b\r\n\r\n" % framing)
        self._headers, self._method, self._path, self._query, self._connection, self.asks_continue = head

    def _refuse(self, status: int) -> None:
        self.refused = status
        raise _Refused

    # Called by llhttp, in this order.

    def on_message_begin(self) -> None:
        self.phase = HEAD
        self._method = self._path = ""
        self._url = b""
        self._headers = {}
        self._repeated = 0
        self._body = b""
        self._body_bytes = 0
        self._begun = None

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.phase != HEAD:
            return  # a trailer; nothing here uses them
        name = name.lower()
        headers = self._headers
        if name in headers:
            if name == b"host":
                self._refuse(400)
            self._repeated += 1
            headers[name] += b", " + value.strip()
        else:
            headers[name] = value.strip()

    def on_headers_complete(self) -> None:
        headers = self._headers
        self._method = self._parser.get_method().decode()
        self._path, _, self._query = self._url.decode("latin-1").partition("?")
        if self._measures_head:
            self._check_head_size()
        if len(headers) + self._repeated > self._headers_max:
            self._refuse(431)
        if self._path[:1] != "/" or b"#" in self._url:
            self._resolve_target()
        # Without a Connection header only HTTP/1.1 keeps alive: asking for the version costs more.
        if b"connection" not in headers and self._parser.should_keep_alive():
            version_1_1 = True
            self._connection = KEEP_DEFAULT
        else:
            version_1_1 = self._check_version()
        if b"host" not in headers and version_1_1:
            self._refuse(400)
        if b"content-length" in headers:
            self._body_bytes = int(headers[b"content-length"])
            if self._body_bytes > self._body_bytes_max:
                self._refuse(413)
        elif b"transfer-encoding" in headers:
            self._check_coding(version_1_1)
        if b"expect" in headers and version_1_1:
            self._check_expectation()
        if b"upgrade" in headers and self._parser.should_upgrade():
            self._body_follows_upgrade = self._body_bytes > 0 or b"transfer-encoding" in headers
        self.phase = BODY

    def on_body(self, data: bytes) -> None:
        self.asks_continue = False
        body = self._body
        if not body:
            self._body = data
        elif type(body) is bytearray:
            body += data
        else:
            self._body = bytearray(body)
            self._body += data
        if len(self._body) > self._body_bytes_max:
            self._refuse(413)

    def on_message_complete(self) -> None:
        if self._body_follows_upgrade:
            return
        body = self._body if type(self._body) is bytes else bytes(self._body)
        request = self._begun
        if request is None:
            request = self._request(body)
        else:
            request.body = body
            self._begun = None
        self.complete.append((request, self._connection))
        self.asks_continue = False
        self.phase = IDLE
        self._headers = _NO_HEADERS  # a connection may be idle for long

    def _request(self, body: bytes) -> Request:
        return Request(
            self._method,
            self._path,
            self._query,
            self._headers,
            body,
            self._client,
            self._watch,
            self._holder,
        )

    # The less usual parts of a head.

    def _check_head_size(self) -> None:
        if len(self._url) > self._uri_bytes_max:
            self._refuse(414)
        size = len(self._parser.get_method()) + len(self._url) + _REQUEST_LINE_PUNCTUATION
        for name, value in self._headers.items():
            size += len(name) + len(value) + _HEADER_PUNCTUATION
        if size > self._header_bytes_max:
            self._refuse(431)

    def _resolve_target(self) -> None:
        """Accept the absolute form (RFC 9112 section 3.2.2) and `OPTIONS *`; refuse CONNECT and fragments."""
        if self._method == "CONNECT":
            self._refuse(501)
        if self._method == "OPTIONS" and self._url == b"*":
            return
        scheme, separator, rest = self._path.partition("://")
        if b"#" in self._url or not separator or scheme.lower() not in ("http", "https"):
            self._refuse(400)
        _, slash, path = rest.partition("/")
        self._path = slash + path or "/"

    def _check_version(self) -> bool:
        """True for HTTP/1.1, False for HTTP/1.0; decides whether the connection stays open."""
        version = self._parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._refuse(505)
        if not self._parser.should_keep_alive():
            self._connection = CLOSE
        else:
            self._connection = KEEP_DEFAULT if version == "1.1" else KEEP_ALIVE
        return bool(version == "1.1")

    def _check_coding(self, version_1_1: bool) -> None:
        if not version_1_1:
            self._refuse(400)
        if self._headers[b"transfer-encoding"].lower() != b"chunked":
            self._refuse(501)

    def _check_expectation(self) -> None:
        if self._headers[b"expect"].lower() != b"100-continue":
            self._refuse(417)
        self.asks_continue = self._body_bytes > 0 or b"transfer-encoding" in self._headers
