"""The error codes of Forq's JSON answers `{"code": "..."}`: status, meaning, and a ready-made Response for each.

The table is closed: the OpenAPI document and docs/api.md are checked against it. Dialects with error formats
of their own have tables of their own.
"""

from typing import NamedTuple

import msgspec

from forq_trio.http.message import Response

UNAUTHORIZED = "unauthorized"
TOO_MANY_REQUESTS = "too_many_requests"
PATH_NOT_FOUND = "not_found.path"
METHOD_NOT_ALLOWED = "method_not_allowed"
INTERNAL = "internal"
UNHEALTHY = "forq.unhealthy"
OVERLOADED = "forq.overloaded"
STOPPING = "forq.stopping"
READ_TIMEOUT = "forq.read_timeout"
BODY_INVALID = "bad_request.body.invalid"
BODY_TOO_LARGE = "bad_request.body.content.exceeds_limit"
TOO_MANY_MESSAGES = "bad_request.body.too_many_messages"
PROCESS_AFTER_IN_PAST = "bad_request.body.processAfter.in_past"
PROCESS_AFTER_TOO_FAR = "bad_request.body.processAfter.too_far"
QUEUE_NAME_INVALID = "bad_request.queue.invalid_name"
PRODUCE_TO_DLQ = "bad_request.queue.produce_to_dlq"
DLQ_ONLY = "bad_request.dlq_only_operation"
MESSAGE_ID_INVALID = "bad_request.messageId.invalid"
RECEIPT_INVALID = "bad_request.receipt.invalid"
RECEIPT_MISSING = "bad_request.receipt.missing"
MESSAGE_NOT_FOUND = "not_found.message"
OUT_OF_RANGE = "bad_request.out_of_range"
MAX_OUT_OF_RANGE = "bad_request.max.out_of_range"
WAIT_OUT_OF_RANGE = "bad_request.waitMs.out_of_range"
LEASE_OUT_OF_RANGE = "bad_request.leaseMs.out_of_range"
DELAY_OUT_OF_RANGE = "bad_request.delayMs.out_of_range"
REASON_OUT_OF_RANGE = "bad_request.reason.out_of_range"
RECEIPTS_OUT_OF_RANGE = "bad_request.receipts.out_of_range"
LIMIT_OUT_OF_RANGE = "bad_request.limit.out_of_range"


class Code(NamedTuple):
    """The usual status of a code and, for the documentation, when it is answered."""

    status: int
    meaning: str


CODES = {
    BODY_INVALID: Code(400, "The body is not UTF-8, not JSON, or a member is missing or of the wrong type."),
    BODY_TOO_LARGE: Code(
        400, "A content is longer than 256 KiB of UTF-8; with status 413: the whole body is too large."
    ),
    TOO_MANY_MESSAGES: Code(400, "A batch holds more than 1,000 messages."),
    PROCESS_AFTER_IN_PAST: Code(400, "processAfter lies more than 10 seconds in the past."),
    PROCESS_AFTER_TOO_FAR: Code(400, "processAfter lies more than 366 days ahead."),
    QUEUE_NAME_INVALID: Code(
        400, "The queue name is not 1 to 64 characters of A-Z a-z 0-9 . _ - (besides a suffix -dlq)."
    ),
    PRODUCE_TO_DLQ: Code(400, "Messages cannot be sent to a queue whose name ends in -dlq."),
    DLQ_ONLY: Code(400, "The operation exists for dead-letter queues only."),
    MESSAGE_ID_INVALID: Code(400, "The message id is not a UUID."),
    RECEIPT_INVALID: Code(400, "A receipt does not have the form of a receipt."),
    RECEIPT_MISSING: Code(400, "This server demands the X-Forq-Receipt header (FORQ_REQUIRE_RECEIPT)."),
    OUT_OF_RANGE: Code(400, "A number lies outside its documented range."),
    MAX_OUT_OF_RANGE: Code(400, "max is not 1 to 100."),
    WAIT_OUT_OF_RANGE: Code(400, "waitMs is not 0 to 30,000."),
    LEASE_OUT_OF_RANGE: Code(400, "leaseMs is not 0 to 43,200,000."),
    DELAY_OUT_OF_RANGE: Code(400, "delayMs is not 0 to 43,200,000."),
    REASON_OUT_OF_RANGE: Code(400, "reason is longer than 1,024 characters."),
    RECEIPTS_OUT_OF_RANGE: Code(400, "There are more than 1,000 receipts."),
    LIMIT_OUT_OF_RANGE: Code(400, "limit is not an integer of 1 to 100."),
    UNAUTHORIZED: Code(401, "The X-API-Key header is missing or wrong."),
    MESSAGE_NOT_FOUND: Code(404, "There is no such message, or the receipt is no longer its current one."),
    PATH_NOT_FOUND: Code(404, "Nothing is served at this path."),
    METHOD_NOT_ALLOWED: Code(
        405, "The path does not know this method; the Allow header lists those it knows."
    ),
    TOO_MANY_REQUESTS: Code(
        429,
        "Too many wrong keys came from this address; Retry-After says for how many seconds it is locked out.",
    ),
    INTERNAL: Code(500, "An error of the server; whether the change was made is not known."),
    UNHEALTHY: Code(503, "The database does not do it at the moment; nothing was changed."),
    OVERLOADED: Code(
        503, "More work is waiting than the server will hold; try again after Retry-After seconds."
    ),
    STOPPING: Code(503, "The server is shutting down; try again after Retry-After seconds."),
    READ_TIMEOUT: Code(503, "A read took too long and was given up."),
}

_RETRY_SOON = ((b"retry-after", b"1"),)
_RETRIED_SOON = frozenset({UNHEALTHY, OVERLOADED, STOPPING, READ_TIMEOUT})


def error_body(code: str) -> bytes:
    """The JSON body of an answer with `code`."""
    return msgspec.json.encode({"code": code})


_RESPONSES = {
    code: Response(status, error_body(code), headers=_RETRY_SOON if code in _RETRIED_SOON else ())
    for code, (status, _) in CODES.items()
}
PAYLOAD_TOO_LARGE = Response(413, error_body(BODY_TOO_LARGE))


def error_response(code: str) -> Response:
    """The shared Response of a code of the table; it must not be changed."""
    return _RESPONSES[code]


class Refused(Exception):
    """Raised while a request is read: it is answered with `response` and nothing is done."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


def refused(code: str) -> Refused:
    """The Refused of a code of the table."""
    return Refused(_RESPONSES[code])
