"""The decisions that all engines share, as plain functions over values, without clock or database.

A message that comes back from a consumer (by nack, or because its lease ended) goes one of three ways:
ready, delayed, or failed once its attempts are used up. `after_nack`, `after_lease_end` and `after_release`
say which. In all of them the lease and the start of processing are cleared. The receipt is cleared too, with
one exception: a message made ready by the end of its lease keeps it, so that a slow consumer may still
acknowledge it until the next claim. Every change of a message sets its `updated_at` to the batch's now.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec

from forq_trio.model import limits
from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import UNKNOWN
from forq_trio.model.commands import ChangeRedrive, RedrivePolicy
from forq_trio.model.dead_letters.redrives import ENDED, RedriveStep, RedriveTask, after_step
from forq_trio.model.errors import Overloaded, RedriveStateConflict, TooManyQueues, TooManyRedrives
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Failure, MessageInfo, Status
from forq_trio.model.queues.back_off import backoff_ms
from forq_trio.model.queues.setting_checks import invalid_setting
from forq_trio.model.queues.setting_values import NO_DEAD_LETTERS, Order
from forq_trio.model.queues.settings import QueueRules

NO_GROUP = ""
"""The stored group of messages without a group in a grouped queue: they are served like one more group."""

ItemT = TypeVar("ItemT")


class Delivered(Protocol):
    """The parts of a message that `exhausted` needs."""

    @property
    def queue(self) -> str: ...
    @property
    def attempts(self) -> int: ...
    @property
    def max_attempts(self) -> int | None: ...


def check_queues(unknown: int, known: int) -> Overloaded | None:
    """Overloaded if `unknown` further queues would be too many. known: how many there are."""
    if unknown and known + unknown > limits.QUEUES_MAX:
        return Overloaded(f"there are {limits.QUEUES_MAX} queues already")
    return None


def has_share_of_queues(made_by: str) -> bool:
    """Whether this key may make only a share of all queues. Not so for the server's secret, or an unknown key."""
    return made_by not in ("", UNKNOWN)


def check_share_of_queues(made_by: str, made: int) -> TooManyQueues | None:
    """TooManyQueues if the key may not make one more queue. made_by: an access token; made: how many it made."""
    if not has_share_of_queues(made_by) or made < limits.QUEUES_A_TOKEN_MAX:
        return None
    return TooManyQueues(
        f"this token has made {limits.QUEUES_A_TOKEN_MAX:,} queues, the most for one; delete some"
    )


def shown_bytes(size: int, failures: Sequence[Failure]) -> int:
    """How many bytes of a page a message takes. size: of the message; failures: its latest ones, shown with it."""
    return size + sum(len(failure.reason or "") for failure in failures)


class PageBytes:
    """Adds up the bytes of one page of messages; for `itertools.takewhile`."""

    def __init__(self) -> None:
        self._bytes = 0

    def take(self, message: MessageInfo) -> bool:
        """Whether the next message fits into the page. The first always does; the bound is BROWSE_PAGE_BYTES_MAX."""
        return self.take_bytes(shown_bytes(message.bytes, message.failures))

    def take_bytes(self, size: int) -> bool:
        """`take` for a message of so many bytes."""
        is_first = self._bytes == 0
        self._bytes += size
        return is_first or self._bytes <= limits.BROWSE_PAGE_BYTES_MAX


class Returned(NamedTuple):
    """The new status of a message that came back. process_after: when it is due (epoch ms); None: unchanged."""

    status: Status
    process_after: int | None


def group_position(seq: int, next_round: int | None, last_of_group: int | None) -> int:
    """The position of a new message with a group: the round in which its group is served.

    next_round: the first round that was not served yet: one past the highest position ever claimed of this queue and
    priority. After a start, when that is not known, it is the position of the first ready message, or None if there is
    none. last_of_group: the highest position of a stored message of this group, queue and priority; None if there is
    none.

    A message goes into the round after the last message of its group, but not into a round that is being served, and
    never to a position above its own sequence number. So every group gets one message a round, however many messages
    the other groups have sent. Between two messages of a group, no other group gets more than two: its last of one
    round and its first of the next.
    """
    start = seq if next_round is None else next_round
    if last_of_group is not None:
        start = max(start, last_of_group + 1)
    return min(start, seq)


