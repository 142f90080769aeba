"""The errors of the queue, as one tree: the broker raises them, a server answers with them, clients raise them again.

`CallerError` is the caller's fault, and repeating the same call cannot help; `ServiceError` is ours, and a later try
may succeed. The class of an error declares everything about it: with `code=` in the class statement a server answers
with that code; the docstring is the sentence that says why. Forq's API, its OpenAPI document, the clients and
docs/reference/http-errors.md follow from it. Another dialect has its own table of codes.
"""

from forq_trio.model.client_errors import ClientClosed as ClientClosed
from forq_trio.model.client_errors import ForqProtocolError as ForqProtocolError
from forq_trio.model.client_errors import InvalidSecret as InvalidSecret
from forq_trio.model.client_errors import InvalidServerUrl as InvalidServerUrl
from forq_trio.model.consumers.errors import ConsumerFenced as ConsumerFenced
from forq_trio.model.consumers.errors import ConsumerNotFound as ConsumerNotFound
from forq_trio.model.consumers.errors import LeaseGone as LeaseGone
from forq_trio.model.consumers.errors import LeaseOutOfOrder as LeaseOutOfOrder
from forq_trio.model.consumers.errors import LeasesFull as LeasesFull
from forq_trio.model.consumers.errors import OtherLease as OtherLease
from forq_trio.model.declared import ValueKind
from forq_trio.model.error_names import in_python
from forq_trio.model.forq_error import KINDS
from forq_trio.model.forq_error import CallerError as CallerError
from forq_trio.model.forq_error import ForqError as ForqError
from forq_trio.model.forq_error import NotFound as NotFound
from forq_trio.model.forq_error import ServiceError as ServiceError
from forq_trio.model.message_batches.errors import MessageBatchEnded as MessageBatchEnded
from forq_trio.model.message_batches.errors import MessageBatchExists as MessageBatchExists
from forq_trio.model.message_batches.errors import MessageBatchFull as MessageBatchFull
from forq_trio.model.message_batches.errors import MessageBatchNotFound as MessageBatchNotFound
from forq_trio.model.message_batches.errors import MessageBatchTooDeep as MessageBatchTooDeep
from forq_trio.model.message_batches.errors import TooManyMessageBatches as TooManyMessageBatches
from forq_trio.model.messages.new_message import OPTIONS
from forq_trio.model.number_errors import TooManyConsumers as TooManyConsumers
from forq_trio.model.number_errors import TooManyQueues as TooManyQueues
from forq_trio.model.number_errors import TooManyTokens as TooManyTokens
from forq_trio.model.number_errors import TooManyWorkers as TooManyWorkers
from forq_trio.model.queues.table_errors import DatabaseRefused as DatabaseRefused
from forq_trio.model.queues.table_errors import InvalidPayload as InvalidPayload
from forq_trio.model.queues.table_errors import InvalidTableName as InvalidTableName
from forq_trio.model.queues.table_errors import NoTable as NoTable
from forq_trio.model.queues.table_errors import QueueBound as QueueBound
from forq_trio.model.queues.table_errors import QueueNotBound as QueueNotBound
from forq_trio.model.queues.table_errors import WrongTable as WrongTable
from forq_trio.model.request_errors import InvalidContent as InvalidContent
from forq_trio.model.request_errors import InvalidJson as InvalidJson
from forq_trio.model.request_errors import InvalidRequest as InvalidRequest
from forq_trio.model.schedules.errors import InvalidCron as InvalidCron
from forq_trio.model.schedules.errors import InvalidSchedule as InvalidSchedule
from forq_trio.model.schedules.errors import ScheduleExists as ScheduleExists
from forq_trio.model.schedules.errors import ScheduleNotFound as ScheduleNotFound
from forq_trio.model.schedules.errors import TooManySchedules as TooManySchedules


class ZeroCharacter(InvalidContent):
    """The character U+0000 is in it, which this server's database (PostgreSQL) cannot store"""


class ContentTooLarge(
    CallerError,
    code="bad_request.body.content.exceeds_limit",
    means="A content is longer than 256 KiB of UTF-8; with status 413: the whole body is too large.",
):
    """The content is longer than 256 KiB of UTF-8"""


class ProcessAfterInPast(
    CallerError,
    code="bad_request.body.processAfter.in_past",
    means="processAfter lies more than 10 seconds in the past.",
):
    """The due time, process_after, lies more than 10 seconds in the past"""


