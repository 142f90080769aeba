"""A bound on the memory for answers that their clients have not read yet, over all connections of a server.

A client that does not read its answers has the server hold them until SEND_SECONDS_MAX cuts it. While such answers use
up the bound, others are not given: their clients are told to try again, or, where the request has changed something,
that its outcome is not known. Long answers leave a part of the bound to short ones, so that a few clients with long
answers do not stop the sends and acks of all others. The messages that an answer was made of are gone when it is sent.
"""

from forq_trio.http.message import Response
from forq_trio.http.transport.config import Refuse
from forq_trio.model import limits

_REPEATABLE = frozenset(("GET", "HEAD"))


class AnswerBudget:
    """How many of `bytes_max` bytes are in use. For one thread; does not wait."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._long_bytes_max = bytes_max - bytes_max // 4
        self.bytes_used = 0

    def admit(self, method: str, path: str, response: Response, refuse: Refuse) -> Response:
        """Return `response`, or the answer instead where it does not fit; counted until `release`.

        method, path: the request's. A response that is longer than the whole bound fits when it is the only one. What
        one that does not fit brought is given back by its `on_unsent`.
        """
        body_bytes = len(response.body)
        is_short = body_bytes <= limits.SHORT_ANSWER_BYTES_MAX
        bytes_max = self._bytes_max if is_short else self._long_bytes_max
        if self.bytes_used and self.bytes_used + body_bytes > bytes_max:
            response = _instead(method, path, response, refuse)
        self.bytes_used += len(response.body)
        return response

    def release(self, body_bytes: int) -> None:
        """Count an answer no longer: it was sent, or its client is gone."""
        self.bytes_used -= body_bytes


def _instead(method: str, path: str, response: Response, refuse: Refuse) -> Response:
    """503, try again, where the request has changed nothing or that is undone; else 500, the outcome is not known."""
    if response.on_unsent is not None:
        response.on_unsent()
        return refuse(503, method, path)
    return refuse(503 if method in _REPEATABLE else 500, method, path)
