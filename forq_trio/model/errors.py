"""The errors of the queue, as one tree: the broker raises them, and the clients, for the same reasons.

`CallerError` is the caller's fault, and repeating the same call cannot help; `ServiceError` is ours, and a later try
may succeed. Every error that a server answers has a code of Forq's API, by its class and the member that it is about.
No HTTP in here: each dialect has a table of statuses, and may have codes of its own.
"""

from collections.abc import Mapping
from typing import ClassVar

from forq_trio.model.queue_settings import SETTINGS, Kind


class ForqError(Exception):
    """Base of every error this package raises on purpose. Raised without a message, its docstring is its message.

    code: Forq's word for the reason; field: the member of the request that is wrong, by its name in JSON, None for the
    whole; message: the reason as a sentence. field_codes: the codes of members that have their own.
    """

    code: str = "forq.error"
    field_codes: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self, message: str | None = None, *, field: str | None = None, code: str | None = None
    ) -> None:
        own_words = self.__doc__ or type(self).__name__
        self.message = message or own_words[:1].lower() + own_words[1:]
        super().__init__(self.message)
        self.field = field
        self.code = code or self.field_codes.get(field or "", type(self).code)


class CallerError(ForqError):
    """The request cannot be carried out as it was made"""


class InvalidRequest(CallerError):
    """The request is not one that the queue knows"""

    code = "bad_request.body.invalid"


class InvalidQueueName(CallerError):
    """The queue name is not 1-64 characters of A-Z a-z 0-9 . _ -"""

    code = "bad_request.queue.invalid_name"
    field_codes: ClassVar = {"deadLetterQueue": "bad_request.body.deadLetterQueue.invalid"}


class ProduceToDeadLetterQueue(CallerError):
    """Messages reach a dead-letter queue only by failing or expiring, never by being sent there"""

    code = "bad_request.queue.produce_to_dlq"


class ContentTooLarge(CallerError):
    """The content is longer than 256 KiB of UTF-8"""

    code = "bad_request.body.content.exceeds_limit"


class InvalidContent(InvalidRequest):
    """The content is not text that UTF-8 can carry"""


class ProcessAfterInPast(CallerError):
    """process-after lies in the past"""

    code = "bad_request.body.processAfter.in_past"


class ProcessAfterTooFar(CallerError):
    """process-after lies more than 366 days ahead"""

    code = "bad_request.body.processAfter.too_far"


class MalformedReceipt(CallerError):
    """The receipt does not have the form of a receipt"""

    code = "bad_request.receipt.invalid"


class MalformedMessageId(CallerError):
    """The message id is not a UUID"""

    code = "bad_request.messageId.invalid"


_WITH_RANGE_CODES = (
    "priority",
    "delayMs",
    "ttlMs",
    "maxAttempts",
    "deduplicationWindowMs",
    "max",
    "waitMs",
    "leaseMs",
    "reason",
    "receipts",
    "ids",
    "limit",
)


class OutOfRange(CallerError):
    """A number lies outside its documented range; the message names it"""

    code = "bad_request.out_of_range"
    field_codes: ClassVar = {
        "processAfter": "bad_request.body.processAfter.with_delayMs",
        "deduplicationId": "bad_request.body.deduplicationId.invalid",
        "group": "bad_request.body.group.invalid",
        "messages": "bad_request.body.too_many_messages",
    } | {name: f"bad_request.{name}.out_of_range" for name in _WITH_RANGE_CODES}


class InvalidAttributes(CallerError):
    """Attributes are at most 10 pairs of text: keys of 1 to 64 characters, values of at most 1,024"""

    code = "bad_request.body.attributes.invalid"


class InvalidSetting(CallerError):
    """A setting of a queue is not valid; the field names it"""

    code = "bad_request.body.invalid"
    field_codes: ClassVar = {
        setting.json_name: f"bad_request.settings.{setting.json_name}"
        for setting in SETTINGS.values()
        if setting.kind is not Kind.WORD
    }


class QueueNotEmpty(CallerError):
    """The queue still holds messages; purge it first"""

    code = "conflict.queue_not_empty"


class HistoryOff(CallerError):
    """The history is off, and nothing is kept in it"""

    code = "forq.history_off"


class HistoryGone(CallerError):
    """Retention has removed what was asked for from the history; its range says where it begins"""

    code = "forq.history_gone"


class DeadLettersOnly(CallerError):
    """Only the messages of a dead-letter queue can be redriven, edited or deleted"""

    code = "bad_request.dlq_only_operation"


class NotFound(CallerError):
    """There is no such thing"""

    code = "not_found"


class QueueNotFound(NotFound):
    """There is no such queue: nobody has sent to it or set anything for it"""

    code = "not_found.queue"


class RedriveNotFound(NotFound):
    """There is no such redrive task, or it is forgotten"""

    code = "not_found.redrive"


class RedriveStateConflict(CallerError):
    """The redrive task is in a state in which that cannot be done; the message names it"""

    code = "conflict.redrive_state"


class WrongKey(CallerError):
    """The server does not accept the secret: it is wrong, or its token expired or was revoked"""

    code = "unauthorized"


class TooManyWrongKeys(CallerError):
    """Too many requests with a wrong secret came from this address; wait a minute"""

    code = "too_many_requests"


class Forbidden(CallerError):
    """The token does not allow the request; the message names the scope that is missing"""

    code = "forbidden"


class InvalidToken(CallerError):
    """A member of a new access token is not valid; the field names it"""

    code = "bad_request.body.invalid"
    field_codes: ClassVar = {
        name: f"bad_request.token.{name}" for name in ("name", "scopes", "queues", "expiresAt")
    }