class ProcessAfterTooFar(
    CallerError,
    code="bad_request.body.processAfter.too_far",
    means="processAfter lies more than 366 days ahead.",
):
    """The due time, process_after, lies more than 366 days ahead"""


class UnknownMember(InvalidRequest, code="bad_request.body.unknown_field"):
    """The body has a member that is not known here; `field` names it"""


class InvalidAttributes(CallerError, code="bad_request.body.attributes.invalid"):
    """Attributes are at most 10, with keys of 1 to 64 characters and values of at most 1,024"""


class InvalidQueueName(
    CallerError,
    code="bad_request.queue.invalid_name",
    means="The queue name is not 1 to 64 characters of A-Z a-z 0-9 . _ - (besides a suffix -dlq).",
    members={
        "deadLetterQueue": (
            "bad_request.body.deadLetterQueue.invalid",
            "deadLetterQueue is not the name of a queue, nor empty.",
        )
    },
):
    """The queue name is not 1-64 characters of A-Z a-z 0-9 . _ -"""


class ProduceToDeadLetterQueue(CallerError, code="bad_request.queue.produce_to_dlq"):
    """Messages reach a dead-letter queue only by failing or expiring, never by being sent there"""


class DeadLettersOnly(CallerError, code="bad_request.dlq_only_operation"):
    """Only the messages of a dead-letter queue can be redriven, edited or deleted"""


class InvalidName(CallerError, code="bad_request.name.invalid"):
    """The name of a stage, an app or an outbox is not 1-128 characters of A-Z a-z 0-9 . _ : -"""


class InvalidKey(CallerError, code="bad_request.key.invalid"):
    """A key has 1 to 200 characters, none of them NUL or a half of a surrogate pair"""


class InvalidKind(CallerError, code="bad_request.kind.invalid"):
    """The kind of a key has at most 100 characters, none of them NUL or a half of a surrogate pair"""


class WrongPhrase(CallerError, code="bad_request.confirm.invalid"):
    """The confirmation is not the name of the queue; nothing was removed"""


class MalformedMessageId(CallerError, code="bad_request.messageId.invalid"):
    """The message id is not a UUID"""


class MalformedReceipt(CallerError, code="bad_request.receipt.invalid"):
    """The receipt does not have the form of a receipt"""


class ReceiptMissing(InvalidRequest, code="bad_request.receipt.missing"):
    """This server demands the X-Forq-Receipt header (FORQ_REQUIRE_RECEIPT)"""


_RANGES = {
    each.json_name: f"{each.json_name} is not {each.low:,} to {each.high:,}."
    for each in OPTIONS.values()
    if each.kind in (ValueKind.COUNT, ValueKind.DURATION)
} | {
    "max": "max is not 1 to 100.",
    "maxWaitMs": "maxWaitMs is not 1 to 31,622,400,000.",
    "waitMs": "waitMs is not 0 to 30,000.",
    "leaseMs": "leaseMs is not 0 to 43,200,000.",
    "delayMs": "delayMs is not 0 to 2,592,000,000 (of a send: to 31,622,400,000).",
    "reason": "reason is longer than 1,024 characters.",
    "receipts": "There are more than 1,000 receipts.",
    "result": "The result is longer than 64 KiB of UTF-8, or 1 MiB for all receipts that share it.",
    "keepMs": "keepMs is not 1 to 604,800,000.",
    "ids": "There are more than 1,000 ids.",
    "limit": (
        "limit is not an integer of 1 to 100 (of a list of queues: 1,000; of an export, or of events: 10,000)."
    ),
}
_OTHER_RANGES = {
    "processAfter": (
        "bad_request.body.processAfter.with_delayMs",
        "processAfter and delayMs exclude each other.",
    ),
    "messages": (
        "bad_request.body.too_many_messages",
        "A batch holds more than 1,000 messages, or a page of a stage more than 10,000.",
    ),
} | {
    each.json_name: (
        f"bad_request.body.{each.json_name}.invalid",
        f"{each.json_name} is not {each.low} to {each.high} characters.",
    )
    for each in OPTIONS.values()
    if each.kind is ValueKind.TEXT
}


class OutOfRange(
    CallerError,
    code="bad_request.out_of_range",
    members=_OTHER_RANGES
    | {name: (f"bad_request.{name}.out_of_range", meaning) for name, meaning in _RANGES.items()},
):
    """A number lies outside its documented range"""


class InvalidSetting(CallerError):
    """A setting of a queue is not valid; the field names it"""

    # queue_settings declares the members: a client that configures no queues need not import it.

    code = InvalidRequest.code
    nested = True


