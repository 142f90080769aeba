"""The reference engine: consumers and their leases.

Written from the docstrings of the commands and the rules in `storage/consumers.py`, whose functions it does not use.
"""

import secrets

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import (
    DropPages,
    ForgetConsumer,
    LeaseMessages,
    MoveBack,
    NoteConsumerUse,
    OpenConsumer,
    SettleLease,
)
from forq_trio.model.consumers.types import PipelineConsumer, Settling, consumer_key
from forq_trio.model.errors import (
    ConsumerFenced,
    ConsumerNotFound,
    LeaseGone,
    LeaseOutOfOrder,
    LeasesFull,
    OtherLease,
    TooManyConsumers,
)
from forq_trio.model.messages.types import LEASE_ENDED
from forq_trio.storage import engine
from forq_trio.storage.allowance import Step
from forq_trio.storage.consumers import PageLine, encode_lines
from forq_trio.storage.engine import DEFERRED, Deferred
from oracle.claim import QueueClaims
from oracle.leases import Lease, Page, StoredConsumer
from oracle.operations import operation
from oracle.rates import wake_queue
from oracle.settle import ack_row, release_row
from oracle.state import Row
from oracle.transaction import Transaction


@operation(OpenConsumer)
def open_consumer(tx: Transaction, command: OpenConsumer) -> PipelineConsumer:
    there = _find(tx, command.queue, command.name)
    if there is None:
        there = _made(tx, command)
    return _save(
        tx,
        replace(
            there,
            generation=there.generation + 1,
            idle_ms=there.idle_ms if command.idle_ms is None else command.idle_ms,
            opened_at=tx.now_ms,
            used_at=tx.now_ms,
        ),
    )


def _made(tx: Transaction, command: OpenConsumer) -> StoredConsumer:
    """A new consumer that is not opened yet."""
    makers = [each.made_by for each in tx.state.consumers.values()]
    if len(makers) >= limits.CONSUMERS_MAX:
        raise TooManyConsumers
    if makers.count(command.key.name) >= limits.CONSUMERS_A_KEY_MAX:
        raise TooManyConsumers(
            f"this key has made {limits.CONSUMERS_A_KEY_MAX} consumers, as many as one may; delete some first"
        )
    key = consumer_key(command.queue, command.name)
    leased, acknowledged = tx.state.forgotten_numbers.get(key, (tx.state.forgotten_number, 0))
    return StoredConsumer(
        queue=command.queue,
        name=command.name,
        made_by=command.key.name,
        generation=tx.state.forgotten_generation,
        idle_ms=limits.CONSUMER_IDLE_SECONDS_DEFAULT * limits.SECOND_MS,
        leased=leased,
        acknowledged=acknowledged,
        released_before=0 if acknowledged == leased else leased + 1,
        opened_at=tx.now_ms,
        used_at=tx.now_ms,
        created_at=tx.now_ms,
    )


@operation(LeaseMessages)
def lease(tx: Transaction, command: LeaseMessages) -> PipelineConsumer | Deferred:
    """Add pages to a lease until it is complete, or nothing more can be leased in this batch."""
    outcome: PipelineConsumer | Deferred = DEFERRED
    while not tx.allowances.used_up(Step.LEASE):
        consumer = _current(tx, command)
        filling = _to_fill(tx, consumer, command)
        if filling is None:
            return consumer.told()
        page = _next_page(tx, command, filling)
        if isinstance(page, Deferred):
            break
        if page is None and not filling.pages:
            return _note_use_now_and_then(tx, consumer)
        outcome = _add(tx, consumer, command, filling, page)
        if page is None:
            break
    return outcome


def _to_fill(tx: Transaction, consumer: StoredConsumer, command: LeaseMessages) -> Lease | None:
    """The lease that gets the next page; None if it is readable and complete."""
    open_lease = consumer.open
    given_back = open_lease is not None and open_lease.given_back
    for each in consumer.unsettled:
        if each.number == command.number and not given_back:
            return None if each.complete or each.how is not None else each
    if command.number in [each.number for each in consumer.kept]:
        return None
    if command.number <= consumer.leased:
        raise LeaseGone
    if command.ahead and len(consumer.unsettled) == 1:
        (before,) = consumer.unsettled
        if before.complete and before.how is None and command.number == before.number + 1:
            return _new_lease(tx, consumer)
    next_number = consumer.leased + 1 if open_lease is None else open_lease.number
    if command.number != next_number:
        raise LeaseOutOfOrder(f"the turn is lease {next_number}'s, not {command.number}'s")
    return _new_lease(tx, consumer)


