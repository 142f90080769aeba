"""The decisions about message batches, for all engines.

- A member is a message that was added to a batch, or a batch inside of it. Each is counted where it is now: left (its
  message is in a queue), done (acknowledged), dead (a dead letter), failed (for good, without a dead-letter queue), or
  removed (any other end). Callers see dead and failed members as one number.
- A dead letter that is redriven is left again; one that is removed or acknowledged where it is counts as that.
- A batch ends once it is closed, has no member left, and none waits to be counted. If it needs `done` and not all are,
  it is unmet: it ends at once if one is removed or failed, because then they never all are done; else it waits, because
  somebody may redrive its dead letters.
- `on_dead` is sent at the first dead member, `then` when the batch ends: each in the commit of the change that caused
  it, or in one soon after if much is due at once. Each is sent once, because the batch and the message are one commit.
  If the queue refuses the message, or sends wait, a later batch of the writer tries again, until the batch expires; one
  that is refused does not hold up the other. Whoever abandons the batch gives up what is not sent yet, also after
  its end.
- What becomes of members of a batch that has ended changes nothing any more.
- A batch inside of another one is its member until it has ended and its `then` is sent or given up. Then `then`, if it
  was sent, takes its place as a member. Otherwise it counts as done; as removed if it was abandoned; and as failed if
  one of its own members was dead, or it ended without what it needed, because nobody can redrive a batch.
- Bounds are on batches that are not over. As many are remembered; then the oldest that is over is forgotten.
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
    AddressedMessage,
    MessageBatch,
    MessageBatchOutcome,
    NewMessageBatch,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced
from forq_trio.model.values import seen
from forq_trio.storage.engine import ACKED, MOVED_TO_DLQ, REQUEUED

State = Literal["left", "done", "removed", "dead", "failed"]
"""The state of a member."""
GONE: frozenset[State] = frozenset({"done", "removed", "failed"})
"""The states of members that are gone, so that they never change again."""
Sending = Literal["on_dead", "then"]
"""A message that a batch sends."""


class MessageBatchProgress(Struct, frozen=True, gc=False, omit_defaults=True):
    """What changes of a batch."""

    left: int = 0
    done: int = 0
    removed: int = 0
    dead: int = 0  # dead letters, which somebody may redrive
    failed: int = 0  # dead ones that nobody can redrive
    outer: int | None = None  # the number of the outer batch; its id may be another one's by now
    depth: int = 1  # 1 without an outer batch
    closed_at: int | None = None
    ended_at: int | None = None
    outcome: MessageBatchOutcome | None = None
    had_dead: bool = False  # whether a member was dead before: `on_dead` is sent once
    to_send: tuple[Sending, ...] = ()  # what is to be sent now, in order
    to_retry: tuple[Sending, ...] = ()  # what was refused
    send_at: int = 0  # when `to_send` is sent; without it, when `to_retry` is sent again
    refused: str | None = None  # the code of the last refusal, while it matters
    then_id: str | None = None
    on_dead_id: str | None = None

    @property
    def members(self) -> int:
        """How many members there were so far."""
        return self.left + self.done + self.removed + self.dead + self.failed

    @property
    def unsent(self) -> tuple[Sending, ...]:
        """What is still to be sent."""
        return self.to_send + self.to_retry


class StoredMessageBatch(Struct, frozen=True, gc=False):
    """A batch as engines store it."""

    number: int  # a sequence number, so that none is used twice
    id: str
    made_by: str | None  # the name of an access token; None for the server's secret
    made_at: int
    size: int  # `stored_bytes` of `new`
    new: NewMessageBatch
    progress: MessageBatchProgress = MessageBatchProgress()

    @property
    def expires_at(self) -> int:
        return self.made_at + self.new.expires_ms

    @property
    def due_at(self) -> int:
        """When the next message is sent, else when it expires, or when it is forgotten."""
        progress = self.progress
        if progress.unsent:
            return progress.send_at
        if progress.ended_at is not None:
            return progress.ended_at + limits.MESSAGE_BATCH_REMEMBERED_MS
        return self.expires_at

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and has sent what it had to."""
        return self.progress.ended_at is not None and not self.progress.unsent

    @property
    def tells_outer(self) -> bool:
        """Whether its end is known to the outer batch: it has ended, and `then` is sent or given up."""
        return self.progress.ended_at is not None and "then" not in self.progress.unsent

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
            dead=progress.dead + progress.failed,
            then_queue=None if new.then is None else new.then.queue,
            on_dead_queue=None if new.on_dead is None else new.on_dead.queue,
        )


