"""The outcomes that a handler can return or raise to say what becomes of its message."""

import copyreg
import os
from pathlib import Path
from traceback import StackSummary, walk_tb
from typing import Any

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.checks import storable_reason
from forq_trio.model.durations import Duration
from forq_trio.model.results.types import AckResult
from forq_trio.worker.send_options import duration_ms

FRAMES_MAX = 20
FRAME_LENGTH_MAX = 200
FRAMES = "_forq_frames"
"""The attribute of an error of another process with what `frames_of` said there."""
_PACKAGE = str(Path(__file__).parents[1]) + os.sep


class Outcome(Exception):
    """What becomes of a message. A handler returns or raises it. reason: a text or an exception."""

    reason: str | None = None  # also of a class of the program's that does not call this `__init__`

    def __init__(self, reason: object = None) -> None:
        self.reason = None if reason is None else text_of(reason)
        super().__init__(self.reason or "")

    def __reduce__(self) -> tuple[Any, ...]:
        """An outcome of a process travels without `__init__`, whose parameters are not the same in each class."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]

    def reason_or(self, default: str) -> str:
        """The reason as a text, whatever a class of the program's has made of it."""
        return text_of(self.reason) if self.reason else default


class Discard(Outcome):
    """The message is finished, though it was not processed: it is never delivered again.

    It does not become a dead letter. reason: stored with the message in the history, if the queue has one.
    """

    def __init__(self, reason: object) -> None:
        super().__init__(reason)


class DeadLetter(Outcome):
    """The message has failed for good, however many attempts are left: it goes to the dead-letter queue."""

    def __init__(self, reason: object) -> None:
        super().__init__(reason)


class Retry(Outcome):
    """The attempt failed, and another one is wanted.

    delay: until then; None for the handler's `retry`, or without one the queue's back-off. reason: None for "retry".
    """

    delay: Duration | None = None

    def __init__(self, delay: Duration | None = None, reason: object = None) -> None:
        if delay is not None and not 0 <= duration_ms("delay", delay) <= limits.NACK_DELAY_MS_MAX:
            raise ValueError(f"delay: 0 to {limits.NACK_DELAY_MS_MAX // 1_000} seconds, not {delay!r}")
        super().__init__(reason)
        self.delay = delay


class UnreadableContent(Exception):
    """The content of the message does not fit the handler's payload"""


class LeaseLost(Exception):
    """The lease of the message has ended, or its worker stops: somebody else may process it by now"""


class Settlement(Struct, frozen=True):
    """What the worker tells the queue about a message. Messages with equal settlements share a request."""

    what: str  # "ack", "nack", "discard" or "release"
    delay_ms: int | None = None  # of a nack, None for the queue's back-off
    reason: str | None = None
    final: bool = False  # of a nack
    max_attempts: int | None = None  # of a nack: the message's own bound from now on, None for the one it has
    result: AckResult | None = None  # of an ack

    @property
    def messages_max(self) -> int:
        """How many messages may share a request."""
        if self.result is None:
            return limits.RECEIPTS_BATCH_MAX
        size = len(self.result.content.encode())
        return min(limits.RESULTS_BYTES_MAX // max(size, 1), limits.RECEIPTS_BATCH_MAX)


ACK = Settlement("ack")
RELEASE = Settlement("release")


def reason_of(error: BaseException) -> str:
    """An error as the reason of a nack: its type and text, cut to the length that the queue takes."""
    text = text_of(error)
    return storable_reason(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def text_of(value: object) -> str:
    """A value as text, even if its own `__str__` raises."""
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__} without text>"


def frames_of(error: BaseException) -> str:
    """Where the program raised an error, for the log: its last lines, without those of this package.

    It has neither values nor the texts of other errors, because they may be secret.
    """
    if (told := getattr(error, FRAMES, None)) is not None:
        return str(told)
    frames = [
        frame
        for frame in StackSummary.extract(walk_tb(error.__traceback__), lookup_lines=False)
        if not frame.filename.startswith(_PACKAGE)
    ][-FRAMES_MAX:]
    return "".join(
        f"\n  {frame.filename}:{frame.lineno} in {frame.name}"[:FRAME_LENGTH_MAX] for frame in frames
    )
