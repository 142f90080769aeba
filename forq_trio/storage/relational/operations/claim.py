"""Claims: per queue, one SELECT along the claim index for all receivers of the batch, parked ones first.

- The order within a queue is priority (higher first), then `position`, then `seq`. The position of a message is its
  sequence number; in a LIFO queue the negative of that; in a queue by due time the time when it was due. With a group
  it is computed by `rules.group_position`.
- Once a message with a group was sent to a FIFO queue, the queue is grouped, and messages without a group are served as
  the group NO_GROUP. At that moment the last ready message of each priority joins NO_GROUP, unless it has a group
  because it was moved here.
- A message above a limit of its group is held (group_limit.py). A message that was delivered too often
  (`rules.exhausted`) is moved or deleted. The claim goes on with the next one.
- parts/wakes.py says what a claim leaves to the next batch. If a claim moved or removed a ready message of a group, the
  group counts as freed.

Splitting the claim into a SELECT and an UPDATE by key is safe because there is no other writer. It costs half as much
as one UPDATE ... RETURNING, which builds two temporary tables. If the batch itself sent everything that is ready,
neither of them runs: those messages are stored leased (inserts.py).

If not every ready message may be delivered (claim_filter.py), the SELECT is repeated for the messages that are still
wanted. By then those that were filtered out are no longer ready.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby
from random import getrandbits
from typing import Any

from forq_trio.model import limits
from forq_trio.model.commands import Claim, RedrivePolicy
from forq_trio.model.messages.types import Delivery, claim_token, receipt_text
from forq_trio.model.messages.where import Where
from forq_trio.model.queues.settings import QueueRules
from forq_trio.storage.allowance import Allowance, Step
from forq_trio.storage.engine import CONSUMED, DEFERRED, WAIT, Deferred, Receiver
from forq_trio.storage.lease_marks import RANDOM_BITS
from forq_trio.storage.relational.operations.claim_filter import (
    Terms,
    attempts_of,
    behind_head,
    bytes_of,
    select_allowed,
    select_ready,
)
from forq_trio.storage.relational.operations.group_limit import GroupLimit
from forq_trio.storage.relational.operations.rate_limit import claimable, spend, wake_queue
from forq_trio.storage.relational.rehearsal import each_rehearsed
from forq_trio.storage.relational.row import ReadyRow, read_attributes
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import beginning_with, share, slices, waited_ms
from forq_trio.storage.transitions import PROCESSING, READY

Deliveries = tuple[Delivery, ...]
Receivers = Mapping[str, Sequence[Receiver]]

_Dealt = tuple[list[tuple[int, Deliveries]], list[tuple[int, Deliveries | Deferred]]]
"""What the receivers of a queue got (by id), and what its claims got (by index)."""

_CLAIM_STEPS = (Step.DELIVER, Step.FILTER, Step.SET_ASIDE)


def claim(
    tx: Transaction, claims: Sequence[Claim], receivers: Receivers
) -> tuple[list[Deliveries | Deferred], list[tuple[int, Deliveries]]]:
    """Serve, queue by queue, the parked receivers of queues with new ready messages, then the batch's own claims."""
    tx.begin_step()
    outcomes: list[Deliveries | Deferred] = [()] * len(claims)
    served: list[tuple[int, Deliveries]] = []
    own: dict[str, list[int]] = {}
    for index, command in enumerate(claims):
        own.setdefault(command.queue, []).append(index)
    queues = queues_to_claim(tx, claims, receivers)

    def serve(queue: str) -> _Dealt:
        return _serve(tx, queue, claims, own.get(queue, ()), receivers.get(queue, ()))

    nearby = not tx.connection.is_distant  # then there is nothing to rehearse
    if nearby or all(tx.inserts.holds_all(queue, tx.counts.ready(queue)) for queue in queues):
        dealt = [serve(queue) for queue in queues]
    else:
        dealt = each_rehearsed(tx, queues, serve, lambda queue: [queue])
    for found, answers in dealt:
        served += found
        for index, outcome in answers:
            outcomes[index] = outcome
    return outcomes, served


def _serve(
    tx: Transaction, queue: str, claims: Sequence[Claim], mine: Sequence[int], receivers: Sequence[Receiver]
) -> _Dealt:
    """Serve the receivers that wait for one queue, then those of the claims that are for it: `mine`, by index."""
    used_up = tx.allowances.used_up
    ready = claimable(tx, queue)
    if not ready:
        wake_queue(tx, queue)
        return [], []
    if not tx.wakes.claim_first_next and (tx.waited_out or used_up(*_CLAIM_STEPS, Step.SCAN)):
        tx.wakes.claim_first_next = queue
    waiting = receivers[:ready]
    picks = any(receiver.claim.where for receiver in waiting)
    if picks:
        waiting = receivers  # a message that does not match the first ones may match the others
    wanted = [*(receiver.claim for receiver in waiting), *(claims[index] for index in mine)]
    shares = _claim_queue(tx, queue, wanted, ready)
    found = [
        (receiver.id, deliveries)
        for receiver, deliveries in zip(waiting, shares[: len(waiting)], strict=True)
        if deliveries
    ]
    left = claimable(tx, queue) > 0
    cut_short = left and (queue in tx.scans.cut or tx.waited_out or used_up(*_CLAIM_STEPS))
    is_full_round = len(found) == limits.RECEIVERS_OFFERED_MAX
    is_full_offer = len(waiting) >= limits.RECEIVERS_OFFERED_MAX // 2
    if cut_short or (left and (is_full_round or (found and is_full_offer and picks))):
        tx.wakes.next.add(queue)
    if not all(shares) or len(waiting) < len(receivers) or is_full_round:
        wake_queue(tx, queue)
    return found, [
        (index, deliveries or (DEFERRED if cut_short else ()))
        for index, deliveries in zip(mine, shares[len(waiting) :], strict=True)
    ]


