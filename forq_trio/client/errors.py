"""The errors of the clients: the server refuses, cannot be reached, or answers something else than the API."""

_MEANINGS = {
    "bad_request.body.invalid": "the request's body is not what the server expects",
    "bad_request.body.content.exceeds_limit": "the content is longer than 256 KiB of UTF-8",
    "bad_request.body.processAfter.in_past": "processAfter lies in the past",
    "bad_request.body.processAfter.too_far": "processAfter lies more than 366 days ahead",
    "bad_request.body.processAfter.with_delayMs": "a message has either processAfter or delayMs, not both",
    "bad_request.body.unknown_field": "the server does not know a member of the request",
    "bad_request.body.attributes.invalid": "at most 10 attributes, names of 1 to 64 characters, values of up to 1,024",
    "bad_request.body.group.invalid": "a group has 1 to 128 characters",
    "bad_request.body.deduplicationId.invalid": "a deduplication id has 1 to 128 characters",
    "bad_request.body.deadLetterQueue.invalid": "the dead-letter queue's name is not the name of a queue",
    "bad_request.queue.invalid_name": "a queue's name is 1 to 64 characters of A-Z a-z 0-9 . _ -",
    "bad_request.queue.produce_to_dlq": "messages cannot be sent to a dead-letter queue",
    "bad_request.messageId.invalid": "the message id is not a UUID",
    "bad_request.receipt.invalid": "the receipt does not have the form of a receipt",
    "bad_request.receipt.missing": "the server wants a receipt for every ack and nack",
    "bad_request.dlq_only_operation": "this can only be done to a dead-letter queue",
    "not_found.message": "there is no such message, or the receipt is no longer the current one",
    "bad_request.body.too_many_messages": "a batch holds at most 1,000 messages",
    "bad_request.out_of_range": "a number lies outside its range",
    "bad_request.max.out_of_range": "max has to be 1 to 100",
    "bad_request.waitMs.out_of_range": "waitMs has to be 0 to 30,000",
    "bad_request.leaseMs.out_of_range": "a lease has to be 0 to 12 hours",
    "bad_request.delayMs.out_of_range": "a delay has to be 0 to 12 hours, a sent message's 0 to 366 days",
    "bad_request.reason.out_of_range": "a reason has at most 1,024 characters",
    "bad_request.receipts.out_of_range": "at most 1,000 receipts fit into one request",
    "bad_request.limit.out_of_range": "limit has to be 1 to 100",
    "bad_request.ids.out_of_range": "at most 1,000 ids fit into one request",
    "bad_request.query.unknown_parameter": "the server does not know a parameter of the query",
    "bad_request.content_encoding.unknown": "the server takes no compressed requests",
    "bad_request.attribute.invalid": "an attribute to look for is not written key:value",
    "bad_request.priority.out_of_range": "a priority has to be 0 to 1,000",
    "bad_request.ttlMs.out_of_range": "a time to live has to be 1 ms to 366 days",
    "bad_request.maxAttempts.out_of_range": "attempts have to be 1 to 1,000",
    "bad_request.deduplicationWindowMs.out_of_range": "a deduplication window has to be 1 ms to 12 hours",
    "bad_request.order.invalid": "order has to be fifo or shuffle",
    "bad_request.peek.invalid": "peek has to be true or false",
    "bad_request.token.name": "a token's name is 1 to 64 characters of A-Z a-z 0-9 . _ -",
    "bad_request.token.scopes": "the scopes are not valid",
    "bad_request.token.queues": "the pattern of queue names is not valid",
    "bad_request.token.expiresAt": "the token's end is not valid",
    "not_found.token": "there is no token of this name",
    "conflict.token_exists": "there is a token of this name already",
    "conflict.too_many_tokens": "there are as many tokens as are allowed; revoke some first",
    "conflict.queue_not_empty": "the queue still holds messages; purge it first",
    "not_found.redrive": "there is no such redrive of this queue",
    "forq.queue_full": "the queue holds as many messages or bytes as its settings allow",
    "forq.storage_full": "the disk of the server is full: nothing can be sent until it has space; receiving goes on",
    "forq.storage_lost": "a file of the server's database was moved or removed: nothing can be sent; receiving goes on",
    "forq.too_many_redrives": "as many redrives run as are allowed at once; try again when one has ended",
    "not_found.path": "the server has nothing at this path",
    "method_not_allowed": "the path does not know this method",
    "forq.stopping": "the server is shutting down",
    "forq.read_timeout": "a read took too long and was given up",
    "unauthorized": "the server does not accept the secret",
    "forbidden": "the token does not allow this on this queue; it lacks the scope",
    "too_many_requests": "too many requests with a wrong secret came from this address; wait a minute",
    "forq.overloaded": "the server has more work waiting than it accepts; try again shortly",
    "forq.unhealthy": "the server's database does not work",
    "internal": "the server met an error of its own; its log tells more",
}
_SETTING_INVALID = "bad_request.settings."


def meaning(code: str) -> str:
    """An API code in words; the code itself if it is not known here."""
    if code.startswith(_SETTING_INVALID):
        return "a setting is not valid"
    return _MEANINGS.get(code, code)


class ForqClientError(Exception):
    """Base of all errors of the clients."""


class ForqApiError(ForqClientError):
    """The server refused. status: HTTP's; code: the API's, None when the answer did not come from Forq.

    field: the part of the request to blame, a path ($.priority) into its JSON or the name of a parameter or header;
    None for none. message: what is wrong, in the server's words.
    """

    def __init__(
        self, status: int, code: str | None, field: str | None = None, message: str | None = None
    ) -> None:
        super().__init__(status, code, field, message)
        self.status = status
        self.code = code
        self.field = field
        self.message = message

    def __str__(self) -> str:
        if self.code is None:
            return f"the server, or something before it, answered HTTP {self.status}"
        words = self.message or meaning(self.code)
        answer = str(self.status) if words == self.code else f"{self.status} {self.code}"
        blamed = "" if self.field is None else f" at {self.field}"
        return f"{words} ({answer}{blamed})"


class ForqUnreachable(ForqClientError):
    """No answer came. sent: False if the request certainly did not reach the server."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class ForqProtocolError(ForqClientError):
    """The answer is not one of Forq's: probably the URL belongs to another service."""
