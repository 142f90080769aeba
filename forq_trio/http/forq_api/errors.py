"""Forq's error table: the code each error of the queue is answered with. Statuses are in `http.codes`."""

from forq_trio import errors
from forq_trio.http import codes
from forq_trio.http.codes import Refused
from forq_trio.http.message import Response

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
    errors.MessageNotFound: codes.MESSAGE_NOT_FOUND,
    errors.Overloaded: codes.OVERLOADED,
    errors.Stopping: codes.STOPPING,
    errors.StorageUnavailable: codes.UNHEALTHY,
    errors.CommandRefused: codes.UNHEALTHY,
    errors.OutcomeUnknown: codes.INTERNAL,
    errors.ReadDeadlineExceeded: codes.READ_TIMEOUT,
    errors.StorageOpenError: codes.INTERNAL,
}


def answer_error(error: Exception) -> Response:
    """The answer to an error raised while a request was read or carried out; raises one it does not know."""
    if isinstance(error, Refused):
        return error.response
    code = CODE_BY_ERROR.get(type(error))  # type: ignore[arg-type]
    if code is None:
        raise error
    return codes.error_response(code)
