"""Sasquatch's error table: the code and message of each error, answered as `{"error": {"code", "message"}}`.

The first eight codes are Sasquatch's own; the others are for things it does not have: keys, tokens, overload.
"""

from typing import NamedTuple

import msgspec

from forq_trio.http.errors import (
    ForeignSite,
    HttpError,
    LockedOut,
    PathNotFound,
    Unauthorized,
    UnknownEncoding,
)
from forq_trio.http.message import Response
from forq_trio.model import errors, limits
from forq_trio.telemetry.log import LogEvent, log

INVALID_REQUEST = "InvalidRequest"
VALIDATION_ERROR = "ValidationError"
METHOD_NOT_ALLOWED = "MethodNotAllowed"
NOT_FOUND = "NotFound"
DUPLICATE_MESSAGE = "DuplicateMessage"
MESSAGE_SIZE_EXCEEDED = "MessageSizeExceeded"
UNSUPPORTED_ENCODING = "UnsupportedEncoding"
QUEUE_FULL = "QueueFull"
INTERNAL_ERROR = "InternalError"
UNAUTHORIZED = "Unauthorized"
FORBIDDEN = "Forbidden"
TOO_MANY_REQUESTS = "TooManyRequests"
SERVICE_UNAVAILABLE = "ServiceUnavailable"

INTERNAL_MESSAGE = "an internal error occurred"


class Code(NamedTuple):
    """The status of a code and, for the documentation, when it is answered."""

    status: int
    meaning: str


CODES = {
    INVALID_REQUEST: Code(
        400, "The body is not the JSON of this endpoint, or a member that has to be there is missing."
    ),
    VALIDATION_ERROR: Code(
        400,
        "A value is out of range or has the wrong form, or the queue is bound to a table; the message says which.",
    ),
    UNAUTHORIZED: Code(401, "The X-API-Key header is missing or wrong."),
    FORBIDDEN: Code(
        403,
        "The token does not allow it (the message names the scope it would need, or says that the token has made as"
        " many queues as it may), or a web page asks a server without keys.",
    ),
    NOT_FOUND: Code(404, "None of the receipt handles is a current one."),
    METHOD_NOT_ALLOWED: Code(405, "The endpoint has another method; the Allow header names it."),
    DUPLICATE_MESSAGE: Code(409, "The deduplication id was used in this queue within its period."),
    MESSAGE_SIZE_EXCEEDED: Code(413, "The message, or the whole request, is longer than allowed."),
    UNSUPPORTED_ENCODING: Code(415, "The body is compressed (Content-Encoding); send it uncompressed."),
    TOO_MANY_REQUESTS: Code(429, "Too many wrong keys came from this address; see Retry-After."),
    INTERNAL_ERROR: Code(500, "An error of the server; details are in its log only."),
    QUEUE_FULL: Code(503, "The queue holds as many messages as it may; see Retry-After."),
    SERVICE_UNAVAILABLE: Code(
        503,
        "The server is overloaded or shutting down, its disk is full, or its database was moved; see Retry-After.",
    ),
}

_CODE_BY_STATUS = {
    400: VALIDATION_ERROR,
    401: UNAUTHORIZED,
    403: FORBIDDEN,
    404: NOT_FOUND,
    409: VALIDATION_ERROR,
    415: UNSUPPORTED_ENCODING,
    429: TOO_MANY_REQUESTS,
    503: SERVICE_UNAVAILABLE,
}
"""The dialect's code by the status of an error. Other mistakes of callers: VALIDATION_ERROR; others: INTERNAL_ERROR."""

_EXCEPTIONS: dict[type[errors.ForqError], str] = {
    errors.InvalidContent: INVALID_REQUEST,
    errors.ContentTooLarge: MESSAGE_SIZE_EXCEEDED,
    errors.QueueFull: QUEUE_FULL,
    errors.StorageUnavailable: INTERNAL_ERROR,
    errors.TooManyQueues: FORBIDDEN,
    errors.CommandRefused: INTERNAL_ERROR,
}
_OWN_WORDS: dict[type[Exception], str] = {
    Unauthorized: "the X-API-Key header is missing or wrong",
    LockedOut: "too many wrong keys; try again later",
    ForeignSite: "without keys the server takes no requests from web pages of other sites",
    PathNotFound: "nothing is served at this path",
    UnknownEncoding: "the request body is compressed (Content-Encoding); send it uncompressed",
    errors.MalformedReceipt: "receipt_handles must be UUIDs",
}


class SasquatchErrorView(msgspec.Struct, frozen=True):
    """The inner object of an error: its code, and a message for people."""

    code: str
    message: str


class _ErrorBody(msgspec.Struct, frozen=True):
    error: SasquatchErrorView


class SasquatchError(Exception):
    """Raised while a request is read or carried out: the answer has this code of the table, and these headers."""

    def __init__(self, code: str, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers
        self.view = SasquatchErrorView(code, message)


def explain(error: Exception) -> SasquatchError:
    """The answer to `error`. One without a code is logged, and answered as an internal error."""
    if isinstance(error, SasquatchError):
        return error
    kind = error.kind if isinstance(error, HttpError) else type(error)
    code = INTERNAL_ERROR
    if issubclass(kind, errors.ForqError):
        other = VALIDATION_ERROR if issubclass(kind, errors.CallerError) else INTERNAL_ERROR
        code = _EXCEPTIONS.get(kind) or _CODE_BY_STATUS.get(kind.status, other)
    if code == INTERNAL_ERROR:
        log(LogEvent.REQUEST_FAILED, exception=error)
        return SasquatchError(INTERNAL_ERROR, INTERNAL_MESSAGE)
    headers = error.headers if isinstance(error, HttpError) else ()
    return SasquatchError(code, _OWN_WORDS.get(type(error)) or str(error), headers)


def answer(error: Exception) -> Response:
    """The response to `error`, with Retry-After where trying again soon may help."""
    explained = explain(error)
    status = CODES[explained.code].status
    headers = explained.headers
    if status == 503:
        headers = (*headers, (b"retry-after", b"%d" % limits.RETRY_SECONDS))
    return Response(status, msgspec.json.encode(_ErrorBody(explained.view)), headers=headers)
