"""Results of handlers with `keep_result`: how they are written and read, and the errors of who waits for one."""

from functools import reduce
from operator import or_
from types import UnionType
from typing import Any, Protocol, Union, cast, get_args, get_origin

from forq_trio.model import limits
from forq_trio.model.durations import Duration, ms_of
from forq_trio.model.messages.receipts import ReceiptResult
from forq_trio.model.results.types import HOW, AckResult, MessageResult
from forq_trio.worker.outcomes import Outcome, Settlement
from forq_trio.worker.payloads import Payload
from forq_trio.worker.source import Source


class JobFailed(Exception):
    """A message ended without a result: it is a dead letter, or was discarded, cancelled or deleted, or it expired.

    Of an end before the wait that is not stored nothing is known: see `ResultGone`, and docs/results.md.

    state: how it ended, as in `MessageResult`. last_error: why it was discarded or cancelled, or why its last attempt
    failed, as of when the wait began where ends are not stored; None if there is no such reason.
    """

    def __init__(self, message_id: str, state: str, last_error: str | None) -> None:
        super().__init__(message_id, state, last_error)
        self.message_id = message_id
        self.state = state
        self.last_error = last_error

    def __str__(self) -> str:
        why = f": {self.last_error}" if self.last_error else ""
        return f"the message {self.message_id} {HOW[self.state]}{why}"


class ResultGone(Exception):
    """There is no result of a message: it is no longer stored, the message ended without one before the wait,
    or there was no such message"""


class ResultSource(Protocol):
    """A `Broker` or an `AsyncForqClient`, which document the methods; not tables of an application."""

    async def ack(
        self, queue: str, receipts: list[str], *, result: AckResult | None = ...
    ) -> list[ReceiptResult]: ...

    async def message_result(self, queue: str, message_id: str, *, wait_ms: int = ...) -> MessageResult: ...


class ResultCodec:
    """Writes what a handler returns, by its annotation, and reads it.

    Raises like `Payload`; TypeError and ValueError for a `keep` that is no such time.
    """

    def __init__(self, returns: Any, keep: Duration) -> None:
        self._payload = Payload(_without_outcomes(returns))
        self._keep_ms = _stored_ms(keep)
        self.read = self._payload.decode

    def settlement(self, result: object) -> Settlement:
        """The ack with this result. Raises ValueError for one that is too large, and what `Payload` raises."""
        content = self._payload.encode(result)
        if "\0" in content:
            raise ValueError("it has the character U+0000, which not every database can store")
        size = len(content.encode())
        if size > limits.RESULT_BYTES_MAX:
            raise ValueError(f"it has {size:,} bytes, and at most {limits.RESULT_BYTES_MAX:,} are stored")
        return Settlement("ack", result=AckResult(content, self._keep_ms))


def _without_outcomes(returns: Any) -> Any:
    """The type of the results of a handler that may return an outcome, too: `Size` of `Size | Discard`."""
    if get_origin(returns) not in (Union, UnionType):
        return returns
    results = [
        each for each in get_args(returns) if not (isinstance(each, type) and issubclass(each, Outcome))
    ]
    return reduce(or_, results) if results else returns


def _stored_ms(keep: Duration) -> int:
    """How long to store a result. Raises TypeError, and ValueError for what is no such time."""
    stored_ms = ms_of(keep)
    if not 1 <= stored_ms <= limits.RESULT_STORED_MS_MAX:
        raise ValueError(f"1 ms to 7 d, not {keep!r}")
    return stored_ms


def stores_results(source: Source) -> bool:
    """Whether a source stores results: all but tables of an application."""
    return hasattr(source, "message_result")


async def ack_with_result(
    source: Source, queue: str, receipts: list[str], result: AckResult
) -> list[ReceiptResult]:
    """Acknowledge messages that share a result."""
    return await cast("ResultSource", source).ack(queue, receipts, result=result)


def content_of(known: MessageResult) -> str:
    """The result of a message that has ended. Raises JobFailed and ResultGone."""
    if known.state != "acked":
        raise JobFailed(known.id, known.state, known.last_error)
    if known.result is None:
        raise ResultGone(f"the message {known.id} was acknowledged without a result")
    return known.result