class InvalidToken(
    CallerError,
    members={
        name: (
            f"bad_request.token.{name}",
            f"The member {name} of a new access token is not valid; `message` says why.",
        )
        for name in ("name", "scopes", "queues", "expiresAt")
    },
):
    """A member of a new access token is not valid; the field names it"""

    code = InvalidRequest.code


class InvalidParameter(
    InvalidRequest,
    members={
        "attribute": ("bad_request.attribute.invalid", "An attribute to look for is not written key:value."),
        "order": ("bad_request.order.invalid", "order is neither fifo nor shuffle."),
        "peek": ("bad_request.peek.invalid", "peek is neither true nor false."),
        "onlyNew": ("bad_request.onlyNew.invalid", "onlyNew is neither true nor false."),
        "onceMore": (
            "bad_request.onceMore.invalid",
            "onceMore is neither true nor false, or goes with revision.",
        ),
        "outcome": (
            "bad_request.outcome.invalid",
            "The outcome must be acked, discarded, expired, deleted or cancelled.",
        ),
    },
):
    """A parameter of the query is not one of its values; the field names it"""


class UnknownQueryParameter(InvalidRequest, code="bad_request.query.unknown_parameter"):
    """The query has a parameter that is not known here; `field` names it"""


class UnknownContentEncoding(InvalidRequest, code="bad_request.content_encoding.unknown", status=415):
    """The body is compressed (Content-Encoding); send it uncompressed"""


class WrongKey(CallerError, code="unauthorized", status=401):
    """The key is missing or wrong, or its token expired or was revoked"""


class Forbidden(CallerError, code="forbidden", status=403):
    """The token lacks the scope that `message` names, or has it for other queues only"""


class TooManyWrongKeys(CallerError, code="too_many_requests", status=429):
    """Too many wrong keys came from this address; Retry-After says for how many seconds it is locked out"""


class UnknownPath(NotFound, code="not_found.path"):
    """Nothing is served at this path"""


class UnknownMethod(CallerError, code="method_not_allowed", status=405):
    """The path does not know this method; the Allow header lists those it knows"""


class QueueNotFound(NotFound, code="not_found.queue"):
    """There is no such queue: nobody has sent to it or set anything for it"""


class MessageNotFound(
    NotFound,
    code="not_found.message",
    means="There is no such message, or the receipt is no longer its current one.",
):
    """There is no such message"""


class ReceiptNotCurrent(MessageNotFound):
    """The receipt is no longer current: its message was settled, removed, changed by its key, or delivered again"""


class KeyNotFound(
    NotFound,
    code="not_found.key",
    means="No message with this key and kind is pending or, if a revision is given, none with that revision.",
):
    """No message with this key is pending"""


class RedriveNotFound(NotFound, code="not_found.redrive"):
    """There is no such redrive, or it is forgotten"""


class TokenNotFound(NotFound, code="not_found.token"):
    """There is no access token of that name"""


class PublicationNotFound(NotFound, code="not_found.publication"):
    """The app has published nothing, or so long ago that it is forgotten"""


class QueueNotEmpty(CallerError, code="conflict.queue_not_empty", status=409):
    """The queue still holds messages; purge it first"""


class MessageInFlight(CallerError, code="conflict.message_in_flight", status=409):
    """The message is in flight: a consumer has it until it is settled or its lease ends"""


class KeyExists(CallerError, code="conflict.key_exists", status=409):
    """A message with this key is pending already"""


class RedriveStateConflict(CallerError, code="conflict.redrive_state", status=409):
    """The state of the redrive does not allow that; the message names it"""


class TokenExists(CallerError, code="conflict.token_exists", status=409):
    """There is a token of that name already"""


class StageMissing(CallerError, code="forq.stage_missing", status=409):
    """A stage is not there with exactly the pages that were named; nothing was published"""


class AppInUse(CallerError, code="conflict.app_in_use", status=409):
    """An app of this name writes queues that the key may not write, or published this version to some of these queues
    only; nothing was published: take another name, or delete the app"""


class HistoryOff(CallerError, code="forq.history_off", status=409):
    """The history is off and empty; FORQ_HISTORY=on turns it on"""


class HistoryGone(CallerError, code="forq.history_gone", status=410):
    """Retention has removed messages after that history id; the range of the history says where it begins"""


class EventsOff(CallerError, code="forq.events_off", status=409):
    """The server keeps no lifecycle events; FORQ_EVENTS=on turns them on"""


class EventsGone(CallerError, code="forq.events_gone", status=410):
    """Retention has removed events after that id; go on from the first that is stored, or from 0"""


