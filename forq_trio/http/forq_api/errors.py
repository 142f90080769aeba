"""Forq's error table: the code of each error of the queue and of HTTP, and what it blames. Statuses are in `codes`."""

from forq_trio.http.errors import (
    ForeignSite,
    HttpError,
    LockedOut,
    MethodNotAllowed,
    PathNotFound,
    Unauthorized,
    UnknownEncoding,
    UnknownParameter,
)
from forq_trio.http.forq_api import codes
from forq_trio.http.forq_api.body_errors import did_you_mean
from forq_trio.http.forq_api.refusals import Refused, answer, forqs_answer, shortened
from forq_trio.http.message import Request, Response
from forq_trio.model import errors
from forq_trio.wire.errors import RECEIPT_HEADER

CODE_BY_ERROR: dict[type[errors.ForqError], str] = {
    errors.InvalidQueueName: codes.QUEUE_NAME_INVALID,
    errors.ProduceToDeadLetterQueue: codes.PRODUCE_TO_DLQ,
    errors.ContentTooLarge: codes.BODY_TOO_LARGE,
    errors.InvalidContent: codes.BODY_INVALID,
    errors.ProcessAfterInPast: codes.PROCESS_AFTER_IN_PAST,
    errors.ProcessAfterTooFar: codes.PROCESS_AFTER_TOO_FAR,
    errors.MalformedReceipt: codes.RECEIPT_INVALID,
    errors.MalformedMessageId: codes.MESSAGE_ID_INVALID,
    errors.OutOfRange: codes.OUT_OF_RANGE,
    errors.InvalidAttributes: codes.ATTRIBUTES_INVALID,
    errors.QueueNotEmpty: codes.QUEUE_NOT_EMPTY,
    errors.DeadLettersOnly: codes.DLQ_ONLY,
    errors.MessageNotFound: codes.MESSAGE_NOT_FOUND,
    errors.RedriveNotFound: codes.REDRIVE_NOT_FOUND,
    errors.TokenExists: codes.TOKEN_EXISTS,
    errors.TooManyTokens: codes.TOO_MANY_TOKENS,
    errors.Overloaded: codes.OVERLOADED,
    errors.QueueFull: codes.QUEUE_FULL,
    errors.TooManyRedrives: codes.TOO_MANY_REDRIVES,
    errors.Stopping: codes.STOPPING,
    errors.StorageUnavailable: codes.UNHEALTHY,
    errors.StorageFull: codes.STORAGE_FULL,
    errors.StorageLost: codes.STORAGE_LOST,
    errors.CommandRefused: codes.UNHEALTHY,
    errors.OutcomeUnknown: codes.INTERNAL,
    errors.ReadDeadlineExceeded: codes.READ_TIMEOUT,
    errors.StorageOpenError: codes.INTERNAL,
}

CODE_BY_HTTP_ERROR: dict[type[HttpError], str] = {
    Unauthorized: codes.UNAUTHORIZED,
    LockedOut: codes.TOO_MANY_REQUESTS,
    ForeignSite: codes.FORBIDDEN,
    PathNotFound: codes.PATH_NOT_FOUND,
    MethodNotAllowed: codes.METHOD_NOT_ALLOWED,
    UnknownParameter: codes.QUERY_UNKNOWN,
    UnknownEncoding: codes.ENCODING_UNKNOWN,
}

CODE_BY_MEMBER: dict[tuple[type[errors.ForqError], str], str] = {
    (errors.OutOfRange, "priority"): codes.PRIORITY_OUT_OF_RANGE,
    (errors.OutOfRange, "delay_ms"): codes.DELAY_OUT_OF_RANGE,
    (errors.OutOfRange, "ttl_ms"): codes.TTL_OUT_OF_RANGE,
    (errors.OutOfRange, "max_attempts"): codes.MAX_ATTEMPTS_OUT_OF_RANGE,
    (errors.OutOfRange, "deduplication_window_ms"): codes.DEDUPLICATION_WINDOW_OUT_OF_RANGE,
    (errors.OutOfRange, "process_after_ms"): codes.PROCESS_AFTER_WITH_DELAY,
    (errors.OutOfRange, "deduplication_id"): codes.DEDUPLICATION_ID_INVALID,
    (errors.OutOfRange, "group"): codes.GROUP_INVALID,
    (errors.InvalidQueueName, "dead_letter_queue"): codes.DEAD_LETTER_QUEUE_INVALID,
}
"""The codes of errors about a single member of the request, where the member has a code of its own."""

MEMBER_BY_ERROR: dict[type[errors.ForqError], str] = {
    errors.InvalidQueueName: "queue",
    errors.ProduceToDeadLetterQueue: "queue",
    errors.DeadLettersOnly: "queue",
    errors.MalformedMessageId: "messageId",
    errors.MalformedReceipt: RECEIPT_HEADER,
}
"""The parameter of the path, or the header, that an error is about which names no member of the body."""

_NAMES = {"process_after_ms": "processAfter"}


def answer_error(error: Exception, request: Request) -> Response:
    """The answer of our own routes to an error; raises errors that the tables do not have."""
    return answer(explain(error, request))


def answer_forqs_error(error: Exception, request: Request) -> Response:
    """The answer of Forq's own routes to an error; raises errors that the tables do not have."""
    return forqs_answer(explain(error, request), request)


def explain(error: Exception, request: Request) -> Refused:
    """What is wrong, in words; raises errors that the tables do not have."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, HttpError):
        return _http_refusal(error, request)
    if isinstance(error, errors.CallerError):
        return caller_refusal(error)
    if not isinstance(error, errors.ForqError) or type(error) not in CODE_BY_ERROR:
        raise error
    return Refused(CODE_BY_ERROR[type(error)])  # its own words are for the log


def caller_refusal(error: errors.CallerError) -> Refused:
    """What a caller did wrong; raises errors that the tables do not have."""
    if isinstance(error, errors.Forbidden):
        return Refused(codes.FORBIDDEN, str(error))
    if isinstance(error, errors.InvalidSetting):
        return Refused(codes.SETTING_INVALID[error.member], str(error), field=f"$.{error.member}")
    if isinstance(error, errors.InvalidToken):
        return Refused(codes.TOKEN_INVALID[error.member], str(error), field=f"$.{error.member}")
    kind = type(error)
    if kind not in CODE_BY_ERROR:
        raise error
    if error.member is None:
        return Refused(CODE_BY_ERROR[kind], str(error), field=MEMBER_BY_ERROR.get(kind))
    name = _in_json(error.member)
    code = CODE_BY_MEMBER.get((kind, error.member)) or CODE_BY_ERROR[kind]
    return Refused(code, str(error).replace(error.member, name), field=f"$.{name}")


def _in_json(name: str) -> str:
    """The name that a member has in JSON."""
    head, *rest = name.split("_")
    return _NAMES.get(name) or head + "".join(word.capitalize() for word in rest)


def _http_refusal(error: HttpError, request: Request) -> Refused:
    code = CODE_BY_HTTP_ERROR[type(error)]
    message = field = None
    match error:
        case ForeignSite():
            message = "without keys the server takes no requests from web pages of other sites"
        case PathNotFound():
            message = f"nothing is served at {shortened(request.path)}"
        case MethodNotAllowed(allow=allow):
            message = f"this path takes {allow}, not {shortened(request.method)}"
        case UnknownParameter(name=name, known=known):
            field = name
            message = f"there is no parameter '{shortened(name)}' here{did_you_mean(name, known)}"
        case UnknownEncoding():
            field = "Content-Encoding"
    return Refused(code, message, field=field, headers=error.headers)
