"""The error of SQS for each error of the server."""

from http import HTTPStatus

from forq_trio.http.errors import ForeignSite, HttpError, LockedOut, UnknownEncoding
from forq_trio.http.sqs_api.errors import (
    ACCESS_DENIED,
    INTERNAL_FAILURE,
    INVALID_PARAMETER,
    MALFORMED,
    THROTTLED,
    TOO_LARGE,
    UNAVAILABLE,
    UNKNOWN_KEY,
    Shape,
    SqsError,
    no_such_queue,
)
from forq_trio.model import errors, limits
from forq_trio.telemetry.log import LogEvent, log

_SHAPES: dict[type[Exception], Shape] = {
    errors.Forbidden: ACCESS_DENIED,
    errors.TooManyQueues: ACCESS_DENIED,
    ForeignSite: ACCESS_DENIED,
    errors.WrongKey: UNKNOWN_KEY,
    UnknownEncoding: MALFORMED,
}
_RETRY = ((b"retry-after", b"%d" % limits.RETRY_SECONDS),)
_FAILED = "The request failed because of an error of the server."
_OF_TRANSPORT = {
    413: (TOO_LARGE, "The request is longer than the server takes."),
    500: (INTERNAL_FAILURE, _FAILED),
    503: (UNAVAILABLE, "The server has no space for the request. Try again."),
}


def explain(error: Exception) -> SqsError:
    """The answer to `error`. One that no caller causes is logged, and answered as an internal failure."""
    if isinstance(error, SqsError):
        return error
    if isinstance(error, errors.QueueNotFound):
        return no_such_queue()
    kind = error.kind if isinstance(error, HttpError) else type(error)
    shape = _SHAPES.get(type(error)) or _SHAPES.get(kind)
    headers = error.headers if isinstance(error, HttpError) else ()
    if isinstance(error, LockedOut):
        text = "Too many requests of this address had wrong keys or signatures. A right one passes at once."
        return SqsError(THROTTLED, text, headers)
    if shape is None and issubclass(kind, errors.ForqError):
        if kind.status == 503:
            return SqsError(UNAVAILABLE, str(error), _RETRY)
        if issubclass(kind, errors.CallerError):
            shape = INVALID_PARAMETER
    if shape is None:
        log(LogEvent.REQUEST_FAILED, exception=error)
        return SqsError(INTERNAL_FAILURE, _FAILED)
    return SqsError(shape, str(error) or kind.__name__, headers)


def refusal(status: int) -> SqsError:
    """The answer where the transport refuses a request that was not read, with this status."""
    known = MALFORMED._replace(status=status), f"The request was refused: {HTTPStatus(status).phrase}."
    shape, text = _OF_TRANSPORT.get(status, known)
    return SqsError(shape, text, _RETRY if status == 503 else ())
