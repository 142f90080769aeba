"""The claim filter: random messages, messages below the limit of their group, messages not delivered too often.

`select_allowed` reads some candidates and returns those to deliver. The others are filtered out (held, moved or
deleted) and no longer ready, so the next call continues after them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from forq_trio.model.commands import RedrivePolicy
from forq_trio.model.messages.types import REASON_MAX_ATTEMPTS
from forq_trio.model.messages.where import Where
from forq_trio.model.queues.setting_values import NO_DEAD_LETTERS
from forq_trio.model.queues.settings import QueueRules
from forq_trio.storage.allowance import Allowance, Step
from forq_trio.storage.engine import CLEANED_UP
from forq_trio.storage.relational.operations.dead_letters import dead_letter_or_delete, remove, target_of
from forq_trio.storage.relational.operations.group_limit import GroupLimit
from forq_trio.storage.relational.operations.shuffle import draw
from forq_trio.storage.relational.operations.where import matching, rows_drawn
from forq_trio.storage.relational.parts.heads import Heads
from forq_trio.storage.relational.row import ATTEMPTS, BYTES, SEQ, ReadyRow, Row, rows_of
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import Exhausted, attempts_used_up, exhausted

_LOOK_AHEAD = 100
"""How many candidates to read after one was filtered out, because many of them may belong to its group."""

attempts_of = itemgetter(ATTEMPTS)
bytes_of = itemgetter(BYTES)


class Terms(NamedTuple):
    """What a claim asks for besides a number of messages and the length of their leases."""

    shuffle: bool
    redrive_policy: RedrivePolicy | None
    step: str = Step.DELIVER  # the step whose allowance is charged for the messages
    bytes_of: Callable[[ReadyRow], int] = bytes_of  # how many bytes a row is charged
    where: Where = ()

    @property
    def takes_anything(self) -> bool:
        return not self.shuffle and self.redrive_policy is None and not self.where


def select_allowed(
    tx: Transaction, limit: GroupLimit, count: int, terms: Terms, scan: Allowance | None = None
) -> list[ReadyRow]:
    """Up to `count` rows to deliver; none if there are no further ones, or an allowance is used up.

    scan: how much a claim by attributes may read.
    """
    delivering, filtering = tx.allowances.of(terms.step), tx.allowances.of(Step.FILTER)
    accepted: list[ReadyRow] = []
    look_ahead = 0
    stopped = tx.allowances.used_up(Step.SET_ASIDE)
    while not (accepted or stopped or delivering.used_up) and count > 0:
        candidates = _candidates(tx, limit.queue, max(count, look_ahead), terms, scan)
        if not candidates:
            break
        limit.look_up(candidates, count)
        held: list[ReadyRow] = []
        for row in candidates:
            if len(accepted) == count or delivering.used_up:
                break
            exhausted_one = _find_exhausted(tx, row, terms.redrive_policy, limit.rules)
            if exhausted_one is None and (before := limit.held_before(row, count - len(accepted))):
                stopped = filtering.used_up
                limit.unhold_before(before, filtering)
                break
            if exhausted_one is None and limit.admits(row):
                delivering.charge(1, terms.bytes_of(row))
                accepted.append(row)
                if limit.unhold_behind(row, count - len(accepted), filtering):
                    break  # they come before some of the other candidates
                continue
            if filtering.used_up:
                stopped = True
                break
            filtering.charge(1, row[BYTES])
            if exhausted_one is None:
                held.append(row)
            else:
                _remove(tx, limit, row, *exhausted_one)
        limit.hold(held)
        look_ahead = _LOOK_AHEAD
    return accepted


def _candidates(
    tx: Transaction, queue: str, count: int, terms: Terms, scan: Allowance | None
) -> list[ReadyRow]:
    bytes_max = tx.allowances.of(terms.step).bytes + tx.allowances.of(Step.FILTER).bytes
    if scan is not None:
        return matching(tx, queue, terms.where, count, bytes_max, scan)
    if not terms.shuffle:
        return select_ready(tx, queue, count, bytes_max)
    aside = set(tx.set_aside.sequences())
    drawn = draw(tx.query, queue, tx.counts.ready(queue), count)
    return _up_to(rows_drawn(tx, [seq for seq in drawn if seq not in aside]), bytes_max)


def select_ready(tx: Transaction, queue: str, count: int, bytes_max: int) -> list[ReadyRow]:
    """The next messages of a queue in claim order, without those that are set aside, up to about `bytes_max`."""
    if just_sent := tx.inserts.first(queue, count, tx.counts.ready(queue)):
        if tx.heads is not None:
            tx.heads.read(queue, just_sent)
        return _up_to(just_sent, bytes_max)
    if tx.heads is not None:
        return _up_to(_read_behind_head(tx, tx.heads, queue, count), bytes_max)
    rows = tx.rows_but_set_aside("select_ready", "select_ready_but", queue, limit=count)
    read = _up_to(rows, bytes_max)
    rows.close()
    return read


def _read_behind_head(tx: Transaction, heads: Heads, queue: str, count: int) -> list[ReadyRow]:
    """`select_ready` by the head of the queue. A wrong head (somebody changed the tables) is forgotten."""
    aside = set(tx.set_aside.sequences())
    found: list[ReadyRow] = []
    first = heads.first(queue, count, aside)
    while True:
        rows = tx.query(*behind_head(heads, queue, first, count - len(found)))
        if [row[SEQ] for row in rows[: len(first)]] != first[: len(rows)] or (first and not rows):
            heads.forget(queue)
            return _read_behind_head(tx, heads, queue, count)
        heads.read(queue, rows)
        allowed = [row for row in rows if row[SEQ] not in aside]
        found += allowed
        if len(allowed) == len(rows) or len(found) == count:
            break
        first = []
    if not found and tx.counts.ready(queue) > len(aside) and heads.mistaken(queue):
        return _read_behind_head(tx, heads, queue, count)
    return found


def behind_head(heads: Heads, queue: str, first: Sequence[int], most: int) -> tuple[Any, ...]:
    """The statement and bindings that read these messages of a head, and then those behind its frontier."""
    priority, position, seq = heads.frontier(queue)
    return "select_ready_behind", queue, str(first), -priority, position, seq, most


def _up_to(rows: Any, bytes_max: int) -> list[ReadyRow]:
    """The first rows up to and including the one that reaches `bytes_max`; the content of the others is not read."""
    read: list[ReadyRow] = []
    for row in rows:
        read.append(row)
        bytes_max -= row[BYTES]
        if bytes_max <= 0:
            break
    return read


def _may_be_exhausted(attempts: Any, policy: RedrivePolicy | None, rules: QueueRules) -> bool:
    """A quick check that is False for most messages, so that their own bounds need not be read."""
    if not isinstance(attempts, int):
        return False
    if attempts_used_up(attempts, None, rules):
        return True
    return policy is not None and attempts >= (1 if policy.max_attempts is None else policy.max_attempts)


def _find_exhausted(
    tx: Transaction, row: ReadyRow, policy: RedrivePolicy | None, rules: QueueRules
) -> tuple[Row, Exhausted] | None:
    """A message that was delivered too often, and where it goes; None if it may be delivered.

    A damaged message gives None, too: it fails later, when it is delivered.
    """
    if not _may_be_exhausted(row[ATTEMPTS], policy, rules):
        return None
    (message,) = rows_of(tx.query("find_by_sequence", str([row[SEQ]])))
    ((default_max_receives,),) = tx.query("find_default_max_receives", message.seq)
    try:
        own = target_of(tx, message)
        away = exhausted(message, own, default_max_receives, policy, rules, partial(_takes, tx))
    except TypeError:
        return None
    return None if away is None else (message, away)


def _remove(tx: Transaction, limit: GroupLimit, row: ReadyRow, message: Row, away: Exhausted) -> None:
    """Move or delete a message that was delivered too often, or set it aside if that fails."""
    if not tx.isolated:
        _dead_letter(tx, message, away)
        return
    error = tx.attempt(partial(_dead_letter, tx, message, away))
    if error is not None:
        limit.set_aside(row, error)


def _dead_letter(tx: Transaction, message: Row, away: Exhausted) -> None:
    if away.target == NO_DEAD_LETTERS:
        remove(tx, [message], CLEANED_UP, away.reason)
    else:
        dead_letter_or_delete(tx, [message], away.reason, REASON_MAX_ATTEMPTS, away.target)
        tx.wakes.next.add(away.target)


def _takes(tx: Transaction, queue: str, messages_max: int | None) -> bool:
    if tx.admit(queue) is not None:
        return False
    return messages_max is None or tx.counts.of(queue).total < messages_max
