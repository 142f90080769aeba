"""What can go wrong, as a small tree. No HTTP in here: each dialect maps these classes with a table of its own.

`CallerError` is the caller's fault and repeating the same call cannot help; `ServiceError` is ours, and a later
try may succeed.
"""


class ForqError(Exception):
    """Base of every error this package raises on purpose. Raised without arguments, its docstring is its message."""

    def __str__(self) -> str:
        return super().__str__() or (self.__doc__ or type(self).__name__)


class CallerError(ForqError):
    """The request cannot be carried out as it was made."""


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


class MessageNotFound(CallerError):
    """No such message, or the receipt is no longer the current one"""


class ServiceError(ForqError):
    """The service could not do it now."""


class Overloaded(ServiceError):
    """More work is waiting than the service will hold; try again shortly"""


class Stopping(ServiceError):
    """The service is shutting down"""


class StorageUnavailable(ServiceError):
    """The database refused the operation; nothing was changed"""


class CommandRefused(ServiceError):
    """The database refused this one command; nothing was changed by it"""


class OutcomeUnknown(ServiceError):
    """The commit itself failed: the change may or may not be on disk"""


class ReadDeadlineExceeded(ServiceError):
    """A read took longer than its deadline and was interrupted"""


class StorageOpenError(ForqError):
    """The database cannot be opened; the message says why in one sentence"""
