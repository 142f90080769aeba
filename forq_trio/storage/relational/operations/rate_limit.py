"""How many messages the limits of a queue allow now, and the tokens of its rate.

- A paused queue delivers nothing, not even to parked receivers. The batch that resumes it serves them.
- A claim, or a lease of a consumer, gets only as many messages as `in_flight_max` permits besides those in process; the
  rest stays ready. The queue counts as woken once a message is no longer in process, or when the bound is changed.
- A delivery takes a token from the bucket of its queue's `rate`, or from that of its group. A bucket starts with all
  `count` tokens, and regains one every period_ms / count until it has all. Tokens that were taken are stored in the
  batch of the delivery. A bucket that was used with another rate counts as full.
- A claim or lease gets no more messages than the bucket of the queue has tokens. If it has none and somebody got
  nothing, the queue counts as woken as soon as there is one. For the buckets of groups see group_limit.py.
- When the rate is changed, the queue counts as woken, and its held messages become ready.

A bucket is stored as one number, the time when it is full again; until then one token is missing for every
period_ms / count. That time is in fractions of a millisecond, `count` of them to each, so it is a whole number and
nothing is ever rounded. A bucket without a row is full.
"""

from collections import Counter
from collections.abc import Sequence

from forq_trio.model import limits
from forq_trio.model.queues.setting_values import Rate, RatePer
from forq_trio.storage.relational.parts.groups import Group
from forq_trio.storage.relational.row import GROUP_ID, ReadyRow
from forq_trio.storage.relational.transaction import Transaction

_WHOLE_QUEUE = ""


def claimable(tx: Transaction, queue: str, *, with_held: bool = False) -> int:
    """How many messages of a queue could be delivered now, if their groups' limits permit.

    with_held: also those that are held behind ready ones.
    """
    ready = tx.counts.ready(queue)
    if ready <= 0:
        return 0
    rules = tx.rules(queue)
    if rules.paused:
        return 0
    if with_held:
        ready += tx.counts.of(queue).held
    if rules.in_flight_max is not None:
        ready = min(ready, in_flight_left(tx, queue, rules.in_flight_max))
    if ready and (rate := rules.queue_rate) is not None:
        ready = min(ready, tokens(tx, (queue, _WHOLE_QUEUE), rate))
    return ready


def in_flight_left(tx: Transaction, queue: str, in_flight_max: int) -> int:
    """How many more messages of a queue may be processing at once."""
    return max(0, in_flight_max - tx.counts.of(queue).processing)


def tokens(tx: Transaction, bucket: Group, rate: Rate) -> int:
    """How many tokens a bucket has now."""
    return max(0, _tokens(_full_at(tx, bucket, rate), rate, tx.now_ms))


def spend(tx: Transaction, queue: str, rows: Sequence[ReadyRow]) -> None:
    """Take the tokens for messages that were just delivered."""
    rate = tx.rules(queue).rate
    if rate is None or not rows:
        return
    if rate.per is RatePer.QUEUE:
        _take(tx, (queue, _WHOLE_QUEUE), rate, len(rows))
        return
    taken = Counter([row[GROUP_ID] for row in rows if row[GROUP_ID]])
    for group_id, number in taken.items():
        _take(tx, (queue, group_id), rate, number)
        tx.rates.limited.add((queue, group_id))
    tx.lookups.buckets_taken += len(taken)


def expire_buckets(tx: Transaction) -> None:
    """Drop up to two full buckets for each one that was taken from, so that rows do not pile up until the sweep."""
    if tx.lookups.buckets_taken:
        tx.run("expire_some_buckets", [(tx.now_ms, 2 * tx.lookups.buckets_taken)])


def wake_queue(tx: Transaction, queue: str) -> None:
    """Have a queue woken when its next token comes, if tokens are missing: a claim waits for its messages."""
    rules = tx.rules(queue)
    rate = rules.queue_rate
    if rate is None or rules.paused or tx.counts.ready(queue) <= 0:
        return
    bucket = queue, _WHOLE_QUEUE
    if not tokens(tx, bucket, rate):
        wake(tx, bucket, next_token_ms(tx, bucket, rate))


def settle_wakes(tx: Transaction) -> None:
    """Wake the queues, and free the groups, whose awaited tokens have come."""
    for queue, group_id in (
        tx.query("take_wakes", tx.now_ms, limits.DUE_BATCH_MAX) if tx.rates.has_buckets else ()
    ):
        if group_id == _WHOLE_QUEUE:
            tx.wakes.woken.add(queue)
        else:
            tx.freed.add((queue, group_id))


def next_wake(tx: Transaction) -> list[int]:
    """When the next awaited token comes; an empty list for never."""
    return [at for (at,) in tx.query("next_wake")] if tx.rates.has_buckets else []


def _full_at(tx: Transaction, bucket: Group, rate: Rate) -> int:
    """When the bucket is full again, in fractions of a millisecond; now if it is full."""
    now = tx.now_ms * rate.count
    if not tx.rates.has_buckets:
        return now
    key = (*bucket, rate.count, rate.period_ms)
    if key not in tx.lookups.buckets:
        found = tx.query("find_bucket", *key)
        tx.lookups.buckets[key] = found[0][0] if found else now
    return max(now, tx.lookups.buckets[key])


def look_up_buckets(tx: Transaction, buckets: Sequence[tuple[Group, Rate]]) -> None:
    """Read, all at once, when these buckets are full again."""
    keys = [(*bucket, rate.count, rate.period_ms) for bucket, rate in buckets] if tx.rates.has_buckets else []
    unknown = [key for key in keys if key not in tx.lookups.buckets]
    for key, found in zip(unknown, tx.query_each("find_bucket", unknown), strict=True):
        tx.lookups.buckets[key] = found[0][0] if found else 0


def _tokens(full_at: int, rate: Rate, now_ms: int) -> int:
    return (now_ms * rate.count + rate.count * rate.period_ms - full_at) // rate.period_ms


def _take(tx: Transaction, bucket: Group, rate: Rate, number: int) -> None:
    full_at = _full_at(tx, bucket, rate) + number * rate.period_ms
    full_ms = -(-full_at // rate.count)
    tx.lookups.buckets[*bucket, rate.count, rate.period_ms] = full_at
    tx.query("save_bucket", *bucket, rate.count, rate.period_ms, full_at, full_ms)
    tx.rates.has_buckets = True
    if rate.per is RatePer.QUEUE:
        tx.rates.full_at[bucket[0]] = full_ms


def next_token_ms(tx: Transaction, bucket: Group, rate: Rate) -> int:
    """When an empty bucket has a token (epoch ms)."""
    full_at = _full_at(tx, bucket, rate)
    return -(-(full_at - (rate.count - 1) * rate.period_ms) // rate.count)


def wake(tx: Transaction, bucket: Group, at_ms: int) -> None:
    """Have the queue of this bucket woken, or its group freed, at this time (epoch ms)."""
    tx.query("save_wake", *bucket, at_ms)
    tx.due.note(at_ms)