def moved_position(seq: int, position: int, order: Order, now_ms: int) -> int:
    """The position of a message in the queue to which it is moved. order: of that queue.

    In a FIFO queue the message keeps its position. A position that comes from another order (negative, or above the
    sequence number) is replaced by the sequence number. In other queues it gets the position that a send would give it.
    """
    if order is Order.LIFO:
        return -seq
    if order is Order.DUE:
        return now_ms
    return min(abs(position), seq)


def dead_letter_target(queue: str, own: str | None, rules: QueueRules) -> str:
    """The dead-letter queue of a message of `queue` that failed, expired or was evicted; "" if it is deleted.

    own: the message's own dead-letter queue; None for that of its queue. A message that is already in its own
    dead-letter queue is deleted.
    """
    if own is None:
        return rules.dead_letter_queue
    return NO_DEAD_LETTERS if own == queue else own


def check_dead_letters_end(queue: str, before: str, target_of: Callable[[str], str]) -> None:
    """Raise InvalidSetting if dead letters of `queue` would go round in a circle, or through too many queues.

    before: the dead-letter queue of `queue` until now. If it stays, no circle comes of this change. target_of: the
    dead-letter queue of a queue, according to the settings that are about to be saved.
    """
    target = target_of(queue)
    if target == before:
        return
    seen = {queue}
    while target != NO_DEAD_LETTERS:
        if target in seen:
            raise invalid_setting("deadLetterQueue", f"dead letters of {queue} would come back to {target}")
        seen.add(target)
        if len(seen) > limits.DEAD_LETTER_STEPS_MAX:
            most = limits.DEAD_LETTER_STEPS_MAX
            problem = f"dead letters of {queue} would go through over {most} queues"
            raise invalid_setting("deadLetterQueue", problem)
        target = target_of(target)


def message_bytes(content: str, attributes: dict[str, str] | None) -> int:
    """The size of a message as its queue counts it: the bytes of its content, attribute keys and values in UTF-8."""
    size = len(content) if content.isascii() else len(content.encode())
    if attributes:
        size += sum(len(key.encode()) + len(value.encode()) for key, value in attributes.items())
    return size


def failed_again(failures: tuple[Failure, ...], failure: Failure) -> tuple[Failure, ...]:
    """The failures of a message with one more, of which only the latest FAILURES_PER_MESSAGE_MAX stay."""
    return (*failures, failure)[-limits.FAILURES_PER_MESSAGE_MAX :]


def due_time(message: NewMessage, now_ms: int, rules: QueueRules) -> int:
    """When a new message is due (epoch ms): at its own time, or after its own delay, or after the queue's."""
    if message.process_after is not None:
        return message.process_after
    return now_ms + (rules.delay_ms if message.delay_ms is None else message.delay_ms)


def debounced(due_ms: int, first_at: int, max_wait_ms: int | None, now_ms: int) -> tuple[int, int | None]:
    """When a debounced offer is due (epoch ms), and the latest time to which further ones may move it (None: any).

    first_at: when the first of these offers came. If that was more than max_wait_ms ago the message is due now, not at
    a time in the past, or it might have expired already.
    """
    if max_wait_ms is None:
        return due_ms, None
    latest = first_at + max_wait_ms
    return min(due_ms, max(latest, now_ms)), latest


def initial_status(process_after: int, now_ms: int) -> Status:
    """READY, or DELAYED for a message that is due later than now."""
    return Status.DELAYED if process_after > now_ms else Status.READY


def expires_after(process_after: int, ttl_ms: int) -> int:
    """When a message expires (epoch ms): its time to live starts when it is due, not when it is sent (F2)."""
    return process_after + ttl_ms


def attempts_used_up(attempts: int, max_attempts: int | None, rules: QueueRules) -> bool:
    """True if a message may not be tried again. max_attempts: the message's own bound, None for the queue's."""
    return attempts >= (rules.max_attempts if max_attempts is None else max_attempts)


def offers_bound(offered: int | None, attempts: int, stored: int | None) -> bool:
    """Whether an offer has the bound on attempts of the pending message: after an attempt a nack may have set that.

    offered: of the offer. attempts, stored: how often the message was delivered, and its own bound.
    """
    return offered == stored or (offered is None and attempts > 0)