class BackupRunning(CallerError, code="conflict.backup_running", status=409):
    """A backup is being made already"""


class BackupImpossible(CallerError, code="conflict.in_memory", status=409):
    """This server keeps its messages in memory or in a temporary file: there is nothing to back up"""


class CompactionImpossible(CallerError, code="conflict.not_compactable", status=409):
    """The file cannot give free pages back as it is: stop the server, and run `forq compact --db` once"""


class OutcomeUnknown(ServiceError, code="forq.outcome_unknown", status=500):
    """The database failed while it committed: the change may or may not be stored"""


class InternalError(OutcomeUnknown, code="internal"):
    """An error of the server; whether the change was made is not known"""


class StorageUnavailable(ServiceError, code="forq.unhealthy"):
    """The database cannot do this at the moment; nothing was changed"""


class CommandRefused(ServiceError):
    """The database refused this one command; nothing was changed by it"""

    code = StorageUnavailable.code


class StorageFull(StorageUnavailable, code="forq.storage_full"):
    """The server's disk is full, or nearly so; nothing was stored. What is stored can be consumed"""


class StorageLost(StorageUnavailable, code="forq.storage_lost"):
    """A file of the database was removed, moved, replaced or linked under the running server; nothing was stored. What
    is stored can be consumed"""


class FeatureUnavailable(CallerError, code="bad_request.feature_unavailable"):
    """The server's database does not have this feature: docs/postgres.md says what PostgreSQL has instead"""


class Overloaded(ServiceError, code="forq.overloaded"):
    """More work is waiting than the server will hold; try again after Retry-After seconds"""


class Stopping(ServiceError, code="forq.stopping"):
    """The server is shutting down; try again after Retry-After seconds"""


class ReadDeadlineExceeded(ServiceError, code="forq.read_timeout"):
    """A read took too long and was given up"""


class QueueFull(ServiceError, code="forq.queue_full"):
    """The queue holds as many messages or bytes as its settings allow; nothing was stored"""


class StagingFull(ServiceError, code="forq.staging_full"):
    """As many stages, or bytes in them, wait to be published as are allowed; nothing was staged"""


class PublicationUnfinished(ServiceError, code="forq.publication_unfinished", status=504):
    """It is published, but its messages cannot enter their queues now; repeat the request to wait on"""


class TooManyApps(ServiceError, code="forq.too_many_apps"):
    """As many apps are remembered as are allowed; nothing was published"""


class TooManyOutboxes(ServiceError, code="forq.too_many_outboxes"):
    """As many outboxes are remembered as are allowed; nothing was stored"""


class TooManyRedrives(ServiceError, code="forq.too_many_redrives"):
    """As many redrives run as are allowed; try again when one has ended"""


class StorageOpenError(ForqError):
    """The database cannot be opened; the message says why in one sentence"""

    code = "forq.storage_open"


class ForqUnreachable(ServiceError):
    """A client got no answer. sent: False if the request certainly did not reach the server. lasting: another try will
    not have one either."""

    code = "client.unreachable"

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        code: str | None = None,
        sent: bool = True,
        lasting: bool = False,
    ) -> None:
        super().__init__(message, field=field, code=code)
        self.sent = sent
        self.lasting = lasting


def error_of(code: str, *, field: str | None = None, message: str | None = None) -> ForqError:
    """The error for a code in a server's answer: the one that the broker raises for the same reason.

    field: the part of the request at fault, as a path into its JSON ($.priority) or the name of a parameter or header.
    message: what is wrong, in the server's words.
    """
    kind = KINDS.get(code) or _family(code.split("."))
    if field is None:
        return kind(message, code=code)
    member = field.removeprefix("$.")
    if message is not None:
        message = in_python(message, member, nested=kind.nested)
    return kind(message, field=member, code=code)


def _family(words: list[str]) -> type[ForqError]:
    """The class for an unknown code."""
    return _FAMILIES.get(".".join(words[:2])) or _FAMILIES.get(words[0], ServiceError)


_FAMILIES: dict[str, type[ForqError]] = {
    "bad_request": InvalidRequest,
    "bad_request.settings": InvalidSetting,
    "not_found": NotFound,
    "conflict": CallerError,
    "request_timeout": CallerError,
}
"""The classes for unknown codes, by their first words; all others are the server's fault."""


def names() -> list[str]:
    """The names of all errors."""
    return [
        name for name, each in globals().items() if isinstance(each, type) and issubclass(each, ForqError)
    ]
