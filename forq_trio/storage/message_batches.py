"""The decisions about message batches, for all engines.

- A member is a message that was added to a batch, or a batch inside of it. Each is counted where it is now: left (its
  message is in a queue), done (acknowledged), dead (a dead letter), or removed (any other end).
- A dead letter that is redriven is left again; one that is removed or acknowledged where it is counts as that. A
  message that failed for good and has no dead-letter queue is dead, and stays it.
- A batch ends once it is closed and has no member left. If it needs `done` and not all are, it waits while it has dead
  letters, because somebody may redrive them; without any it ends at once, unmet.
- `on_dead` is sent at the first dead member, `then` when the batch ends: each in the commit of the change that caused
  it, and each once, because the batch and the message are one commit. If the queue refuses the message, or sends wait,
  a later batch of the writer tries again, until the batch expires.
- What becomes of members of a batch that has ended changes nothing any more.
- A batch inside of another one is its member until the last of its own messages is sent. Then `then`, if it was sent,
  takes its place as a member; otherwise it counts as done, as dead if one of its own members was or it ended without
  what it needed, or as removed if it was abandoned.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.errors import (
    ForqError,
    MessageBatchEnded,
    MessageBatchFull,
    MessageBatchNotFound,
    MessageBatchTooDeep,
    TooManyMessageBatches,
)
from forq_trio.model.message_batches.types import (
    BATCH_ATTRIBUTE,
    ENDED_ATTRIBUTE,
    BatchMessage,
    MessageBatch,
    MessageBatchResult,
    NewMessageBatch,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced
from forq_trio.model.values import seen
from forq_trio.storage.engine import ACKED, MOVED_TO_DLQ, REQUEUED
from forq_trio.storage.rules import message_bytes

State = Literal["left", "done", "removed", "dead"]
"""The state of a member."""
Sending = Literal["on_dead", "then"]
"""A message that a batch sends."""


class MessageBatchProgress(Struct, frozen=True, gc=False, omit_defaults=True):
    """What changes of a batch."""

    left: int = 0
    done: int = 0
    removed: int = 0
    dead: int = 0
    outer: int | None = None  # the number of the outer batch; its id may be another one's by now
    depth: int = 1  # 1 without an outer batch
    closed_at: int | None = None
    ended_at: int | None = None
    result: MessageBatchResult | None = None
    told_dead: bool = False  # whether a member was dead before, so that `on_dead` was sent, if there is one
    to_send: tuple[Sending, ...] = ()  # in order; a batch that has ended is not over before it is empty
    retry_at: int = 0  # when the first of these is sent
    refused: str | None = None  # the code with which its queue refused it
    then_id: str | None = None
    on_dead_id: str | None = None

    @property
    def members(self) -> int:
        """How many members there were so far."""
        return self.left + self.done + self.removed + self.dead


class StoredMessageBatch(Struct, frozen=True, gc=False):
    """A batch as engines store it."""

    number: int  # a sequence number, so that none is used twice
    id: str
    made_by: str | None  # the name of an access token; None for the server's secret
    made_at: int
    size: int  # the bytes of what it sends
    new: NewMessageBatch
    progress: MessageBatchProgress = MessageBatchProgress()

    @property
    def expires_at(self) -> int:
        return self.made_at + self.new.expires_ms

    @property
    def due_at(self) -> int:
        """When the next message is sent, else when it expires, or when it is forgotten."""
        progress = self.progress
        if progress.to_send:
            return progress.retry_at
        if progress.ended_at is not None:
            return progress.ended_at + limits.MESSAGE_BATCH_REMEMBERED_MS
        return self.expires_at

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and has sent what it had to."""
        return self.progress.ended_at is not None and not self.progress.to_send

    def as_callers_see(self) -> MessageBatch:
        """The batch as callers see it."""
        new, progress = self.new, self.progress
        state = (
            "ended" if progress.ended_at is not None else "open" if progress.closed_at is None else "closed"
        )
        return seen(
            MessageBatch,
            progress,
            id=self.id,
            state=state,
            made_at=self.made_at,
            made_by=self.made_by,
            expires_at=self.expires_at,
            outer=new.outer,
            needs=new.needs,
            then_queue=None if new.then is None else new.then.queue,
            on_dead_queue=None if new.on_dead is None else new.on_dead.queue,
        )


