"""The reference engine: the tokens of rates, as fractions.

A bucket that lacks nothing, or was used with another rate, has all its tokens.
"""

from fractions import Fraction
from math import ceil, floor

from forq_trio.model.messages.types import Status
from forq_trio.model.queues.setting_values import Rate, RatePer
from oracle.state import Bucket, Row
from oracle.transaction import Transaction

Owner = tuple[str, str]
"""A queue and a group, "" for the bucket of the queue."""


def missing(tx: Transaction, owner: Owner, rate: Rate) -> Fraction:
    """How many tokens a bucket lacks, including the missing fraction of the next one."""
    bucket = tx.state.buckets.get(owner)
    if bucket is None or bucket.rate != (rate.count, rate.period_ms):
        return Fraction(0)
    return max(Fraction(0), (bucket.full_at - tx.now_ms) * rate.count / rate.period_ms)


def tokens(tx: Transaction, owner: Owner, rate: Rate) -> int:
    return max(0, floor(rate.count - missing(tx, owner, rate)))


def take_token(tx: Transaction, row: Row) -> None:
    """Take the tokens for a message that is delivered."""
    rate = tx.rules(row.queue).rate
    if rate is None or (rate.per is RatePer.GROUP and not row.group):
        return
    owner = (row.queue, (row.group or "") if rate.per is RatePer.GROUP else "")
    out = missing(tx, owner, rate) + 1
    full_at = tx.now_ms + out * rate.period_ms / rate.count
    tx.state.buckets[owner] = Bucket((rate.count, rate.period_ms), full_at)
    note_limited(tx, row)


def wake_at_next_token(tx: Transaction, owner: Owner, rate: Rate) -> None:
    """Wake the queue or free the group that waits for a token: now if there is one, else when the next one comes."""
    wait = (missing(tx, owner, rate) - (rate.count - 1)) * rate.period_ms / rate.count
    tx.state.wakes[owner] = tx.now_ms + max(0, ceil(wait))


def wake_queue(tx: Transaction, queue: str) -> None:
    """Note that somebody waits for messages of a queue."""
    rate = tx.rules(queue).queue_rate
    if rate is None or tx.rules(queue).paused or not tx.state.claimable(queue):
        return
    if not tokens(tx, (queue, ""), rate):
        wake_at_next_token(tx, (queue, ""), rate)


def note_limited(tx: Transaction, row: Row) -> None:
    """Note that a message is delivered or held, so that its group may have held messages and no token."""
    if row.group and tx.rules(row.queue).group_rate is not None:
        tx.limited.add((row.queue, row.group))


def wake_limited(tx: Transaction) -> None:
    """At the end of a batch, make sure that the held messages of these groups become ready when they may."""
    for queue, group in tx.limited:
        rate, bound = tx.rules(queue).group_rate, tx.rules(queue).group_in_flight_max
        is_held = any(row.group == group for row in tx.state.of_queue(queue, Status.HELD))
        if rate is None or not is_held:
            continue
        if tx.rules(queue).strict_groups and tx.state.in_process(queue, group):
            continue
        is_full = bound is not None and tx.state.in_process(queue, group) >= bound
        if not (is_full and tokens(tx, (queue, group), rate)):
            wake_at_next_token(tx, (queue, group), rate)


def settle_wakes(tx: Transaction) -> None:
    due = sorted((at, owner) for owner, at in tx.state.wakes.items() if at <= tx.now_ms)
    for _, (queue, group) in due:
        del tx.state.wakes[queue, group]
        if group:
            tx.freed.add((queue, group))
        else:
            tx.woken.add(queue)
