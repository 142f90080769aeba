"""The errors of Amazon SQS: the shape of each, the code that older SDKs read, and its status.

A client of the JSON protocol reads `__type`, and the code of the query protocol from a header, because the service is
`awsQueryCompatible`. Texts are those that clients and their tests know from AWS.
"""

from typing import NamedTuple


class Shape(NamedTuple):
    """An error of the service model."""

    name: str  # `__type`, without its namespace
    code: str  # in the query protocol
    status: int = 400


_PREFIX = "AWS.SimpleQueueService."

QUEUE_DOES_NOT_EXIST = Shape("QueueDoesNotExist", _PREFIX + "NonExistentQueue")
QUEUE_NAME_EXISTS = Shape("QueueNameExists", "QueueAlreadyExists")
PURGE_IN_PROGRESS = Shape("PurgeQueueInProgress", _PREFIX + "PurgeQueueInProgress", 403)
EMPTY_BATCH = Shape("EmptyBatchRequest", _PREFIX + "EmptyBatchRequest")
TOO_MANY_ENTRIES = Shape("TooManyEntriesInBatchRequest", _PREFIX + "TooManyEntriesInBatchRequest")
IDS_NOT_DISTINCT = Shape("BatchEntryIdsNotDistinct", _PREFIX + "BatchEntryIdsNotDistinct")
INVALID_ENTRY_ID = Shape("InvalidBatchEntryId", _PREFIX + "InvalidBatchEntryId")
BATCH_TOO_LONG = Shape("BatchRequestTooLong", _PREFIX + "BatchRequestTooLong")
INVALID_ATTRIBUTE_NAME = Shape("InvalidAttributeName", "InvalidAttributeName")
INVALID_ATTRIBUTE_VALUE = Shape("InvalidAttributeValue", "InvalidAttributeValue")
INVALID_PARAMETER = Shape("InvalidParameterValueException", "InvalidParameterValue")
MISSING_PARAMETER = Shape("MissingRequiredParameterException", "MissingParameter")
INVALID_RECEIPT = Shape("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid")
NOT_IN_FLIGHT = Shape("MessageNotInflight", _PREFIX + "MessageNotInflight")
INVALID_CONTENTS = Shape("InvalidMessageContents", "InvalidMessageContents")
RESOURCE_NOT_FOUND = Shape("ResourceNotFoundException", "ResourceNotFoundException", 404)
OVER_LIMIT = Shape("OverLimit", "OverLimit", 403)
UNSUPPORTED_OPERATION = Shape("UnsupportedOperation", _PREFIX + "UnsupportedOperation")
UNKNOWN_OPERATION = Shape("UnknownOperationException", "InvalidAction")
MALFORMED = Shape("SerializationException", "MalformedInput")
TOO_LARGE = Shape("RequestEntityTooLargeException", "RequestEntityTooLarge", 413)
INVALID_ADDRESS = Shape("InvalidAddress", "InvalidAddress")
THROTTLED = Shape("RequestThrottled", "RequestThrottled", 403)
ACCESS_DENIED = Shape("AccessDeniedException", "AccessDenied", 403)
NO_CREDENTIALS = Shape("MissingAuthenticationTokenException", "MissingAuthenticationToken", 403)
UNKNOWN_KEY = Shape("UnrecognizedClientException", "InvalidClientTokenId", 403)
WRONG_SIGNATURE = Shape("InvalidSignatureException", "SignatureDoesNotMatch", 403)
INCOMPLETE_SIGNATURE = Shape("IncompleteSignatureException", "IncompleteSignature", 403)
EXPIRED_SIGNATURE = Shape("InvalidSignatureException", "RequestExpired", 403)
UNAVAILABLE = Shape("ServiceUnavailableException", "ServiceUnavailable", 503)
INTERNAL_FAILURE = Shape("InternalFailure", "InternalFailure", 500)


class SqsError(Exception):
    """Raised while a request is read or carried out: the answer is this error."""

    def __init__(self, shape: Shape, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(message)
        self.shape = shape
        self.message = message
        self.headers = headers

    @property
    def is_senders_fault(self) -> bool:
        return self.shape.status < 500

    @property
    def fault(self) -> str:
        """Whose fault it is, as answers call it."""
        return "Sender" if self.is_senders_fault else "Receiver"


class UnknownQueue(SqsError):
    """Raised for a queue that this server does not know. Another one may have made it a moment ago."""


def no_such_queue() -> UnknownQueue:
    """The queue of the request does not exist."""
    return UnknownQueue(QUEUE_DOES_NOT_EXIST, "The specified queue does not exist.")


def missing(parameter: str) -> SqsError:
    """A parameter that the operation needs is absent."""
    return SqsError(MISSING_PARAMETER, f"The request must contain the parameter {parameter}.")


def invalid(parameter: str, value: object, reason: str) -> SqsError:
    """A parameter has a value that it may not have. reason: a sentence."""
    return SqsError(
        INVALID_PARAMETER, f"Value {shown(value)} for parameter {parameter} is invalid. Reason: {reason}"
    )


def not_of_this_type(parameter: str, value: object) -> SqsError:
    """A parameter that only FIFO queues have, or only standard ones."""
    reason = "The request include parameter that is not valid for this queue type."
    return invalid(parameter, value, reason)


def shown(value: object) -> str:
    """A value of a request in a message: not longer than needed to find it."""
    text = str(value)
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"


_SHOWN_MAX = 256