class Shares(NamedTuple):
    """How many batches there are, and the bytes of what they send."""

    number: int = 0
    size: int = 0

    def plus(self, number: int, size: int) -> "Shares":
        return Shares(self.number + number, self.size + size)


def size_of(new: NewMessageBatch) -> int:
    """The bytes of what a batch sends."""
    return sum(message_bytes(each.message.content, each.message.attributes) for each in new.messages)


def check_shares(size: int, total: Shares, own: Shares, by: str | None) -> TooManyMessageBatches | None:
    """TooManyMessageBatches if one with so many bytes may not be made. own: those of the token `by`."""
    if total.number >= limits.MESSAGE_BATCHES_MAX:
        return TooManyMessageBatches(f"there are {total.number:,} batches, as many as may be")
    if total.size + size > limits.MESSAGE_BATCHES_BYTES_MAX:
        return TooManyMessageBatches("the messages of all batches are as long as they may be together")
    if by is None:
        return None
    if own.number >= limits.MESSAGE_BATCHES_A_TOKEN_MAX:
        return TooManyMessageBatches(f"there are {own.number:,} batches of this token, as many as may be")
    if own.size + size > limits.MESSAGE_BATCHES_BYTES_A_TOKEN_MAX:
        return TooManyMessageBatches(
            "the messages of this token's batches are as long as they may be together"
        )
    return None


def check_takes(stored: StoredMessageBatch | None, members: int) -> ForqError | None:
    """Why a batch takes no such number of further members."""
    if stored is None:
        return MessageBatchNotFound()
    if stored.progress.ended_at is not None:
        return MessageBatchEnded()
    if stored.progress.members + members > limits.MESSAGE_BATCH_MEMBERS_MAX:
        return MessageBatchFull()
    return None


def check_outer(outer: StoredMessageBatch | None) -> ForqError | None:
    """Why a batch takes no further batch as a member."""
    refusal = check_takes(outer, 1)
    if refusal is None and outer is not None and outer.progress.depth >= limits.MESSAGE_BATCH_DEPTH_MAX:
        return MessageBatchTooDeep()
    return refusal


def owned(stored: StoredMessageBatch | None, by: str | None) -> StoredMessageBatch | None:
    """A batch if this token may see and change it: its maker, or the server's secret (None)."""
    return stored if stored is not None and by in (None, stored.made_by) else None


def member_of(batch_id: str, message: NewMessage) -> NewMessage:
    """A message as it is stored as a member of a batch."""
    return replace(message, attributes={**(message.attributes or {}), BATCH_ATTRIBUTE: batch_id})


def state_after(change: str, reason: str) -> State:
    """The state of a member after a change of its message.

    change, reason: as `Transaction.transition` has them, of a change that moves the message or removes it.
    """
    if change == ACKED:
        return "done"
    if change == MOVED_TO_DLQ or reason == "failed":
        return "dead"
    if change == REQUEUED:
        return "left"
    return "removed"


def counted(
    stored: StoredMessageBatch, changes: Iterable[tuple[State, State]], now_ms: int
) -> StoredMessageBatch:
    """A batch after changes of members, each from one state to another. One that has ended stays as it is."""
    progress = stored.progress
    if progress.ended_at is not None:
        return stored
    counts = {
        "left": progress.left,
        "done": progress.done,
        "removed": progress.removed,
        "dead": progress.dead,
    }
    for before, after in changes:
        counts[before] -= 1
        counts[after] += 1
    return advanced(replace(stored, progress=replace(progress, **counts)), now_ms)


def inside(outer: StoredMessageBatch | None) -> MessageBatchProgress:
    """The progress of a new batch. outer: the one that it is a member of."""
    if outer is None:
        return MessageBatchProgress()
    return MessageBatchProgress(outer=outer.number, depth=outer.progress.depth + 1)


