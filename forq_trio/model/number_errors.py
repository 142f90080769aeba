"""The errors about numbers that are bounded, which callers can make smaller; `errors` has them, too."""

from forq_trio.model.forq_error import CallerError


class TooManyConsumers(CallerError, code="conflict.too_many_consumers", status=409):
    """There are as many consumers as are allowed; delete some first"""


class TooManyQueues(CallerError, code="conflict.too_many_queues", status=409):
    """The token has made as many queues as one may; delete some first"""


class TooManyTokens(CallerError, code="conflict.too_many_tokens", status=409):
    """There are as many tokens as are allowed, and none has expired; revoke some first"""


class TooManyWorkers(CallerError, code="conflict.too_many_workers", status=409):
    """As many workers as are allowed have made themselves known, in all or of one access token"""
