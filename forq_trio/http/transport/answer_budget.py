"""A bound on the memory for answers that their clients have not read yet, over all connections of a server.

If a client does not read its answers, the server holds them until SEND_SECONDS_MAX ends the connection. While such
answers use up the bound, other requests get 503, try again, or 500, outcome unknown, if they have changed something.
Long answers leave a part of the bound to short ones, so that a few clients with long answers do not stop the sends and
acks of all others. Only the bytes of an answer count: the messages that it was made of are freed before it is sent.
"""

from collections.abc import Mapping

from forq_trio.http.message import Response
from forq_trio.http.transport.config import Refuse
from forq_trio.model import limits
from forq_trio.model.budget import Budget, Share
from forq_trio.model.holders import Holder

_REPEATABLE = frozenset(("GET", "HEAD"))


class AnswerBudget(Budget):
    """Counts how many of `size` bytes each holder uses."""

    __slots__ = ()

    def admit(
        self,
        holder: Holder,
        method: str,
        path: str,
        headers: Mapping[bytes, bytes],
        response: Response,
        refuse: Refuse,
        own_bytes: int = 0,
    ) -> Response:
        """Return `response`, or a short answer instead if it does not fit; counts it until `release`.

        holder, method, path, headers: the request's. own_bytes: the size of the connection's other answers. A response
        that is longer than the bound, or than a connection's share, fits if it is the only one. If a response does not
        fit, its `on_unsent` is called, which gives back the messages in it. Then the answer is 503, try again; it is
        500, outcome unknown, if the request may have changed something.
        """
        body_bytes = len(response.body)
        if not self.used:
            self._add(holder, body_bytes)
            return response
        if self.change(holder, body_bytes) and self._leaves_space(body_bytes, own_bytes):
            return response
        self.release(holder, body_bytes)
        if response.on_unsent is not None:
            response.on_unsent()
        is_undone = response.on_unsent is not None or method in _REPEATABLE
        response = refuse(503 if is_undone else 500, method, path, headers)
        self.change(holder, len(response.body))
        return response

    def _leaves_space(self, body_bytes: int, own_bytes: int) -> bool:
        """Whether a long answer leaves a quarter to short ones, and the connection's answers leave enough to others."""
        if own_bytes and own_bytes + body_bytes > self.size // limits.ANSWERS_CONNECTION_PART:
            return self.refuse(Share.CONNECTION)
        is_short = body_bytes <= limits.SHORT_ANSWER_BYTES_MAX
        return is_short or self.used <= self.size - self.size // 4 or self.refuse(Share.ALL)

    def release(self, holder: Holder, body_bytes: int) -> None:
        """Stop counting an answer: it was sent, or its client is gone."""
        self.change(holder, -body_bytes)