class Space(NamedTuple):
    """The space that messages in a queue take, or that a send needs."""

    messages: int
    bytes: int


def above(stored: Space, rules: QueueRules) -> Space:
    """By how much `stored` exceeds the bounds of a queue; 0 or less if it does not, or if there is no bound."""
    return Space(
        0 if rules.max_messages is None else stored.messages - rules.max_messages,
        0 if rules.max_bytes is None else stored.bytes - rules.max_bytes,
    )


def may_overflow(over: Space, new: Space, evicted: Space) -> bool:
    """Whether a send is stored although not enough messages could be evicted for it at once.

    over: by how much the queue exceeded its bounds before the send. One send may exceed them. After that, and after the
    bounds were lowered, no send may make the queue grow.
    """
    return all(excess <= 0 or size <= freed for excess, size, freed in zip(over, new, evicted, strict=True))


class Exhausted(NamedTuple):
    """The dead-letter queue of a message that was delivered too often ("": it is deleted). reason: of the event."""

    target: str
    reason: str


def exhausted(
    message: Delivered,
    own: str,
    default_max_receives: int | None,
    policy: RedrivePolicy | None,
    rules: QueueRules,
    takes: Callable[[str, int | None], bool],
) -> Exhausted | None:
    """Where a ready message goes that a claim finds to have been delivered too often; None: it is delivered.

    The bound and dead-letter queue of the message and its queue come first, then those of the claim's redrive policy.
    The policy deletes no message that has a dead-letter queue. own: the message's `dead_letter_target`.
    default_max_receives: of the message. takes: whether a queue exists or may be made, and has fewer messages than a
    bound (None: no bound).
    """
    if attempts_used_up(message.attempts, message.max_attempts, rules):
        return Exhausted(own, "failed")
    if policy is None:
        return None
    bound = default_max_receives if policy.max_attempts is None else policy.max_attempts
    if bound is None or message.attempts < bound:
        return None
    named = policy.dead_letter_queue
    if named in (NO_DEAD_LETTERS, message.queue):
        return Exhausted(own, "failed")
    if takes(named, policy.messages_max):
        return Exhausted(named, "failed")
    return Exhausted(own, "dlq_full" if own == NO_DEAD_LETTERS else "failed")


def after_nack(
    seq: int,
    attempts: int,
    max_attempts: int | None,
    delay_ms: int | None,
    now_ms: int,
    rules: QueueRules,
    *,
    final: bool = False,
) -> Returned:
    """After a nack: failed if it is final or was the last attempt, else due in delay_ms (None: the back-off)."""
    if final or attempts_used_up(attempts, max_attempts, rules):
        return Returned(Status.FAILED, None)
    delay = backoff_ms(attempts, rules.back_off, seq) if delay_ms is None else delay_ms
    return after_release(delay, now_ms)


def after_lease_end(attempts: int, max_attempts: int | None, now_ms: int, rules: QueueRules) -> Returned:
    """After the end of a lease: ready again at once, or failed at the last attempt."""
    return after_nack(0, attempts, max_attempts, 0, now_ms, rules)


def after_release(delay_ms: int, now_ms: int) -> Returned:
    """After a release: ready at its old position, or due in delay_ms. `uncounted` takes the attempt back."""
    process_after = now_ms + delay_ms
    return Returned(initial_status(process_after, now_ms), process_after)


def waited_ms(process_after: int, received_at: int, now_ms: int) -> int:
    """How many ms a message was ready before it was claimed; 0 if the clock was set back in between."""
    return max(now_ms - max(process_after, received_at), 0)


def uncounted(attempts: int) -> int:
    """The attempts of a message whose latest delivery was released."""
    return max(attempts - 1, 0)


def sessions_to_end(sessions: Iterable[UiSession], now_ms: int) -> list[str]:
    """The digests of the sessions that end when another one is saved: see `commands.SaveSession`."""
    by_use = sorted(
        sessions, key=lambda session: (not session.expired(now_ms), session.last_used_at, session.digest)
    )
    expired = sum(session.expired(now_ms) for session in by_use)
    return [session.digest for session in by_use[: max(expired, len(by_use) + 1 - limits.SESSIONS_MAX)]]


