"""Builds the requests that send messages, and reads their results. No I/O in here."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from forq_trio.model.checks import check_texts
from forq_trio.model.errors import ForqError, ForqProtocolError, error_of
from forq_trio.model.messages.bodies import SendResult
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced

ResultT = TypeVar("ResultT", bound="_Result")
DoneT = TypeVar("DoneT")


class _Result(Protocol):
    """What became of one of many messages. code: None for one that was taken."""

    @property
    def code(self) -> str | None: ...

    @property
    def field(self) -> str | None: ...

    @property
    def message(self) -> str | None: ...


def batch_of(messages: Sequence[NewMessage]) -> dict[str, Sequence[NewMessage]]:
    """The request that sends messages. Raises TypeError for what is no NewMessage, and a text that is not a str."""
    for message in messages:
        check_texts(message)
    return {"messages": messages}


def read_send_results(results: Sequence[SendResult], expected: int) -> list[Produced | ForqError]:
    """The results of the `expected` messages that were sent. Raises ForqProtocolError."""
    return read_results(results, expected, _read_sent)


def read_results(
    results: Sequence[ResultT], expected: int, read: Callable[[ResultT], DoneT]
) -> list[DoneT | ForqError]:
    """What became of each of the `expected` messages, read by `read`. Raises ForqProtocolError."""
    if len(results) != expected:
        raise ForqProtocolError("the answer does not have one result for each message")
    return [
        read(each) if each.code is None else error_of(each.code, field=each.field, message=each.message)
        for each in results
    ]


def _read_sent(result: SendResult) -> Produced:
    if result.id is None or result.sequence is None:
        raise ForqProtocolError("the answer has neither an id nor a code for a message")
    return Produced(result.id, result.sequence, result.duplicate)