class BatchTotals(NamedTuple):
    """How many batches are not over, and the bytes of what they send."""

    number: int = 0
    size: int = 0

    def plus(self, number: int, size: int) -> "BatchTotals":
        return BatchTotals(self.number + number, self.size + size)


def check_totals(
    size: int, total: BatchTotals, own: BatchTotals, by: str | None
) -> TooManyMessageBatches | None:
    """TooManyMessageBatches if one with so many bytes may not be made. own: those of the token `by`.

    A token may have BUDGET_SHARE times as much as it leaves to other tokens (model/budget.py). All tokens together
    leave a part to the server's secret.
    """
    total, own = total.plus(1, size), own.plus(1, size)
    if total.number > limits.MESSAGE_BATCHES_MAX:
        return TooManyMessageBatches(
            f"{limits.MESSAGE_BATCHES_MAX:,} batches have not ended, as many as may be"
        )
    if total.size > limits.MESSAGE_BATCHES_BYTES_MAX:
        return TooManyMessageBatches("the messages of all batches are as long as they may be together")
    if by is None:
        return None
    if own.number > limits.BUDGET_SHARE * (limits.MESSAGE_BATCHES_OF_TOKENS_MAX - total.number):
        return TooManyMessageBatches(f"{own.number - 1:,} batches of this token have not ended, its share")
    if size and own.size > limits.BUDGET_SHARE * (limits.MESSAGE_BATCHES_BYTES_OF_TOKENS_MAX - total.size):
        return TooManyMessageBatches("the messages of this token's batches are as long as its share")
    return None


def check_can_add(stored: StoredMessageBatch | None, members: int) -> ForqError | None:
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
    refusal = check_can_add(outer, 1)
    if refusal is None and outer is not None and outer.progress.depth >= limits.MESSAGE_BATCH_DEPTH_MAX:
        return MessageBatchTooDeep()
    return refusal


def if_visible_to(by: str | None, stored: StoredMessageBatch | None) -> StoredMessageBatch | None:
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
    if change == MOVED_TO_DLQ:
        return "dead"
    if change == REQUEUED:
        return "left"
    return "failed" if reason == "failed" else "removed"


def counted(
    stored: StoredMessageBatch, changes: Iterable[tuple[State, State]], now_ms: int, *, may_end: bool = True
) -> StoredMessageBatch:
    """A batch after changes of members, each from one state to another. One that has ended stays as it is.

    may_end: whether no further members wait to be counted.
    """
    progress = stored.progress
    if progress.ended_at is not None:
        return stored
    counts = {
        "left": progress.left,
        "done": progress.done,
        "removed": progress.removed,
        "dead": progress.dead,
        "failed": progress.failed,
    }
    for before, after in changes:
        counts[before] -= 1
        counts[after] += 1
    return _after_counting(replace(stored, progress=replace(progress, **counts)), now_ms, may_end=may_end)


def new_progress(outer: StoredMessageBatch | None) -> MessageBatchProgress:
    """The progress of a new batch. outer: the one that it is a member of."""
    if outer is None:
        return MessageBatchProgress()
    return MessageBatchProgress(outer=outer.number, depth=outer.progress.depth + 1)


def with_members_added(stored: StoredMessageBatch, members: int) -> StoredMessageBatch:
    """A batch with further members, which are left."""
    return replace(stored, progress=replace(stored.progress, left=stored.progress.left + members))