def _new_lease(tx: Transaction, consumer: StoredConsumer) -> Lease:
    """A new lease, which stores the time of the one before it."""
    return Lease(consumer.leased + 1, tx.now_ms, dict(consumer.made).get(consumer.leased, 0))


def _next_page(tx: Transaction, command: LeaseMessages, filling: Lease) -> Page | Deferred | None:
    """Lease messages for a page; None if there are none. DEFERRED: this batch cannot tell, but the next one can."""
    competing = _competing(tx, command)
    if competing:
        if _evict(tx, competing):
            return DEFERRED
        if not filling.pages:
            raise LeasesFull
        return None
    if tx.rules(command.queue).paused:
        return None
    token = secrets.randbits(62)
    claims = QueueClaims(tx, command.queue)

    def hand_out(row: Row) -> tuple[int, bytes]:
        leased = claims.lease(row, limits.CONSUMER_LEASE_MS, token)
        return leased.seq, encode_lines([_line(leased)])

    handed_out = claims.fill(
        min(command.max_messages - filling.messages, limits.CONSUMER_PAGE_MESSAGES_MAX),
        hand_out,
        step=Step.LEASE,
        bytes_of=lambda handed: len(handed[1]),
    )
    if not handed_out:
        wake_queue(tx, command.queue)
        cut_short = claims.open and tx.allowances.used_up(Step.FILTER)
        return DEFERRED if cut_short else None
    return Page(token, tuple(seq for seq, _ in handed_out), b"".join(line for _, line in handed_out))


def _line(row: Row) -> PageLine:
    return PageLine(
        row.id,
        row.queue,
        row.seq,
        row.content,
        row.received_at,
        row.attempts,
        row.priority,
        row.shown_group,
        row.attributes or None,
    )


def _add(
    tx: Transaction, consumer: StoredConsumer, command: LeaseMessages, filling: Lease, page: Page | None
) -> PipelineConsumer:
    """Add a page to a lease. None: there were no more messages."""
    longer = filling
    if page is not None:
        longer = replace(filling, pages=(*filling.pages, page), made_at=tx.now_ms)
    fits_more = longer.messages < command.max_messages and longer.size < command.max_bytes
    longer = replace(longer, complete=(page is None and not command.ahead) or not fits_more)
    made = dict(consumer.made) | {longer.number: longer.made_at}
    longest = replace(consumer.with_lease(longer), leased=longer.number, made=tuple(made.items()))
    return _save(tx, replace(longest, used_at=tx.now_ms))


def _note_use_now_and_then(tx: Transaction, consumer: StoredConsumer) -> PipelineConsumer:
    is_noted = tx.now_ms < consumer.used_at + limits.CONSUMER_USE_SAVE_MS
    return consumer.told() if is_noted else _save(tx, replace(consumer, used_at=tx.now_ms))


def _competing(tx: Transaction, command: LeaseMessages) -> list[StoredConsumer]:
    """The consumers, sorted by key, that have reached a bound on bytes that also holds for this consumer."""
    everyone = [tx.state.consumers[key] for key in sorted(tx.state.consumers)]
    made_by = _current(tx, command).made_by
    same_key = [each for each in everyone if each.made_by == made_by]
    for competing, most in (
        (everyone, limits.CONSUMER_PAGES_BYTES_MAX),
        (same_key, limits.CONSUMER_PAGES_BYTES_A_KEY_MAX),
    ):
        if sum(lease.size for each in competing for lease in each.leases) >= most:
            return competing
    return []


def _evict(tx: Transaction, competing: list[StoredConsumer]) -> bool:
    """Delete pages that are not needed: of a consumer whose deletion has begun, or else the one idle for longest."""
    longest_unused = sorted(competing, key=lambda each: each.used_at)
    for consumer in longest_unused:
        if consumer.dropping:
            _drop(tx, consumer)
            return True
    for consumer in longest_unused:
        if consumer.kept:
            _drop(tx, _without_kept(consumer, 1))
            return True
    return False