def share(available: int, wanted: Sequence[int]) -> list[int]:
    """How many of `available` messages each claim gets; wanted: the most each one takes, first come first.

    Every claim gets one first, so that none waits while another gets many; the earliest claims get the rest. The sum
    is min(available, sum(wanted)).
    """
    given = [0] * len(wanted)
    for index, most in enumerate(wanted):
        given[index] = min(1, most, available)
        available -= given[index]
    for index, most in enumerate(wanted):
        if available == 0:
            break
        extra = min(most - given[index], available)
        given[index] += extra
        available -= extra
    return given


def beginning_with(queues: Sequence[str], first: str) -> list[str]:
    """These sorted queues from `first` on, followed by those before it."""
    start = bisect_left(queues, first)
    return [*queues[start:], *queues[:start]]


def slices(items: Sequence[ItemT], sizes: Sequence[int]) -> Iterator[Sequence[ItemT]]:
    """Cut `items` into consecutive parts of these sizes: the results of `share`."""
    start = 0
    for size in sizes:
        yield items[start : start + size]
        start += size


def step_refused(task: RedriveTask | None, step: RedriveStep | None) -> RedriveStateConflict | None:
    """Why a command with this step must not change anything: its walk no longer owns the task. None if it does."""
    if step is None or (task is not None and task.state == "running" and task.walker == step.walker):
        return None
    return RedriveStateConflict("the task was stopped, or another walk has taken it over")


def _is_behind(step: RedriveStep, task: RedriveTask) -> bool:
    """Whether later steps are stored: a walk reports that it is alive while it takes the next step."""
    cursor = task.before_sequence
    return cursor is not None and (step.before_sequence is None or step.before_sequence > cursor)


def after_change(task: RedriveTask, change: ChangeRedrive, now_ms: int) -> RedriveTask:
    """The task after a change; unchanged if its state does not allow that change."""
    has_task = change.step is not None and step_refused(task, change.step) is None
    is_silent = now_ms - task.walked_at >= limits.REDRIVE_SILENT_MS
    resumes = task.state in ("paused", "failed") or (
        task.state == "running" and (is_silent or not task.walker)
    )
    allowed = {
        "running": has_task if change.step else resumes,
        "paused": task.state == "running",
        "cancelled": not task.ended,
    }.get(change.state, has_task)
    if change.step is not None and has_task and not _is_behind(change.step, task):
        task = after_step(task, change.step, 0, now_ms)
    if not allowed:
        return task
    return msgspec.structs.replace(
        task,
        state=change.state,
        error=change.error,
        walker=change.walker,
        walked_at=now_ms,
        paused_at=now_ms if change.state == "paused" else None,
        finished_at=now_ms if change.state in ENDED else None,
    )


def redrive_to_forget(tasks: Collection[RedriveTask], started_by: str | None) -> str | TooManyRedrives | None:
    """The id of the task to remove before this key may start another; None if there is space.

    TooManyRedrives if there is no space and no task has ended, or if the key has as many unfinished tasks as it may.
    tasks: in the order in which they were first stored.
    """
    if sum([task.started_by == started_by and not task.ended for task in tasks]) >= limits.REDRIVES_A_KEY_MAX:
        return TooManyRedrives(
            f"{limits.REDRIVES_A_KEY_MAX} redrives of this key run or are paused, as many as may; cancel some"
        )
    if len(tasks) < limits.REDRIVES_REMEMBERED_MAX:
        return None
    ended = (task.id for task in tasks if task.ended)
    return next(ended, None) or TooManyRedrives()


def lines_within(lines: bytes, size: int, *, at_least: Literal[0, 1] = 1) -> bytes:
    """The first of these lines that fit into `size` bytes together, but no fewer than `at_least`.

    JSON may write one byte as six, so a bound on the bytes of messages does not bound those of their lines.
    """
    if len(lines) <= size:
        return lines
    return lines[: lines.rfind(b"\n", 0, size) + 1 or at_least * (lines.find(b"\n") + 1)]


def number_of_last(lines: bytes, member: str) -> int:
    """The number in `member` of the last of these lines of JSON."""
    number: int = msgspec.json.decode(lines[lines.rfind(b"\n", 0, -1) + 1 :])[member]
    return number
