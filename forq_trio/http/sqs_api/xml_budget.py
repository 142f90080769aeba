"""Answers in XML, made in slices, because escaping long messages would hold up other requests.

Rules
- In one pass of the event loop one answer gets its next slice, however many long ones are made at once.
- What is made of all of them has a bound, with a share for each holder (model/budget.py). An answer that does not fit
  is refused, unless it is the only one. The first slice does not wait and does not count: most answers have no other.
"""

from collections.abc import Iterator

import trio

from forq_trio.http.message import Response
from forq_trio.http.sqs_api.query_protocol import QueryProtocol
from forq_trio.http.sqs_api.shapes import Wire
from forq_trio.model import limits
from forq_trio.model.budget import Budget
from forq_trio.model.errors import Overloaded
from forq_trio.model.holders import HOLDER


class XmlAnswers:
    """Makes the answers of the query protocol. budget: the bytes of those that wait for their next slice."""

    def __init__(self) -> None:
        self.budget = Budget(limits.SQS_XML_BYTES_MAX)
        self._slicing = trio.Lock()

    async def make(self, operation: str, result: Wire, request_id: str) -> Response:
        """The answer. Raises Overloaded."""
        slices = _slices(QueryProtocol.parts(operation, result, request_id))
        made, holder, counted = [next(slices)], HOLDER.get(), 0
        try:
            while len(made[-1]) >= limits.READ_SLICE_BYTES:
                counted += len(made[-1])
                if not self.budget.change(holder, len(made[-1])) and self.budget.used > counted:
                    raise Overloaded("too many long answers are made at once")
                async with self._slicing:
                    made.append(next(slices))
            return QueryProtocol.answer(made, request_id)
        finally:
            self.budget.change(holder, -counted)


def _slices(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The parts, joined to slices of READ_SLICE_BYTES and little more; only the last slice is shorter."""
    waiting: list[bytes] = []
    length = 0
    for part in parts:
        waiting.append(part)
        length += len(part)
        if length >= limits.READ_SLICE_BYTES:
            yield b"".join(waiting)
            waiting, length = [], 0
    yield b"".join(waiting)