class TokenNotFound(NotFound):
    """There is no access token of that name"""

    code = "not_found.token"


class TokenExists(CallerError):
    """There is a token of that name already"""

    code = "conflict.token_exists"


class TooManyTokens(CallerError):
    """There are as many tokens as are allowed; revoke some first"""

    code = "conflict.too_many_tokens"


class BackupRunning(CallerError):
    """A backup is being made already"""

    code = "conflict.backup_running"


class CompactionImpossible(CallerError):
    """The file cannot give free pages back as it is: stop the server, and run `forq compact --db` once"""

    code = "conflict.not_compactable"


class BackupImpossible(CallerError):
    """This server keeps its messages in memory alone, or in a file that goes with it: there is nothing to back up"""

    code = "conflict.in_memory"


class InvalidName(CallerError):
    """The name of a stage or an app is not 1-128 characters of A-Z a-z 0-9 . _ : -"""

    code = "bad_request.name.invalid"


class StageMissing(CallerError):
    """A stage is not there with exactly the pages that were named: one is missing, or it has ended; nothing was
    published"""

    code = "forq.stage_missing"


class PublicationNotFound(NotFound):
    """The app has published nothing, or so long ago that it is forgotten"""

    code = "not_found.publication"


class MessageNotFound(NotFound):
    """There is no such message"""

    code = "not_found.message"


class MessageInFlight(CallerError):
    """The message is in flight: a consumer has it until it is settled or its lease ends"""

    code = "conflict.message_in_flight"


class ReceiptNotCurrent(MessageNotFound):
    """The receipt is no longer current: its message was settled, removed, or delivered again after its lease ended"""


class ConsumerNotFound(NotFound):
    """There is no such consumer of this queue: open it first"""

    code = "forq.consumer_not_found"


class ConsumerFenced(CallerError):
    """Somebody else has opened the consumer since: only the latest generation may lease and acknowledge"""

    code = "forq.consumer_fenced"


class LeaseOutOfOrder(CallerError):
    """The lease is not the one whose turn it is; the message says which number is"""

    code = "forq.lease_out_of_order"


class LeaseGone(CallerError):
    """The lease can no longer be read: it was given back, or acknowledged some leases ago"""

    code = "forq.lease_gone"


class TooManyConsumers(CallerError):
    """There are as many consumers as are allowed; delete some first"""

    code = "conflict.too_many_consumers"


class EventsOff(CallerError):
    """The server keeps no lifecycle events; FORQ_EVENTS=on turns them on"""

    code = "forq.events_off"


class EventsGone(CallerError):
    """The events behind that one were removed by retention; go on from the first that is kept, or from 0"""

    code = "forq.events_gone"


class ServiceError(ForqError):
    """The service could not do it now"""


class Overloaded(ServiceError):
    """More work is waiting than the service will hold; try again shortly"""

    code = "forq.overloaded"


class QueueFull(ServiceError):
    """The queue holds as many messages or bytes as it may; try again when some are consumed"""

    code = "forq.queue_full"


class StagingFull(ServiceError):
    """As many stages, or bytes in them, wait to be published as may at once; nothing was staged"""

    code = "forq.staging_full"


class PublicationUnfinished(ServiceError):
    """It is published and will be whole, but its messages cannot enter their queues now; repeat the call to wait on"""

    code = "forq.publication_unfinished"


class AppInUse(CallerError):
    """An app of this name writes queues that the key may not write, or published this version to some of these queues
    only; nothing was published: take another name, or delete the app"""

    code = "conflict.app_in_use"


class TooManyApps(ServiceError):
    """As many apps have published as are remembered, none of them for one time only; nothing was published"""

    code = "forq.too_many_apps"


class TooManyRedrives(ServiceError):
    """As many redrive tasks run as may at once; try again when one has ended"""

    code = "forq.too_many_redrives"


class LeasesFull(ServiceError):
    """The pages of all consumers' leases are as many bytes as they may be; try again when some are acknowledged"""

    code = "forq.leases_full"


class Stopping(ServiceError):
    """The service is shutting down"""

    code = "forq.stopping"


class StorageUnavailable(ServiceError):
    """The database refused the operation; nothing was changed"""

    code = "forq.unhealthy"


class StorageFull(StorageUnavailable):
    """The disk is full, or nearly so; nothing was stored"""

    code = "forq.storage_full"


class StorageLost(StorageUnavailable):
    """A file of the database was removed, moved, replaced or linked under the running server; nothing was stored"""

    code = "forq.storage_lost"


class CommandRefused(ServiceError):
    """The database refused this one command; nothing was changed by it"""

    code = "forq.unhealthy"


class OutcomeUnknown(ServiceError):
    """The commit itself failed: the change may or may not be on disk"""

    code = "internal"


class ReadDeadlineExceeded(ServiceError):
    """A read took longer than its deadline and was interrupted"""

    code = "forq.read_timeout"


class StorageOpenError(ForqError):
    """The database cannot be opened; the message says why in one sentence"""

    code = "forq.storage_open"


class ForqUnreachable(ServiceError):
    """A client got no answer. sent: False if the request certainly did not reach the server."""

    code = "client.unreachable"

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        code: str | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(message, field=field, code=code)
        self.sent = sent


class ClientClosed(ForqError):
    """The client was closed before the answer came; what was asked for may be done or not"""

    code = "client.closed"


class ForqProtocolError(ForqError):
    """A client got an answer that is not one of Forq's: probably the URL belongs to another service.

    refused: True if its HTTP status says that the request was not carried out.
    """

    code = "client.protocol"

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        code: str | None = None,
        refused: bool = False,
    ) -> None:
        super().__init__(message, field=field, code=code)
        self.refused = refused