def closed(
    stored: StoredMessageBatch, now_ms: int, *, abandon: bool, may_end: bool = True
) -> StoredMessageBatch:
    """A batch after its maker closed it, or gave it up. may_end: see `counted`."""
    progress = stored.progress
    if progress.ended_at is not None:
        return _without_unsent(stored) if abandon else stored
    if progress.closed_at is None:
        progress = replace(progress, closed_at=now_ms)
    stored = replace(stored, progress=progress)
    if abandon:
        return _without_unsent(_ended(stored, "abandoned", now_ms))
    return _after_counting(stored, now_ms, may_end=may_end)


def _after_counting(stored: StoredMessageBatch, now_ms: int, *, may_end: bool) -> StoredMessageBatch:
    """A batch that has not ended, after its counts changed: what it is to send now, and whether it ends."""
    progress = stored.progress
    if (progress.dead or progress.failed) and not progress.had_dead:
        progress = replace(progress, had_dead=True)
        if stored.new.on_dead is not None:
            progress = _sending(progress, "on_dead", now_ms)
        stored = replace(stored, progress=progress)
    if progress.closed_at is None or progress.left or not may_end:
        return stored
    if stored.new.needs == "done" and progress.done < progress.members:
        never = progress.removed or progress.failed
        return _ended(stored, "unmet", now_ms) if never else stored
    if stored.new.then is None:
        return _ended(stored, "nothing_to_send", now_ms)
    stored = _ended(stored, "sent", now_ms)
    return replace(stored, progress=_sending(stored.progress, "then", now_ms))


def expired(stored: StoredMessageBatch, now_ms: int) -> StoredMessageBatch:
    """A batch whose time is over."""
    return _ended(stored, "expired", now_ms)


def _ended(stored: StoredMessageBatch, outcome: MessageBatchOutcome, now_ms: int) -> StoredMessageBatch:
    return replace(stored, progress=replace(stored.progress, ended_at=now_ms, outcome=outcome))


def _without_unsent(stored: StoredMessageBatch) -> StoredMessageBatch:
    """A batch that has ended, without what it could not send yet. Without its `then` it is abandoned."""
    progress = stored.progress
    if not progress.unsent:
        return stored
    outcome = "abandoned" if "then" in progress.unsent else progress.outcome
    refused = progress.refused if outcome == "refused" else None
    progress = replace(progress, outcome=outcome, to_send=(), to_retry=(), refused=refused)
    return replace(stored, progress=progress)


def _sending(progress: MessageBatchProgress, message: Sending, now_ms: int) -> MessageBatchProgress:
    if progress.to_send:
        return replace(progress, to_send=(*progress.to_send, message))
    return replace(progress, to_send=(message,), send_at=now_ms)


def with_retries(stored: StoredMessageBatch) -> StoredMessageBatch:
    """A batch that is due to send: what was refused is sent again, if nothing else is."""
    progress = stored.progress
    if progress.to_send:
        return stored
    return replace(stored, progress=replace(progress, to_send=progress.to_retry, to_retry=()))


def next_to_send(stored: StoredMessageBatch, *, outer_takes: bool) -> AddressedMessage:
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
    progress = replace(progress, to_send=tuple(rest))
    refused = progress.refused
    if isinstance(outcome, Produced):
        sent = {"then_id": outcome.id} if which == "then" else {"on_dead_id": outcome.id}
        progress = replace(progress, **sent)
    else:
        refused = outcome.code
        if now_ms < stored.expires_at:
            progress = replace(progress, to_retry=(*progress.to_retry, which))
        elif which == "then":
            progress = replace(progress, outcome="refused")
    matters = progress.unsent or progress.outcome == "refused"
    progress = replace(progress, refused=refused if matters else None)
    if not progress.to_send:
        progress = replace(progress, send_at=now_ms + limits.MESSAGE_BATCH_RETRY_MS)
    return replace(stored, progress=progress)


def state_in_outer(stored: StoredMessageBatch) -> State:
    """The state, in the outer batch, of a batch that has ended and whose `then` does not take its place."""
    progress = stored.progress
    if progress.outcome == "abandoned":
        return "removed"
    unmet = progress.outcome in ("unmet", "expired", "refused")
    return "failed" if unmet or progress.dead or progress.failed else "done"