def queues_to_claim(tx: Transaction, claims: Sequence[Claim], receivers: Receivers) -> list[str]:
    """The queues with claims, or with parked receivers and new ready messages, in the order of serving them."""
    queues = {command.queue for command in claims}
    if receivers:
        queues.update(queue for queue in tx.wakes.woken if queue in receivers)
        queues.update(queue for queue in tx.wakes.elsewhere if queue in receivers)
    return beginning_with(sorted(queues), tx.wakes.claim_first)


def _claim_queue(tx: Transaction, queue: str, claims: Sequence[Claim], ready: int) -> list[Deliveries]:
    """Lease messages of one queue to these claims, in their order."""
    limit = GroupLimit(tx, queue)
    rules = limit.rules
    if any(command.where for command in claims):
        return _claim_by_attributes(tx, limit, claims)
    if limit.strict:
        return [_claim_in_order(tx, limit, command) for command in claims]
    sizes = share(ready, [command.max_messages for command in claims])
    results: list[Deliveries] = []
    start = 0
    for (shuffle, policy), group in groupby(claims, key=_terms):
        alike = list(group)
        parts = sizes[start : start + len(alike)]
        deliveries = _lease(tx, limit, _lengths(rules, alike, parts), Terms(shuffle, policy))
        results += [tuple(part) for part in slices(deliveries, parts)]
        start += len(alike)
    return results


def _claim_in_order(tx: Transaction, limit: GroupLimit, command: Claim) -> Deliveries:
    """Serve a claim on a queue with strict groups: alone, because it may have several messages of a group."""
    limit.begin_claim()
    size = min(command.max_messages, claimable(tx, limit.queue, with_held=True))
    terms = Terms(shuffle=False, redrive_policy=command.redrive_policy)
    return tuple(_lease(tx, limit, _lengths(limit.rules, [command], [size]), terms))