@operation(SettleLease)
def settle(tx: Transaction, command: SettleLease) -> PipelineConsumer | Deferred:
    allowance = tx.allowances.of(Step.SETTLE_LEASE)
    if allowance.used_up:
        return DEFERRED
    consumer = _current(tx, command)
    if command.how is Settling.ACKNOWLEDGE:
        _check_made_at(consumer, command)
        if command.number <= consumer.acknowledged:
            return consumer.told()
        consumer = _acknowledging(tx, consumer, command)
    elif consumer.open is None or consumer.open.number != command.number:
        return consumer.told()
    elif consumer.open.how is None:
        if command.how is Settling.EXPIRE and not consumer.is_idle(tx.now_ms):
            return consumer.told()
        if command.how is Settling.RELEASE and command.generation is None:
            consumer = replace(consumer, generation=consumer.generation + 1)
    settling = consumer.open
    assert settling is not None
    how = settling.how or command.how
    while True:
        for page in settling.pages[settling.settled :]:
            if allowance.used_up:
                break
            allowance.charge(limits.CONSUMER_PAGE_MESSAGES_MAX, 0)
            for row in _still_leased(tx, command.queue, page):
                allowance.charge(0, row.bytes)
                _settle_message(tx, row, how)
            settling = replace(settling, settled=settling.settled + 1)
        consumer = _after_settling(consumer, replace(settling, how=how))
        following = consumer.open
        if how is Settling.ACKNOWLEDGE or following is None or following.number == settling.number:
            return _drop(tx, consumer)
        settling = replace(following, how=how)
        consumer = consumer.with_lease(settling)


def _check_made_at(consumer: StoredConsumer, command: SettleLease) -> None:
    """Raise OtherLease for a lease that was made at another time, if the time of that lease is still known."""
    readable = [lease.number for lease in (*consumer.kept, *consumer.unsettled)]
    told = {*readable, *(number - 1 for number in readable), consumer.leased}
    made_at = dict(consumer.made).get(command.number)
    if command.number in told and None not in (made_at, command.made_at) and made_at != command.made_at:
        raise OtherLease(
            f"lease {command.number} was made at {made_at}, not at {command.made_at}: it is another one"
        )


def _acknowledging(tx: Transaction, consumer: StoredConsumer, command: SettleLease) -> StoredConsumer:
    """The consumer, noted as used now, if its open lease may be acknowledged."""
    if command.number > consumer.leased:
        raise LeaseOutOfOrder(f"the newest lease is {consumer.leased}, not {command.number}")
    held = [each for each in consumer.unsettled if each.number == command.number]
    if not held or (consumer.open is not None and consumer.open.given_back):
        raise LeaseGone(f"lease {command.number} was given back")
    if not held[0].complete and held[0].how is None:
        raise LeaseOutOfOrder(f"lease {command.number} is not complete")
    return replace(consumer, used_at=tx.now_ms)


def _still_leased(tx: Transaction, queue: str, page: Page) -> list[Row]:
    """The messages of a page that still have its receipts and are still in its queue."""
    rows = [tx.state.rows[seq] for seq in page.sequences if seq in tx.state.rows]
    return [row for row in rows if row.queue == queue and row.token == page.token]


def _settle_message(tx: Transaction, row: Row, how: Settling) -> None:
    if how is Settling.ACKNOWLEDGE:
        ack_row(tx, row)
    elif how is Settling.RELEASE:
        release_row(tx, row, 0)
    else:
        tx.end_lease(engine.STALE_RECOVERED, row, failures=tx.failures_with(row, LEASE_ENDED))


def _after_settling(consumer: StoredConsumer, settling: Lease) -> StoredConsumer:
    """The consumer after some or all pages of its open lease are settled."""
    if settling.settled < len(settling.pages):
        return consumer.with_lease(settling)
    if settling.given_back:
        others = tuple(lease for lease in consumer.leases if lease.number != settling.number)
        return replace(consumer, leases=others, released_before=settling.number + 1)
    ended = consumer.with_lease(replace(settling, ended=True))
    ended = replace(ended, acknowledged=settling.number)
    too_many = len(ended.kept) - limits.CONSUMER_LEASES_KEPT_MAX
    sizes = [lease.size for lease in ended.kept]
    too_large = sum(sum(sizes[at:]) > limits.CONSUMER_KEPT_BYTES_MAX for at in range(len(sizes)))
    return _without_kept(ended, max(too_many, too_large, 0))


