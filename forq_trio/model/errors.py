"""The errors of the queue, as a small tree. No HTTP in here: each dialect maps these classes by a table of its own.

`CallerError` is the caller's fault, and repeating the same call cannot help; `ServiceError` is ours, and a later try
may succeed.
"""

from typing import Self


class ForqError(Exception):
    """Base of every error this package raises on purpose. Raised without arguments, its docstring is its message."""

    def __str__(self) -> str:
        return super().__str__() or (self.__doc__ or type(self).__name__)


class CallerError(ForqError):
    """The request cannot be carried out as it was made. member: which part of it is wrong, None for the whole."""

    member: str | None = None

    def about(self, member: str | None) -> Self:
        """This error, with the name of the member that it is about."""
        self.member = member
        return self


class InvalidQueueName(CallerError):
    """The queue name is not 1-64 characters of A-Z a-z 0-9 . _ -"""


class ProduceToDeadLetterQueue(CallerError):
    """Messages reach a dead-letter queue only by failing or expiring, never by being sent there"""


class ContentTooLarge(CallerError):
    """The content is longer than 256 KiB of UTF-8"""


class InvalidContent(CallerError):
    """The content is not text that UTF-8 can carry"""


class ProcessAfterInPast(CallerError):
    """process-after lies in the past"""


class ProcessAfterTooFar(CallerError):
    """process-after lies more than 366 days ahead"""


class MalformedReceipt(CallerError):
    """The receipt does not have the form of a receipt"""


class MalformedMessageId(CallerError):
    """The message id is not a UUID"""


class OutOfRange(CallerError):
    """A number lies outside its documented range; the message names it"""


class InvalidAttributes(CallerError):
    """Attributes are at most 10 pairs of text: keys of 1 to 64 characters, values of at most 1,024"""


class InvalidSetting(CallerError):
    """A setting of a queue is not valid. member: its name in JSON."""

    member: str

    def __init__(self, member: str, problem: str) -> None:
        super().__init__(f"{member}: {problem}")
        self.member = member


class QueueNotEmpty(CallerError):
    """The queue still holds messages; purge it first"""


class DeadLettersOnly(CallerError):
    """Only the messages of a dead-letter queue can be redriven, edited or deleted"""


class RedriveNotFound(CallerError):
    """There is no such redrive task, or it ended long ago"""


class Forbidden(CallerError):
    """The token does not allow the request. scope: the scope that is missing."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"the token has not the scope {scope} for this queue")
        self.scope = scope


class InvalidToken(CallerError):
    """A member of a new access token is not valid. member: its name in JSON."""

    member: str

    def __init__(self, member: str, problem: str) -> None:
        super().__init__(f"{member}: {problem}")
        self.member = member


class TokenExists(CallerError):
    """There is a token of that name already"""


class TooManyTokens(CallerError):
    """There are as many tokens as are allowed; revoke some first"""


class MessageNotFound(CallerError):
    """No such message, or the receipt is no longer the current one"""


class ServiceError(ForqError):
    """The service could not do it now."""


class Overloaded(ServiceError):
    """More work is waiting than the service will hold; try again shortly"""


class QueueFull(ServiceError):
    """The queue holds as many messages or bytes as it may; try again when some are consumed"""


class TooManyRedrives(ServiceError):
    """As many redrive tasks run as may at once; try again when one has ended"""


class Stopping(ServiceError):
    """The service is shutting down"""


class StorageUnavailable(ServiceError):
    """The database refused the operation; nothing was changed"""


class StorageFull(StorageUnavailable):
    """The disk is full, or nearly so; nothing was stored"""


class StorageLost(StorageUnavailable):
    """A file of the database was removed, moved, replaced or linked under the running server; nothing was stored"""


class CommandRefused(ServiceError):
    """The database refused this one command; nothing was changed by it"""


class OutcomeUnknown(ServiceError):
    """The commit itself failed: the change may or may not be on disk"""


class ReadDeadlineExceeded(ServiceError):
    """A read took longer than its deadline and was interrupted"""


class StorageOpenError(ForqError):
    """The database cannot be opened; the message says why in one sentence"""
