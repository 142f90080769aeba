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
from forq_trio.storage.consumers import PageLine, encode_lines
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
def lease(tx: Transaction, command: LeaseMessages) -> PipelineConsumer | LeasesFull:
    """Add pages to a lease until it is complete, or nothing more can be leased."""
    while True:
        filling = _to_fill(tx, _current(tx, command), command)
        if filling is None:
            return _current(tx, command).told()
        has_space = _make_space(tx, command)
        if not has_space and not filling.pages:
            return LeasesFull()  # not raised, so that what was evicted is gone
        page = _next_page(tx, command, filling) if has_space else None
        if page is None and not filling.pages:
            return _note_use_now_and_then(tx, _current(tx, command))
        told = _add(tx, command, filling, page)
        if page is None:
            return told


def _to_fill(tx: Transaction, consumer: StoredConsumer, command: LeaseMessages) -> Lease | None:
    """The lease that gets the next page; None if it is readable and complete."""
    for each in consumer.unsettled:
        if each.number == command.number:
            return None if each.complete else each
    if command.number in [each.number for each in consumer.kept]:
        return None
    if command.number <= consumer.leased:
        raise LeaseGone
    if command.ahead and len(consumer.unsettled) == 1:
        (before,) = consumer.unsettled
        if before.complete and command.number == before.number + 1:
            return _new_lease(tx, consumer)
    next_number = consumer.leased + 1 if consumer.open is None else consumer.open.number
    if command.number != next_number:
        raise LeaseOutOfOrder(f"the turn is lease {next_number}'s, not {command.number}'s")
    return _new_lease(tx, consumer)


def _new_lease(tx: Transaction, consumer: StoredConsumer) -> Lease:
    """A new lease, which stores the time of the one before it."""
    return Lease(consumer.leased + 1, tx.now_ms, dict(consumer.made).get(consumer.leased, 0))


def _next_page(tx: Transaction, command: LeaseMessages, filling: Lease) -> Page | None:
    """Lease messages for a page; None if there are none."""
    if tx.rules(command.queue).paused:
        return None
    token = secrets.randbits(62)
    claims = QueueClaims(tx, command.queue)

    def hand_out(row: Row) -> tuple[int, bytes]:
        leased = claims.lease(row, limits.CONSUMER_LEASE_MS, token)
        return leased.seq, encode_lines([_line(leased)])

    handed_out = claims.fill(
        min(command.max_messages - filling.messages, limits.CONSUMER_PAGE_MESSAGES_MAX), hand_out
    )
    if not handed_out:
        wake_queue(tx, command.queue)
        return None
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


def _add(tx: Transaction, command: LeaseMessages, filling: Lease, page: Page | None) -> PipelineConsumer:
    """Add a page to a lease. None: there were no more messages."""
    consumer, longer = _current(tx, command), filling
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


def _make_space(tx: Transaction, command: LeaseMessages) -> bool:
    """Delete acknowledged leases of the consumer that is idle for longest; False if all of them are not enough."""
    while competing := _competing(tx, command):
        with_kept = [each for each in competing if each.kept]
        if not with_kept:
            return False
        _save(tx, _without_kept(min(with_kept, key=lambda each: each.used_at), 1))
    return True


@operation(SettleLease)
def settle(tx: Transaction, command: SettleLease) -> PipelineConsumer:
    consumer = _current(tx, command)
    if command.how is Settling.ACKNOWLEDGE:
        _check_made_at(consumer, command)
        if command.number > consumer.acknowledged:
            _check_acknowledging(consumer, command)
            return _save(tx, _acknowledge(tx, replace(consumer, used_at=tx.now_ms)))
    elif consumer.open is not None and consumer.open.number == command.number:
        if command.how is Settling.RELEASE and command.generation is None:
            consumer = replace(consumer, generation=consumer.generation + 1)
        if command.how is Settling.RELEASE or consumer.is_idle(tx.now_ms):
            return _save(tx, _give_back(tx, consumer, command.how))
    return consumer.told()


