"""Forq's error table: the code of each error of the queue and of HTTP. Statuses are in `codes`."""

from forq_trio.http.errors import (
    ForeignSite,
    HttpError,
    LockedOut,
    MethodNotAllowed,
    PathNotFound,
    Unauthorized,
)
from forq_trio.http.forq_api import codes
from forq_trio.http.forq_api.codes import Refused
from forq_trio.http.message import Response
from forq_trio.model import errors

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


def code_of(error: errors.ForqError) -> str:
    """The code of an error of the tables."""
    code = None
    if isinstance(error, errors.CallerError) and error.member is not None:
        code = CODE_BY_MEMBER.get((type(error), error.member))
    return code or CODE_BY_ERROR[type(error)]


def answer_error(error: Exception) -> Response:
    """The answer to an error raised while a request was read or carried out; raises errors without an entry."""
    if isinstance(error, Refused):
        return error.response
    if isinstance(error, HttpError):
        return _with_headers(codes.error_response(CODE_BY_HTTP_ERROR[type(error)]), error.headers)
    if isinstance(error, errors.Forbidden):
        return codes.error_response(codes.FORBIDDEN, scope=error.scope)
    if isinstance(error, errors.InvalidSetting):
        return _explained(codes.SETTING_INVALID[error.member], error)
    if isinstance(error, errors.InvalidToken):
        return _explained(codes.TOKEN_INVALID[error.member], error)
    if not isinstance(error, errors.ForqError) or type(error) not in CODE_BY_ERROR:
        raise error
    return codes.error_response(code_of(error))


def _with_headers(response: Response, headers: tuple[tuple[bytes, bytes], ...]) -> Response:
    return Response(response.status, response.body, headers=headers) if headers else response


def _explained(code: str, error: errors.InvalidSetting | errors.InvalidToken) -> Response:
    return codes.error_response(code, field=error.member, message=str(error))
