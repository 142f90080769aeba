"""The errors about message batches; `errors` has them, too."""

from forq_trio.model.forq_error import CallerError, NotFound


class MessageBatchNotFound(NotFound, code="not_found.batch"):
    """There is no batch of that id, or it has ended and is forgotten"""


class MessageBatchExists(CallerError, code="conflict.batch_exists", status=409):
    """There is another batch of that id already"""


class MessageBatchEnded(CallerError, code="conflict.batch_ended", status=409):
    """The batch has ended, so nothing can be added to it"""


class MessageBatchFull(CallerError, code="conflict.batch_full", status=409):
    """The batch would have more than 1,000,000 members"""


class MessageBatchTooDeep(CallerError, code="conflict.batch_too_deep", status=409):
    """The batch would be inside of more than 7 others, each inside the next"""


class TooManyMessageBatches(CallerError, code="conflict.too_many_batches", status=409):
    """As many batches as are allowed have not ended, in all or of one access token, or their messages are too long"""