def grown(stored: StoredMessageBatch, members: int) -> StoredMessageBatch:
    """A batch with further members, which are left."""
    return replace(stored, progress=replace(stored.progress, left=stored.progress.left + members))


def closed(stored: StoredMessageBatch, now_ms: int, *, abandon: bool) -> StoredMessageBatch:
    """A batch after its maker closed it, or gave it up."""
    progress = stored.progress
    if progress.ended_at is not None:
        return stored
    if progress.closed_at is None:
        progress = replace(progress, closed_at=now_ms)
    stored = replace(stored, progress=progress)
    return _ended(stored, "abandoned", now_ms) if abandon else advanced(stored, now_ms)


def advanced(stored: StoredMessageBatch, now_ms: int) -> StoredMessageBatch:
    """A batch that has not ended, after its counts changed: what it is to send now, and whether it ends."""
    progress = stored.progress
    if progress.dead and not progress.told_dead:
        progress = replace(progress, told_dead=True)
        if stored.new.on_dead is not None:
            progress = _sending(progress, "on_dead", now_ms)
        stored = replace(stored, progress=progress)
    if progress.closed_at is None or progress.left:
        return stored
    if stored.new.needs == "done" and progress.done < progress.members:
        return stored if progress.dead else _ended(stored, "unmet", now_ms)
    if stored.new.then is None:
        return _ended(stored, "nothing_to_send", now_ms)
    stored = _ended(stored, "sent", now_ms)
    return replace(stored, progress=_sending(stored.progress, "then", now_ms))


def expired(stored: StoredMessageBatch, now_ms: int) -> StoredMessageBatch:
    """A batch whose time is over."""
    return _ended(stored, "expired", now_ms)


def _ended(stored: StoredMessageBatch, result: MessageBatchResult, now_ms: int) -> StoredMessageBatch:
    return replace(stored, progress=replace(stored.progress, ended_at=now_ms, result=result))


def _sending(progress: MessageBatchProgress, message: Sending, now_ms: int) -> MessageBatchProgress:
    if progress.to_send:
        return replace(progress, to_send=(*progress.to_send, message))
    return replace(progress, to_send=(message,), retry_at=now_ms)


def next_to_send(stored: StoredMessageBatch, *, outer_takes: bool) -> BatchMessage:
    """The message that a batch sends next. outer_takes: whether `then` becomes a member of the outer batch."""
    which = stored.progress.to_send[0]
    message = stored.new.then if which == "then" else stored.new.on_dead
    assert message is not None
    attributes = {**(message.message.attributes or {}), ENDED_ATTRIBUTE: stored.id}
    if which == "then" and outer_takes and stored.new.outer is not None:
        attributes[BATCH_ATTRIBUTE] = stored.new.outer
    return replace(message, message=replace(message.message, attributes=attributes))


def after_sending(
    stored: StoredMessageBatch, outcome: Produced | ForqError, now_ms: int
) -> StoredMessageBatch:
    """A batch after its next message was stored, or refused."""
    progress = stored.progress
    which, *rest = progress.to_send
    if isinstance(outcome, Produced):
        sent = {"then_id": outcome.id} if which == "then" else {"on_dead_id": outcome.id}
        return replace(stored, progress=replace(progress, to_send=tuple(rest), refused=None, **sent))
    if now_ms < stored.expires_at:
        retry_at = now_ms + limits.MESSAGE_BATCH_RETRY_MS
        return replace(stored, progress=replace(progress, retry_at=retry_at, refused=outcome.code))
    result = "refused" if which == "then" else progress.result
    return replace(
        stored, progress=replace(progress, to_send=tuple(rest), refused=outcome.code, result=result)
    )


def state_in_outer(stored: StoredMessageBatch) -> State:
    """The state, in the outer batch, of a batch that is over and whose `then` does not take its place."""
    progress = stored.progress
    if progress.result == "abandoned":
        return "removed"
    failed = progress.result in ("unmet", "expired", "refused")
    return "dead" if failed or progress.dead else "done"