def _check_made_at(consumer: StoredConsumer, command: SettleLease) -> None:
    """Raise OtherLease for a lease that was made at another time, if the time of that lease is still known."""
    readable = [lease.number for lease in (*consumer.kept, *consumer.unsettled)]
    told = {*readable, *(number - 1 for number in readable), consumer.leased}
    made_at = dict(consumer.made).get(command.number)
    if command.number in told and None not in (made_at, command.made_at) and made_at != command.made_at:
        raise OtherLease(
            f"lease {command.number} was made at {made_at}, not at {command.made_at}: it is another one"
        )


def _check_acknowledging(consumer: StoredConsumer, command: SettleLease) -> None:
    """Raise the error for a lease that may not be acknowledged."""
    if command.number > consumer.leased:
        raise LeaseOutOfOrder(f"the newest lease is {consumer.leased}, not {command.number}")
    unsettled = [each for each in consumer.unsettled if each.number == command.number]
    if not unsettled:
        raise LeaseGone(f"lease {command.number} was given back")
    if not unsettled[0].complete:
        raise LeaseOutOfOrder(f"lease {command.number} is not complete")


def _acknowledge(tx: Transaction, consumer: StoredConsumer) -> StoredConsumer:
    """The consumer after its open lease is acknowledged, with as many acknowledged leases as may stay."""
    lease = consumer.open
    assert lease is not None
    for row in _still_leased(tx, consumer.queue, lease):
        ack_row(tx, row)
    consumer = replace(consumer.with_lease(replace(lease, ended=True)), acknowledged=lease.number)
    too_many = len(consumer.kept) - limits.CONSUMER_LEASES_KEPT_MAX
    sizes = [lease.size for lease in consumer.kept]
    too_large = sum(sum(sizes[at:]) > limits.CONSUMER_KEPT_BYTES_MAX for at in range(len(sizes)))
    return _without_kept(consumer, max(too_many, too_large, 0))


def _give_back(tx: Transaction, consumer: StoredConsumer, how: Settling) -> StoredConsumer:
    """The consumer after its open lease is given back, with the one that was made ahead."""
    for lease in consumer.unsettled:
        for row in _still_leased(tx, consumer.queue, lease):
            if how is Settling.RELEASE:
                release_row(tx, row, 0)
            else:
                tx.end_lease(engine.STALE_RECOVERED, row, failures=tx.failures_with(row, LEASE_ENDED))
    return replace(consumer, leases=tuple(consumer.kept), released_before=consumer.unsettled[-1].number + 1)


def _still_leased(tx: Transaction, queue: str, lease: Lease) -> list[Row]:
    """The messages of a lease that still have its receipts and are still in its queue."""
    named = [(page, seq) for page in lease.pages for seq in page.sequences if seq in tx.state.rows]
    rows = [(page, tx.state.rows[seq]) for page, seq in named]
    return [row for page, row in rows if row.queue == queue and row.token == page.token]


@operation(MoveBack)
def move_back(tx: Transaction, command: MoveBack) -> None:
    """Nothing to do: in the oracle leased messages never leave the table."""


@operation(DropPages)
def drop(tx: Transaction, command: DropPages) -> PipelineConsumer | None:
    consumer = _find(tx, command.queue, command.name)
    if consumer is None:
        return None
    return _save(tx, _without_kept(consumer)) if consumer.is_idle(tx.now_ms) else consumer.told()


@operation(ForgetConsumer)
def forget(tx: Transaction, command: ForgetConsumer) -> PipelineConsumer | None:
    consumer = _find(tx, command.queue, command.name)
    if consumer is None:
        return None
    if command.generation is None:
        consumer = replace(consumer, generation=consumer.generation + 1)
    else:
        consumer = _current(tx, command)
    if consumer.open is None:
        _remove(tx, consumer)
        return None
    return _save(tx, _without_kept(consumer))


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
    """The consumer without its oldest acknowledged leases: without `count` of them, or all."""
    gone = consumer.kept[:count]
    return replace(consumer, leases=tuple(lease for lease in consumer.leases if lease not in gone))


def _save(tx: Transaction, consumer: StoredConsumer) -> PipelineConsumer:
    tx.state.consumers[consumer_key(consumer.queue, consumer.name)] = consumer
    return consumer.told()
