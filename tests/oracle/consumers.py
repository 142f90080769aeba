"""The reference engine: consumers and their leases."""

import msgspec

from forq_trio.model import limits
from forq_trio.model.commands import (
    DropPages,
    ForgetConsumer,
    LeaseMessages,
    NoteConsumerUse,
    OpenConsumer,
    SettleLease,
)
from forq_trio.model.consumers import Consumer, ConsumerTotals, Settling, consumer_key
from forq_trio.model.errors import LeasesFull
from forq_trio.model.messages import LEASE_ENDED
from forq_trio.storage import consumers as rules
from forq_trio.storage import engine
from forq_trio.storage.allowance import Allowance, Step
from forq_trio.storage.consumers import Line, encode_lines
from forq_trio.storage.engine import DEFERRED, Deferred
from oracle.claim import QueueClaims
from oracle.settle import ack_row, release_row
from oracle.state import Page, Row
from oracle.transaction import Transaction


def _totals(tx: Transaction) -> ConsumerTotals:
    pages_bytes = sum(each.stored_bytes for each in tx.state.consumers.values())
    return ConsumerTotals(pages_bytes, tx.state.forgotten_generation, tx.state.forgotten_number)


def open_consumer(tx: Transaction, command: OpenConsumer) -> Consumer:
    return _save(
        tx,
        rules.opened(tx.state.consumers, _totals(tx), command, tx.now_ms, tx.state.forgotten_numbers.get),
    )


def lease(tx: Transaction, command: LeaseMessages) -> Consumer | Deferred:
    if tx.allowances.used_up(Step.LEASE):
        return DEFERRED
    consumer = _lease_page(tx, command)
    while consumer is not DEFERRED and rules.filling(consumer) and not tx.allowances.used_up(Step.LEASE):
        more = _lease_page(tx, command)
        if more is DEFERRED:
            break
        consumer = more
    return consumer


def _lease_page(tx: Transaction, command: LeaseMessages) -> Consumer | Deferred:
    known = tx.state.consumers
    filling = rules.lease_to_fill(known, command, tx.now_ms)
    if filling is None:
        return known[consumer_key(command.queue, command.name)]
    is_full = rules.is_full(_totals(tx))
    if is_full:
        evicting = rules.evicting(known)
        if evicting is not None:
            _drop(tx, evicting)
            return DEFERRED
        if not filling.pages:
            raise LeasesFull
    rows, token = [], rules.page_token()
    if not tx.rules(command.queue).paused and not is_full:
        claims = QueueClaims(tx, command.queue)
        most = min(command.max_messages - filling.messages, limits.CONSUMER_PAGE_MESSAGES_MAX)
        rows = claims.fill(
            most,
            lambda row: claims.lease(row, limits.CONSUMER_LEASE_MS, token),
            step=Step.LEASE,
            bytes_of=lambda row: rules.line_bytes(_line(row)),
        )
        if not rows and claims.open and tx.allowances.used_up(Step.FILTER):
            return DEFERRED
    body = encode_lines([_line(row) for row in rows])
    if rows:
        page = Page(token, tuple(row.seq for row in rows), body)
        tx.state.pages[command.queue, command.name, filling.number, filling.pages] = page
    return _save(tx, rules.with_page(known, command, filling, len(rows), len(body), tx.now_ms))


def _line(row: Row) -> Line:
    return Line(
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


def settle(tx: Transaction, command: SettleLease) -> Consumer | Deferred:
    allowance = tx.allowances.of(Step.SETTLE_LEASE)
    if allowance.used_up:
        return DEFERRED
    consumer = rules.lease_to_settle(tx.state.consumers, command, tx.now_ms)
    if consumer is None:
        return tx.state.consumers[consumer_key(command.queue, command.name)]
    while consumer.open is not None and not allowance.used_up:
        consumer = _settle_page(tx, command, consumer, allowance)
    return _drop(tx, consumer)


def _settle_page(tx: Transaction, command: SettleLease, consumer: Consumer, allowance: Allowance) -> Consumer:
    assert consumer.open is not None
    key = (command.queue, command.name, consumer.open.number, consumer.settled_pages)
    page = tx.state.pages[key]
    allowance.charge(limits.CONSUMER_PAGE_MESSAGES_MAX, 0)
    for seq in page.sequences:
        row = tx.state.rows.get(seq)
        if row is None or row.token != page.token or row.queue != command.queue:
            continue
        allowance.charge(0, row.bytes)
        match consumer.settling:
            case Settling.RELEASE:
                release_row(tx, row, 0)
            case Settling.EXPIRE:
                tx.end_lease(engine.STALE_RECOVERED, row, failures=tx.failures_with(row, LEASE_ENDED))
            case _:
                ack_row(tx, row)
    if consumer.being_given_back:
        del tx.state.pages[key]
    return rules.after_settled_page(consumer)


def drop(tx: Transaction, command: DropPages) -> Consumer | None:
    consumer = tx.state.consumers.get(consumer_key(command.queue, command.name))
    if consumer is None:
        return None
    return _drop(tx, rules.without_kept(consumer) if consumer.is_idle(tx.now_ms) else consumer)


def forget(tx: Transaction, command: ForgetConsumer) -> Consumer | None:
    consumer = rules.to_forget(tx.state.consumers, command)
    if consumer is None:
        return None
    consumer = _drop(tx, consumer)
    if consumer.open is not None or consumer.dropping:
        return consumer
    del tx.state.consumers[consumer.key]
    tx.state.forgotten_generation = max(tx.state.forgotten_generation, consumer.generation)
    if consumer.leased:
        numbers = tx.state.forgotten_numbers
        numbers.pop(consumer.key, None)
        numbers[consumer.key] = consumer.leased
        if len(numbers) > limits.CONSUMER_NUMBERS_MAX:
            dropped = numbers.pop(next(iter(numbers)))
            tx.state.forgotten_number = max(tx.state.forgotten_number, dropped)
    return None


def note_use(tx: Transaction, command: NoteConsumerUse) -> None:
    consumer = tx.state.consumers.get(consumer_key(command.queue, command.name))
    if consumer is not None:
        _save(tx, msgspec.structs.replace(consumer, used_at=tx.now_ms))


def _drop(tx: Transaction, consumer: Consumer) -> Consumer:
    """Delete some pages that are no longer to be read, and store the consumer."""
    allowance = tx.allowances.of(Step.DROP)
    consumer, pages = rules.dropped(consumer, allowance.messages)
    allowance.charge(len(pages), 0)
    for number, page in pages:
        del tx.state.pages[consumer.queue, consumer.name, number, page]
    return _save(tx, consumer)


def _save(tx: Transaction, consumer: Consumer) -> Consumer:
    tx.state.consumers[consumer.key] = consumer
    return consumer
