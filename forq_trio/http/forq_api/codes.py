"""The error codes of Forq's API, with their statuses and meanings.

The table is closed: tests compare the OpenAPI document and docs/api.md with it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from forq_trio.model import limits
from forq_trio.model.errors import InvalidSetting

UNAUTHORIZED = "unauthorized"
TOO_MANY_REQUESTS = "too_many_requests"
PATH_NOT_FOUND = "not_found.path"
FORBIDDEN = "forbidden"
METHOD_NOT_ALLOWED = "method_not_allowed"
INTERNAL = "internal"
UNHEALTHY = "forq.unhealthy"
STORAGE_FULL = "forq.storage_full"
STORAGE_LOST = "forq.storage_lost"
OVERLOADED = "forq.overloaded"
STOPPING = "forq.stopping"
READ_TIMEOUT = "forq.read_timeout"
QUEUE_FULL = "forq.queue_full"
LEASES_FULL = "forq.leases_full"
CONSUMER_NOT_FOUND = "forq.consumer_not_found"
CONSUMER_FENCED = "forq.consumer_fenced"
LEASE_OUT_OF_ORDER = "forq.lease_out_of_order"
LEASE_GONE = "forq.lease_gone"
TOO_MANY_CONSUMERS = "conflict.too_many_consumers"
TOO_MANY_REDRIVES = "forq.too_many_redrives"
STAGING_FULL = "forq.staging_full"
PUBLICATION_UNFINISHED = "forq.publication_unfinished"
TOO_MANY_APPS = "forq.too_many_apps"
APP_IN_USE = "conflict.app_in_use"
STAGE_MISSING = "forq.stage_missing"
PUBLICATION_NOT_FOUND = "not_found.publication"
NAME_INVALID = "bad_request.name.invalid"
EVENTS_OFF = "forq.events_off"
EVENTS_GONE = "forq.events_gone"
BODY_INVALID = "bad_request.body.invalid"
BODY_TOO_LARGE = "bad_request.body.content.exceeds_limit"
TOO_MANY_MESSAGES = "bad_request.body.too_many_messages"
PROCESS_AFTER_IN_PAST = "bad_request.body.processAfter.in_past"
PROCESS_AFTER_TOO_FAR = "bad_request.body.processAfter.too_far"
PROCESS_AFTER_WITH_DELAY = "bad_request.body.processAfter.with_delayMs"
UNKNOWN_FIELD = "bad_request.body.unknown_field"
ATTRIBUTES_INVALID = "bad_request.body.attributes.invalid"
GROUP_INVALID = "bad_request.body.group.invalid"
DEDUPLICATION_ID_INVALID = "bad_request.body.deduplicationId.invalid"
DEAD_LETTER_QUEUE_INVALID = "bad_request.body.deadLetterQueue.invalid"
QUEUE_NAME_INVALID = "bad_request.queue.invalid_name"
PRODUCE_TO_DLQ = "bad_request.queue.produce_to_dlq"
DLQ_ONLY = "bad_request.dlq_only_operation"
MESSAGE_ID_INVALID = "bad_request.messageId.invalid"
RECEIPT_INVALID = "bad_request.receipt.invalid"
RECEIPT_MISSING = "bad_request.receipt.missing"
MESSAGE_NOT_FOUND = "not_found.message"
QUEUE_NOT_FOUND = "not_found.queue"
MESSAGE_IN_FLIGHT = "conflict.message_in_flight"
REDRIVE_NOT_FOUND = "not_found.redrive"
OUT_OF_RANGE = "bad_request.out_of_range"
MAX_OUT_OF_RANGE = "bad_request.max.out_of_range"
WAIT_OUT_OF_RANGE = "bad_request.waitMs.out_of_range"
LEASE_OUT_OF_RANGE = "bad_request.leaseMs.out_of_range"
DELAY_OUT_OF_RANGE = "bad_request.delayMs.out_of_range"
REASON_OUT_OF_RANGE = "bad_request.reason.out_of_range"
RECEIPTS_OUT_OF_RANGE = "bad_request.receipts.out_of_range"
IDS_OUT_OF_RANGE = "bad_request.ids.out_of_range"
QUERY_UNKNOWN = "bad_request.query.unknown_parameter"
ENCODING_UNKNOWN = "bad_request.content_encoding.unknown"
ATTRIBUTE_INVALID = "bad_request.attribute.invalid"
LIMIT_OUT_OF_RANGE = "bad_request.limit.out_of_range"
TOKEN_INVALID = {
    member: f"bad_request.token.{member}" for member in ("name", "scopes", "queues", "expiresAt")
}
"""The codes of invalid members of a new access token, by member."""
TOKEN_NOT_FOUND = "not_found.token"
TOKEN_EXISTS = "conflict.token_exists"
TOO_MANY_TOKENS = "conflict.too_many_tokens"
BACKUP_RUNNING = "conflict.backup_running"
IN_MEMORY = "conflict.in_memory"
NOT_COMPACTABLE = "conflict.not_compactable"
PRIORITY_OUT_OF_RANGE = "bad_request.priority.out_of_range"
TTL_OUT_OF_RANGE = "bad_request.ttlMs.out_of_range"
MAX_ATTEMPTS_OUT_OF_RANGE = "bad_request.maxAttempts.out_of_range"
DEDUPLICATION_WINDOW_OUT_OF_RANGE = "bad_request.deduplicationWindowMs.out_of_range"
ORDER_INVALID = "bad_request.order.invalid"
PEEK_INVALID = "bad_request.peek.invalid"
HISTORY_OFF = "forq.history_off"
HISTORY_GONE = "forq.history_gone"
OUTCOME_INVALID = "bad_request.outcome.invalid"
QUEUE_NOT_EMPTY = "conflict.queue_not_empty"
REDRIVE_STATE = "conflict.redrive_state"
SETTING_INVALID = InvalidSetting.field_codes
"""The codes of invalid settings, by setting."""


class Code(NamedTuple):
    """The usual status of a code and when it is answered: for the documentation, and where nobody says more."""

    status: int
    meaning: str


CODES = {
    BODY_INVALID: Code(400, "The body is not UTF-8, not JSON, or a member is missing or of the wrong type."),
    BODY_TOO_LARGE: Code(
        400, "A content is longer than 256 KiB of UTF-8; with status 413: the whole body is too large."
    ),
    TOO_MANY_MESSAGES: Code(
        400, "A batch holds more than 1,000 messages, or a page of a stage more than 10,000."
    ),
    PROCESS_AFTER_IN_PAST: Code(400, "processAfter lies more than 10 seconds in the past."),
    PROCESS_AFTER_TOO_FAR: Code(400, "processAfter lies more than 366 days ahead."),
    PROCESS_AFTER_WITH_DELAY: Code(400, "processAfter and delayMs exclude each other."),
    UNKNOWN_FIELD: Code(400, "The body has a member that is not known here; `field` names it."),
    ATTRIBUTES_INVALID: Code(
        400, "Attributes are at most 10, with keys of 1 to 64 characters and values of at most 1,024."
    ),
    GROUP_INVALID: Code(400, "group is not 1 to 128 characters."),
    DEDUPLICATION_ID_INVALID: Code(400, "deduplicationId is not 1 to 128 characters."),
    DEAD_LETTER_QUEUE_INVALID: Code(400, "deadLetterQueue is not the name of a queue, nor empty."),
    QUEUE_NAME_INVALID: Code(
        400, "The queue name is not 1 to 64 characters of A-Z a-z 0-9 . _ - (besides a suffix -dlq)."
    ),
    PRODUCE_TO_DLQ: Code(400, "Messages cannot be sent to a queue whose name ends in -dlq."),
    DLQ_ONLY: Code(400, "The operation exists for dead-letter queues only."),
    NAME_INVALID: Code(
        400, "The name of a stage or an app is not 1 to 128 characters of A-Z a-z 0-9 . _ : -."
    ),
    MESSAGE_ID_INVALID: Code(400, "The message id is not a UUID."),
    RECEIPT_INVALID: Code(400, "A receipt does not have the form of a receipt."),
    RECEIPT_MISSING: Code(400, "This server demands the X-Forq-Receipt header (FORQ_REQUIRE_RECEIPT)."),
    OUT_OF_RANGE: Code(400, "A number lies outside its documented range."),
    MAX_OUT_OF_RANGE: Code(400, "max is not 1 to 100."),
    WAIT_OUT_OF_RANGE: Code(400, "waitMs is not 0 to 30,000."),
    LEASE_OUT_OF_RANGE: Code(400, "leaseMs is not 0 to 43,200,000."),
    DELAY_OUT_OF_RANGE: Code(400, "delayMs is not 0 to 43,200,000 (of a send: to 31,622,400,000)."),
    REASON_OUT_OF_RANGE: Code(400, "reason is longer than 1,024 characters."),
    RECEIPTS_OUT_OF_RANGE: Code(400, "There are more than 1,000 receipts."),
    IDS_OUT_OF_RANGE: Code(400, "There are more than 1,000 ids."),
    QUERY_UNKNOWN: Code(400, "The query has a parameter that is not known here; `field` names it."),
    ENCODING_UNKNOWN: Code(415, "The body is compressed (Content-Encoding); it has to come as it is."),
    ATTRIBUTE_INVALID: Code(400, "An attribute to look for is not written key:value."),
    LIMIT_OUT_OF_RANGE: Code(
        400,
        "limit is not an integer of 1 to 100 (of a list of queues: 1,000; of an export, or of events: 10,000).",
    ),
    PRIORITY_OUT_OF_RANGE: Code(400, "priority is not 0 to 1,000."),
    TTL_OUT_OF_RANGE: Code(400, "ttlMs is not 1 to 31,622,400,000."),
    MAX_ATTEMPTS_OUT_OF_RANGE: Code(400, "maxAttempts is not 1 to 1,000."),
    DEDUPLICATION_WINDOW_OUT_OF_RANGE: Code(400, "deduplicationWindowMs is not 1 to 43,200,000."),
    ORDER_INVALID: Code(400, "order is neither fifo nor shuffle."),
    PEEK_INVALID: Code(400, "peek is neither true nor false."),
    **{
        code: Code(400, f"The setting {member} is not valid; `message` says why.")
        for member, code in SETTING_INVALID.items()
    },
    **{
        code: Code(400, f"The member {member} of a new access token is not valid; `message` says why.")
        for member, code in TOKEN_INVALID.items()
    },
    UNAUTHORIZED: Code(401, "The key is missing or wrong, or its token expired or was revoked."),
    FORBIDDEN: Code(403, "The token lacks the scope that `message` names, or has it for other queues only."),
    MESSAGE_NOT_FOUND: Code(404, "There is no such message, or the receipt is no longer its current one."),
    QUEUE_NOT_FOUND: Code(404, "There is no such queue: nobody has sent to it or set anything for it."),
    REDRIVE_NOT_FOUND: Code(404, "There is no such redrive of this queue, or it is forgotten."),
    CONSUMER_NOT_FOUND: Code(404, "There is no such consumer of this queue; open it first."),
    TOKEN_NOT_FOUND: Code(404, "There is no access token of this name."),
    PUBLICATION_NOT_FOUND: Code(404, "The app has published nothing, or is forgotten."),
    PATH_NOT_FOUND: Code(404, "Nothing is served at this path."),
    METHOD_NOT_ALLOWED: Code(
        405, "The path does not know this method; the Allow header lists those it knows."
    ),
    HISTORY_OFF: Code(409, "The history is off, and nothing is kept in it."),
    HISTORY_GONE: Code(
        410, "Retention has removed what comes after `after`; the range says where the history begins."
    ),
    OUTCOME_INVALID: Code(400, "The outcome must be acked, discarded, expired, deleted or cancelled."),
    MESSAGE_IN_FLIGHT: Code(
        409, "A consumer has the message, so it cannot be cancelled: it may be when it comes back."
    ),
    QUEUE_NOT_EMPTY: Code(409, "The queue still holds messages; purge it first."),
    REDRIVE_STATE: Code(409, "The redrive is in a state in which that cannot be done; the message names it."),
    TOKEN_EXISTS: Code(409, "There is an access token of this name already."),
    TOO_MANY_TOKENS: Code(409, "There are 1,000 access tokens; revoke some first."),
    STAGE_MISSING: Code(
        409, "A stage is not there with exactly the pages that were named; nothing was published."
    ),
    TOO_MANY_CONSUMERS: Code(
        409, "There are 1,000 consumers of pipelines, or 250 of this key; delete some first."
    ),
    APP_IN_USE: Code(409, "The app writes queues that the key may not write; nothing was published."),
    CONSUMER_FENCED: Code(
        409, "The consumer was opened again since; only its latest generation may do that."
    ),
    LEASE_OUT_OF_ORDER: Code(
        409, "It is not the turn of this lease, or it is not complete; the message says which number is next."
    ),
    LEASE_GONE: Code(410, "The lease was given back, or acknowledged so long ago that it is no longer kept."),
    BACKUP_RUNNING: Code(409, "A backup is being made already."),
    NOT_COMPACTABLE: Code(
        409,
        "The file cannot give free pages back as it is: stop the server, and run `forq compact --db` once.",
    ),
    IN_MEMORY: Code(409, "The server keeps nothing (FORQ_MEMORY), so there is nothing to back up."),
    EVENTS_OFF: Code(409, "The server keeps no lifecycle events (FORQ_EVENTS)."),
    EVENTS_GONE: Code(410, "The events behind `after` were removed by retention."),
    TOO_MANY_REQUESTS: Code(
        429,
        "Too many wrong keys came from this address; Retry-After says for how many seconds it is locked out.",
    ),
    INTERNAL: Code(500, "An error of the server; whether the change was made is not known."),
    UNHEALTHY: Code(503, "The database does not do it at the moment; nothing was changed."),
    STORAGE_FULL: Code(
        503, "The server's disk is full, or nearly so; nothing was stored. What is stored can be consumed."
    ),
    STORAGE_LOST: Code(
        503,
        "A file of the database was removed, moved, replaced or linked under the running server; nothing was stored. "
        "What is stored can be consumed.",
    ),
    OVERLOADED: Code(
        503, "More work is waiting than the server will hold; try again after Retry-After seconds."
    ),
    STOPPING: Code(503, "The server is shutting down; try again after Retry-After seconds."),
    READ_TIMEOUT: Code(503, "A read took too long and was given up."),
    QUEUE_FULL: Code(
        503, "The queue holds as many messages or bytes as its settings allow; nothing was stored."
    ),
    STAGING_FULL: Code(
        503, "As many stages, or bytes in them, wait to be published as may at once; nothing was staged."
    ),
    PUBLICATION_UNFINISHED: Code(
        504, "It is published, but its messages cannot enter their queues now; repeat the request to wait on."
    ),
    TOO_MANY_APPS: Code(503, "As many apps have published as are remembered; nothing was published."),
    LEASES_FULL: Code(503, "The leases of all consumers have as many bytes as they may; nothing was leased."),
    TOO_MANY_REDRIVES: Code(503, "As many redrives run as may at once; try again when one has ended."),
}

RETRY_SECONDS = {
    UNHEALTHY: 1,
    STORAGE_FULL: 1,
    STORAGE_LOST: 1,
    OVERLOADED: 1,
    STOPPING: 1,
    READ_TIMEOUT: 1,
    QUEUE_FULL: limits.QUEUE_FULL_RETRY_SECONDS,
    STAGING_FULL: 1,
    TOO_MANY_APPS: 1,
    LEASES_FULL: 1,
    TOO_MANY_REDRIVES: 1,
}
"""What Retry-After says, by code."""

READER = (INTERNAL, UNHEALTHY, STOPPING, STORAGE_LOST, READ_TIMEOUT)
"""What every read may answer."""

TRANSPORT_CODES: Mapping[int, tuple[str, str]] = {
    400: ("bad_request.http.malformed", "The request is no valid HTTP."),
    408: ("request_timeout", "The head did not arrive within 10 seconds, or the body not within 45."),
    413: (BODY_TOO_LARGE, "The body is longer than the server takes."),
    414: ("bad_request.uri.too_long", "The path and query are too long."),
    417: ("bad_request.expectation.unknown", "`Expect` says something other than `100-continue`."),
    431: ("bad_request.headers.too_large", "The headers are longer than 16 KiB, or more than 100."),
    500: (INTERNAL, CODES[INTERNAL].meaning),
    501: (
        "bad_request.http.not_implemented",
        "The transfer encoding is not known, or the method is CONNECT.",
    ),
    503: (OVERLOADED, "There are too many connections, or too many bodies on their way."),
    505: ("bad_request.http.version_not_supported", "The HTTP version is not known."),
}
"""Code and meaning of the answers that the transport gives before a request is routed, by status."""
