"""What a client raises: the server refuses, cannot be reached, or gives an answer nobody understands."""

_MEANINGS = {
    "bad_request.body.invalid": "the request's body is not what the server expects",
    "bad_request.body.content.exceeds_limit": "the content is longer than 256 KiB of UTF-8",
    "bad_request.body.processAfter.in_past": "processAfter lies in the past",
    "bad_request.body.processAfter.too_far": "processAfter lies more than 366 days ahead",
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
    "bad_request.delayMs.out_of_range": "a delay has to be 0 to 12 hours",
    "bad_request.reason.out_of_range": "a reason has at most 1,024 characters",
    "bad_request.receipts.out_of_range": "at most 1,000 receipts fit into one request",
    "bad_request.limit.out_of_range": "limit has to be 1 to 100",
    "not_found.path": "the server has nothing at this path",
    "method_not_allowed": "the path does not know this method",
    "forq.stopping": "the server is shutting down",
    "forq.read_timeout": "a read took too long and was given up",
    "unauthorized": "the server does not accept the secret",
    "too_many_requests": "too many requests with a wrong secret came from this address; wait a minute",
    "forq.overloaded": "the server has more work waiting than it will hold; try again shortly",
    "forq.unhealthy": "the server's database does not work",
    "internal": "the server met an error of its own; its log tells more",
}


def meaning(code: str) -> str:
    """An API code in words; the code itself if it is not known here."""
    return _MEANINGS.get(code, code)


class ForqClientError(Exception):
    """Base of all that the clients raise."""


class ForqApiError(ForqClientError):
    """The server refused. status: HTTP's; code: the API's, None when the answer did not come from Forq."""

    def __init__(self, status: int, code: str | None) -> None:
        super().__init__(status, code)
        self.status = status
        self.code = code

    def __str__(self) -> str:
        if self.code is None:
            return f"the server, or something before it, answered HTTP {self.status}"
        words = meaning(self.code)
        return f"{words} ({self.status})" if words == self.code else f"{words} ({self.status} {self.code})"


class ForqUnreachable(ForqClientError):
    """No answer came. sent: False when the request certainly never reached the server: nothing happened."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class ForqProtocolError(ForqClientError):
    """The answer is not one of Forq's: probably the URL belongs to another service."""