@operation(MoveBack)
def move_back(tx: Transaction, command: MoveBack) -> None:
    """Nothing to do: in the oracle leased messages never leave the table."""


@operation(DropPages)
def drop(tx: Transaction, command: DropPages) -> PipelineConsumer | None:
    consumer = _find(tx, command.queue, command.name)
    if consumer is None:
        return None
    return _drop(tx, _without_kept(consumer) if consumer.is_idle(tx.now_ms) else consumer)


@operation(ForgetConsumer)
def forget(tx: Transaction, command: ForgetConsumer) -> PipelineConsumer | None:
    consumer = _find(tx, command.queue, command.name)
    if consumer is None:
        return None
    if command.generation is None:
        consumer = replace(consumer, generation=consumer.generation + 1)
    else:
        consumer = _current(tx, command)
    told = _drop(tx, _without_kept(consumer))
    if told.open is None and not told.dropping:
        _remove(tx, consumer)
        return None
    return told


def _remove(tx: Transaction, consumer: StoredConsumer) -> None:
    """Remove a consumer, and store its numbers."""
    state, key = tx.state, consumer_key(consumer.queue, consumer.name)
    del state.consumers[key]
    state.forgotten_generation = max(state.forgotten_generation, consumer.generation)
    if consumer.leased == 0:
        return
    oldest_first = [each for each in state.forgotten_numbers.items() if each[0] != key]
    oldest_first.append((key, (consumer.leased, consumer.acknowledged)))
    if len(oldest_first) > limits.CONSUMER_NUMBERS_MAX:
        _, (number, _) = oldest_first.pop(0)
        state.forgotten_number = max(state.forgotten_number, number)
    state.forgotten_numbers = dict(oldest_first)


@operation(NoteConsumerUse)
def note_use(tx: Transaction, command: NoteConsumerUse) -> None:
    consumer = _find(tx, command.queue, command.name)
    if consumer is not None:
        _save(tx, replace(consumer, used_at=tx.now_ms))


def _find(tx: Transaction, queue: str, name: str) -> StoredConsumer | None:
    return tx.state.consumers.get(consumer_key(queue, name))


def _current(tx: Transaction, command: LeaseMessages | SettleLease | ForgetConsumer) -> StoredConsumer:
    """The consumer of a command, provided it is in the command's generation."""
    consumer = _find(tx, command.queue, command.name)
    if consumer is None:
        raise ConsumerNotFound
    if command.generation not in (None, consumer.generation):
        raise ConsumerFenced(
            f"the consumer is open in generation {consumer.generation}, not {command.generation}"
        )
    return consumer


def _without_kept(consumer: StoredConsumer, count: int | None = None) -> StoredConsumer:
    """The consumer with its oldest acknowledged leases marked to be dropped: `count` of them, or all."""
    numbers = [lease.number for lease in consumer.kept][:count]
    leases = (
        replace(lease, dropping=True) if lease.number in numbers else lease for lease in consumer.leases
    )
    return replace(consumer, leases=tuple(leases))


def _drop(tx: Transaction, consumer: StoredConsumer) -> PipelineConsumer:
    """Delete some pages that nobody may read any more: the oldest lease first, and in a lease the last page first."""
    allowance = tx.allowances.of(Step.DROP)
    leases: list[Lease] = []
    for lease in consumer.leases:
        if lease.dropping:
            pages = min(len(lease.pages) - lease.dropped, max(allowance.messages, 0))
            allowance.charge(pages, 0)
            lease = replace(lease, dropped=lease.dropped + pages)
        if lease.dropped < len(lease.pages):
            leases.append(lease)
    return _save(tx, replace(consumer, leases=tuple(leases)))


def _save(tx: Transaction, consumer: StoredConsumer) -> PipelineConsumer:
    tx.state.consumers[consumer_key(consumer.queue, consumer.name)] = consumer
    return consumer.told()
