"""The bounds of a server and how it refuses requests, the same for HTTP/1.1 and HTTP/2."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from forq_trio.http.message import Response
from forq_trio.model import limits

Refuse = Callable[[int, str, str, Mapping[bytes, bytes]], Response]
"""Makes an answer that the transport itself gives, from its status and the request's method, path and headers.

They are empty where they are not known. Must not raise or wait.
"""


def refuse_without_body(status: int, method: str, path: str, headers: Mapping[bytes, bytes]) -> Response:
    """A `Refuse` whose answers have a status and no body."""
    return Response(status)


class TransportConfig(Struct, frozen=True, kw_only=True):
    """The bounds of a transport; times in seconds, sizes in bytes. The defaults are those of `limits`.

    header_seconds counts from the first byte of a request to the end of its head, body_seconds from there to the end of
    the body; neither is extended by bytes that trickle in. send_seconds bounds the writing of one response.
    """

    header_bytes_max: int = limits.HEADER_BYTES_MAX
    uri_bytes_max: int = limits.URI_BYTES_MAX
    headers_max: int = limits.HEADERS_MAX
    body_bytes_max: int = limits.BODY_BYTES_MAX
    # all bodies that are being received at once; beyond it a request is answered 503
    bodies_bytes_max: int = limits.BODIES_BYTES_MAX
    # all answers that clients have not read yet; see `answer_budget`
    answers_bytes_max: int = limits.ANSWERS_BYTES_MAX
    header_seconds: float = limits.HEADER_SECONDS_MAX
    body_seconds: float = limits.BODY_SECONDS_MAX
    idle_seconds: float = limits.IDLE_SECONDS_MAX  # how long a connection may stay open without a request
    send_seconds: float = limits.SEND_SECONDS_MAX
    linger_seconds: float = limits.LINGER_SECONDS_MAX
    connections_max: int = limits.CONNECTIONS_MAX
    # requests of one connection that are read ahead of their answers
    pipelined_requests_max: int = limits.PIPELINED_REQUESTS_MAX
    receive_chunk_bytes: int = limits.RECEIVE_CHUNK_BYTES
    http2: bool = True  # speak it where a client begins with its preface, or has negotiated it
    hsts: bool = False  # send Strict-Transport-Security (FORQ_ENV=pro)
