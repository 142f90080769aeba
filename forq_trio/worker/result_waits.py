"""Waits for the results of messages that a worker, or another process of its application, handles."""

import math
import time
from functools import partial
from typing import TYPE_CHECKING, cast

import anyio

from forq_trio.model import limits
from forq_trio.model.errors import ForqError, ForqUnreachable, MessageNotFound, Stopping
from forq_trio.model.results.types import MessageResult
from forq_trio.worker.opening import WorkerSource
from forq_trio.worker.result_codec import ResultGone, ResultSource, content_of
from forq_trio.worker.source import PAUSE_SECONDS_MAX, Source, ends_all, passes

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

PAUSE_SECONDS = 0.1
"""Between two long polls: one that ends early, because the source stops, is not repeated at once."""


class ResultWaits:
    """Waits through the source of a worker. Raises JobFailed, ResultGone, TimeoutError, and what the source raises.

    While the source does not answer, the wait goes on.
    """

    def __init__(self, source: WorkerSource) -> None:
        self._source = source

    async def content(self, queue: str, message_id: str, seconds: float) -> str:
        """The result of a message as it is stored. Raises RuntimeError if the worker is not open."""
        return content_of(await _ended(self._source.to_send, queue, message_id, seconds))

    def content_blocking(self, queue: str, message_id: str, seconds: float) -> str:
        """The same from a thread. Raises RuntimeError in an event loop."""
        if (opened := self._source.opened) is not None:
            return content_of(opened.call(partial(_ended, opened.sending, queue, message_id, seconds)))
        return content_of(_ended_blocking(self._source.to_send_blocking(), queue, message_id, seconds))


class _Deadline:
    """The end of a wait, and how long its next long poll may take."""

    def __init__(self, seconds: float, message_id: str) -> None:
        self._until = time.monotonic() + seconds
        self._words = f"the message {message_id} has not ended within {seconds:g} s"
        self._after_error = PAUSE_SECONDS  # how long to rest after the next temporary error

    @property
    def wait_ms(self) -> int:
        left = max(0.0, self._until - time.monotonic())
        return min(math.ceil(left * 1_000), limits.WAIT_MS_MAX)

    def pause(self) -> float:
        """How long to rest after a long poll that saw no end. Raises TimeoutError if the wait is over."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError(self._words)
        self._after_error = PAUSE_SECONDS
        return min(PAUSE_SECONDS, left)

    def pause_after(self, error: ForqError) -> float:
        """How long to rest after a temporary error. Raises TimeoutError if the wait is over."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self._words}, as far as is known: {error}") from error
        pause, self._after_error = self._after_error, min(2 * self._after_error, PAUSE_SECONDS_MAX)
        return min(pause, left)


async def _ended(source: Source, queue: str, message_id: str, seconds: float) -> MessageResult:
    results = cast("ResultSource", source)
    deadline = _Deadline(seconds, message_id)
    while True:
        try:
            known = await results.message_result(queue, message_id, wait_ms=deadline.wait_ms)
        except MessageNotFound:
            raise _gone(message_id) from None
        except ForqError as error:
            if not _may_pass(error) or ends_all(error, source):
                raise
            pause = deadline.pause_after(error)
        else:
            if known.state != "waiting":
                return known
            pause = deadline.pause()
        await anyio.sleep(pause)


def _ended_blocking(source: "ForqClient", queue: str, message_id: str, seconds: float) -> MessageResult:
    deadline = _Deadline(seconds, message_id)
    while True:
        try:
            known = source.message_result(queue, message_id, wait_ms=deadline.wait_ms)
        except MessageNotFound:
            raise _gone(message_id) from None
        except ForqError as error:
            closed = isinstance(error, Stopping) and hasattr(source, "inner")  # a broker of this process
            if closed or not _may_pass(error):
                raise
            pause = deadline.pause_after(error)
        else:
            if known.state != "waiting":
                return known
            pause = deadline.pause()
        time.sleep(pause)


def _may_pass(error: ForqError) -> bool:
    """Whether another try may have an answer."""
    return passes(error) and not (isinstance(error, ForqUnreachable) and error.lasting)


def _gone(message_id: str) -> ResultGone:
    return ResultGone(
        f"there is no result of the message {message_id}: it is no longer stored, the message ended without one before "
        "this wait, or there was no such message"
    )
