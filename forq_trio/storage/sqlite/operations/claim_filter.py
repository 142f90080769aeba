"""The claim filter: random messages, those below the limit of their group, those not delivered too often.

`select_allowed` reads some candidates and returns those to hand out. The others are filtered out (held, moved or
deleted) and no longer ready, so the next call goes on behind them.
"""

from typing import Any, NamedTuple

from forq_trio.model.commands import RedrivePolicy
from forq_trio.model.messages import REASON_MAX_ATTEMPTS
from forq_trio.model.queue_settings import NO_DEAD_LETTERS
from forq_trio.storage.engine import CLEANED_UP
from forq_trio.storage.sqlite.operations.dead_letters import dead_letter_or_delete, remove
from forq_trio.storage.sqlite.operations.group_limit import GroupLimit
from forq_trio.storage.sqlite.operations.shuffle import draw
from forq_trio.storage.sqlite.row import rows_of
from forq_trio.storage.sqlite.transaction import Transaction

_SEQ, _ATTEMPTS, _GROUP_ID = 0, 3, 8
_LOOK_AHEAD = 100
"""How many candidates to read after one was filtered out: there may be many of its group."""


class Terms(NamedTuple):
    """What a claim asks for besides a number of messages. lease_ms: None means the queue's."""

    lease_ms: int | None
    shuffle: bool
    redrive_policy: RedrivePolicy | None

    @property
    def takes_anything(self) -> bool:
        return not self.shuffle and self.redrive_policy is None


def select_allowed(tx: Transaction, limit: GroupLimit, count: int, terms: Terms) -> list[Any]:
    """Up to `count` rows to hand out; none when no other can be, or `limit.left` is used up."""
    accepted: list[Any] = []
    look_ahead = 0
    while not accepted and count > 0 and limit.left > 0:
        candidates = _candidates(tx, limit.queue, max(count, look_ahead), terms.shuffle)
        if not candidates:
            break
        held: list[Any] = []
        for row in candidates:
            if len(accepted) == count or len(held) == limit.left:
                break
            if terms.redrive_policy is not None and row[_ATTEMPTS] >= terms.redrive_policy.max_attempts:
                _remove_exhausted(tx, row[_SEQ], terms.redrive_policy)
                limit.left -= 1
            elif limit.admits(row[_GROUP_ID]):
                accepted.append(row)
            else:
                held.append(row)
        limit.hold(held)
        look_ahead = _LOOK_AHEAD
    return accepted


def _candidates(tx: Transaction, queue: str, count: int, shuffle: bool) -> list[Any]:
    if not shuffle:
        return select_ready(tx, queue, count)
    aside = set(tx.sequences_set_aside())
    drawn = draw(tx.query, queue, tx.ready(queue), count)
    return [row for seq in drawn if seq not in aside for row in tx.query("select_drawn", seq)]


def select_ready(tx: Transaction, queue: str, count: int) -> list[Any]:
    """The next messages of a queue in claim order, without those that are set aside."""
    return tx.query_but_set_aside("select_ready", "select_ready_but", queue, limit=count)


def _remove_exhausted(tx: Transaction, seq: int, redrive_policy: RedrivePolicy) -> None:
    """Move a message that was delivered too often to the policy's dead-letter queue, or delete it."""
    target = redrive_policy.dead_letter_queue
    (message,) = rows_of(tx.query("find_by_sequence", str([seq])))
    if target not in (NO_DEAD_LETTERS, message.queue) and _is_full(tx, target, redrive_policy):
        remove(tx, [message], CLEANED_UP, "dlq_full")
        return
    dead_letter_or_delete(tx, [message], "failed", REASON_MAX_ATTEMPTS, target)
    if target not in (NO_DEAD_LETTERS, message.queue):
        tx.wake_next.add(target)


def _is_full(tx: Transaction, queue: str, redrive_policy: RedrivePolicy) -> bool:
    return redrive_policy.messages_max is not None and tx.counted(queue).total >= redrive_policy.messages_max