def _lengths(rules: QueueRules, claims: Sequence[Claim], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """The lengths of their leases (ms), and how many messages in a row have each."""
    lengths: list[tuple[int, int]] = []
    for command, size in zip(claims, sizes, strict=True):
        lease_ms = rules.lease_ms if command.lease_ms is None else command.lease_ms
        if lengths and lengths[-1][0] == lease_ms:
            size += lengths.pop()[1]
        lengths.append((lease_ms, size))
    return lengths


def _claim_by_attributes(tx: Transaction, limit: GroupLimit, claims: Sequence[Claim]) -> list[Deliveries]:
    """`_claim_queue` for claims by attributes: one at a time, as nobody knows beforehand how many messages match."""
    queue, rules = limit.queue, limit.rules
    steps = _scan_steps(tx, claims)
    results: list[Deliveries] = []
    for command in claims:
        if limit.strict:  # one with conditions would have to pass over the first messages of groups
            results.append(() if command.where else _claim_in_order(tx, limit, command))
            continue
        terms = Terms(*_terms(command), where=command.where)
        lease_ms = rules.lease_ms if command.lease_ms is None else command.lease_ms
        lengths = [(lease_ms, min(command.max_messages, claimable(tx, queue)))]
        results.append(tuple(_lease(tx, limit, lengths, terms, steps.get(command.where))))
    if any(step.used_up for step in steps.values()) and not all(results):
        tx.scans.cut.add(queue)
    return results


def _scan_steps(tx: Transaction, claims: Sequence[Claim]) -> dict[Where, Allowance]:
    """How many messages may be read for each condition of these claims: equal parts of what is left of the allowance.

    Only the first RECEIVERS_OFFERED_MAX conditions get a part, which are more than wait for a queue.
    """
    left = tx.allowances.of(Step.SCAN)
    wheres = list(dict.fromkeys(command.where for command in claims if command.where))
    look = 0 if left.used_up else limits.RECEIVERS_OFFERED_MAX
    parts = min(len(wheres), limits.RECEIVERS_OFFERED_MAX)
    most, bytes_max = max(left.messages // parts, 1), max(left.bytes // parts, 1)
    return {where: Allowance(most if index < look else 0, bytes_max) for index, where in enumerate(wheres)}


def first_ready(tx: Transaction, claims: Sequence[Claim], more: int = 0) -> tuple[Any, ...]:
    """The statement and bindings with which a batch of these claims will read messages; () if that is not certain.

    more: how many more messages are ready than this process knows of.
    """
    first = claims[0]
    rules, counts = tx.rules(first.queue), tx.counts.committed.get(first.queue)
    terms = Terms(*_terms(first), where=first.where)
    alike = all(each.queue == first.queue and _terms(each) == _terms(first) for each in claims)
    if counts is None or not alike or not terms.takes_anything:
        return ()
    count = min(counts.ready + more, sum([command.max_messages for command in claims]))
    if not count or rules.in_flight_max is not None or rules.rate is not None:
        return ()
    heads = tx.heads
    assert heads is not None
    return behind_head(heads, first.queue, heads.first(first.queue, count, frozenset()), count)


def _terms(command: Claim) -> tuple[bool, RedrivePolicy | None]:
    return command.shuffle, command.redrive_policy


def _lease(
    tx: Transaction,
    limit: GroupLimit,
    lengths: Sequence[tuple[int, int]],
    terms: Terms,
    scan: Allowance | None = None,
) -> list[Delivery]:
    """Lease messages of a queue. lengths: (length of the lease in ms, how many messages at most get it), in order.

    scan: how much a claim by attributes may read.
    """
    deliveries: list[Delivery] = []
    count = sum([most for _, most in lengths])
    delivering = tx.allowances.of(Step.DELIVER)
    if count == 0 or delivering.used_up or tx.waited_out:
        return []
    if terms.takes_anything and limit.has_no_limit_nor_held and not tx.isolated:
        rows = select_ready(tx, limit.queue, min(count, delivering.messages), delivering.bytes)
        if max(map(attempts_of, rows), default=0) < limit.rules.max_attempts:
            delivering.charge(len(rows), sum(map(bytes_of, rows)))
            for lease_ms, most in lengths:
                deliveries += _deliver(tx, limit.queue, rows[len(deliveries) :][:most], lease_ms)
            return deliveries
    # One read for all lengths together: otherwise leases of 256 lengths would wait for the database 256 times.
    while rows := select_allowed(tx, limit, count - len(deliveries), terms, scan):
        for (lease_ms, _), end in zip(lengths, accumulate(most for _, most in lengths), strict=True):
            while rows and len(deliveries) < end:
                room = end - len(deliveries)
                deliveries += _deliver_each(tx, limit, rows[:room], lease_ms)
                rows = rows[room:]
        if tx.waited_out:
            break
    return deliveries


def _deliver_each(
    tx: Transaction, limit: GroupLimit, rows: Sequence[ReadyRow], lease_ms: int
) -> list[Delivery]:
    """`_deliver`. In an isolated batch a message that cannot be delivered to any claim is set aside alone."""
    if not tx.isolated:
        return _deliver(tx, limit.queue, rows, lease_ms)
    deliveries: list[Delivery] = []

    def deliver(row: ReadyRow, lease_ms: int) -> None:
        deliveries.extend(_deliver(tx, limit.queue, [row], lease_ms))

    for row in rows:
        error = tx.attempt(partial(deliver, row, lease_ms))
        if error is None:
            continue
        if tx.attempt(partial(deliver, row, limits.LEASE_MS_DEFAULT)) is None:
            raise error  # the claim is at fault, not the message, and is undone
        limit.set_aside(row, error)
    return deliveries


def _deliver(tx: Transaction, queue: str, rows: Sequence[ReadyRow], lease_ms: int) -> list[Delivery]:
    """Lease these ready messages. There may be none if the redrive policy of another claim removed them."""
    if not rows:
        return []
    now_ms = tx.now_ms
    lease_until = now_ms + lease_ms
    grouped = queue in tx.grouped
    deliveries = []
    leases = []
    waits = tx.figures.measured(WAIT, queue)
    mark = tx.lease_mark
    for (
        seq,
        message_id,
        content,
        attempts,
        received_at,
        priority,
        first_received_at,
        attributes,
        group_id,
        process_after,
        position,
        _,
        key,
        kind,
        max_attempts,
    ) in rows:
        token = mark | getrandbits(RANDOM_BITS) if mark else claim_token(message_id)
        attempts += 1
        if first_received_at is None:
            first_received_at = now_ms
        leases.append((attempts, first_received_at, now_ms, now_ms, lease_until, token, seq))
        waits.append(waited_ms(process_after, received_at, now_ms))
        if grouped:
            tx.rounds.reach(queue, priority, position)
        delivery = Delivery(
            message_id,
            content,
            receipt_text(seq, token),
            attempts,
            seq,
            received_at,
            lease_until,
            priority,
            first_received_at,
            (attributes and read_attributes(attributes)) or {},
            group_id or None,
            key,
            kind if key and kind else "",
            max_attempts,
        )
        deliveries.append(delivery)
    tx.run("lease", tx.inserts.lease(queue, leases))
    tx.transition(CONSUMED, queue, READY, PROCESSING, rows, due_ms=lease_until)
    spend(tx, queue, rows)
    return deliveries
