"""Consumers: a step leases, settles or drops some pages; storage/consumers.py has the rules."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TypeVar

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
from forq_trio.model.consumers.types import PipelineConsumer, Settling, consumer_key
from forq_trio.model.errors import CallerError, ForqError, LeasesFull
from forq_trio.storage import consumers as rules
from forq_trio.storage.allowance import Allowance, Step
from forq_trio.storage.consumers import PageLine, encode_lines
from forq_trio.storage.engine import ACKED, CONSUMED, DEFERRED, RELEASED, WAIT, Deferred
from forq_trio.storage.relational.operations.claim_filter import (
    Terms,
    attempts_of,
    select_allowed,
    select_ready,
)
from forq_trio.storage.relational.operations.due import end_leases
from forq_trio.storage.relational.operations.group_limit import GroupLimit
from forq_trio.storage.relational.operations.moved_pages import (
    MovedPage,
    PageName,
    move,
    move_back,
    moved_page,
)
from forq_trio.storage.relational.operations.rate_limit import claimable, spend, wake_queue
from forq_trio.storage.relational.operations.returned import return_message
from forq_trio.storage.relational.operations.settle import measure, remove_acked
from forq_trio.storage.relational.operations.table import carry_out_each, operation, operation_on_each
from forq_trio.storage.relational.row import (
    ATTEMPTS,
    ATTRIBUTES,
    CONTENT,
    GROUP_ID,
    ID,
    POSITION,
    PRIORITY,
    PROCESS_AFTER,
    RECEIVED_AT,
    SEQ,
    ReadyRow,
    Row,
    read_attributes,
    rows_of,
)
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import after_release, uncounted, waited_ms
from forq_trio.storage.transitions import PROCESSING, READY

Leased = tuple[ReadyRow, PageLine]
CommandT = TypeVar("CommandT")
OutcomeT = TypeVar("OutcomeT")

_encode = msgspec.json.Encoder().encode
_NOTHING: tuple[Sequence[ReadyRow], bytes] = (), b""


def _refusing(
    operation: Callable[[Transaction, CommandT], OutcomeT],
) -> Callable[[Transaction, CommandT], OutcomeT | ForqError]:
    """Decorate an operation so that an error with which it refuses its command becomes the outcome.

    To be applied below `operation_on_each`, because an exception would make the whole batch run again, isolated. Only
    for errors that are raised before anything is changed; all others are passed on.
    """

    @wraps(operation)
    def outcome(tx: Transaction, command: CommandT) -> OutcomeT | ForqError:
        try:
            return operation(tx, command)
        except (CallerError, LeasesFull) as error:
            return error

    return outcome


@operation_on_each(OpenConsumer, changes=lambda _, command: [command.queue])
@_refusing
def open_one(tx: Transaction, command: OpenConsumer) -> PipelineConsumer:
    return _save(
        tx, rules.opened(tx.consumers, tx.consumers.totals, command, tx.now_ms, partial(_numbers_of, tx))
    )


def _numbers_of(tx: Transaction, key: str) -> rules.ForgottenNumbers | None:
    found = tx.query("find_consumer_numbers", key)
    return rules.ForgottenNumbers(*found[0]) if found else None


@operation_on_each(LeaseMessages, changes=lambda _, command: [command.queue])
@_refusing
def lease(tx: Transaction, command: LeaseMessages) -> PipelineConsumer | Deferred:
    """Make pages of a lease, as many as the allowance permits."""
    if tx.allowances.used_up(Step.LEASE):
        return DEFERRED
    consumer = _lease_page(tx, command)
    while (
        not isinstance(consumer, Deferred)
        and rules.filling(consumer, command.number)
        and not tx.allowances.used_up(Step.LEASE)
    ):
        more = _lease_page(tx, command)
        if isinstance(more, Deferred) or more == consumer:
            break
        consumer = more
    return consumer


def _lease_page(tx: Transaction, command: LeaseMessages) -> PipelineConsumer | Deferred:
    queue = command.queue
    filling = rules.lease_to_fill(tx.consumers, command, tx.now_ms)
    if filling is None:
        return tx.consumers[consumer_key(queue, command.name)]
    made_by = tx.consumers[consumer_key(queue, command.name)].made_by
    sharing = rules.sharing_full_bound(tx.consumers, tx.consumers.totals, made_by)
    if sharing:
        evicting = rules.evicting(sharing)
        if evicting is not None:
            _drop(tx, evicting)
            return DEFERRED
        if not filling.pages:
            raise LeasesFull
    rows, body = _NOTHING
    token = rules.page_token()
    most = 0 if sharing else min(claimable(tx, queue), command.max_messages - filling.messages)
    if most:
        name = PageName(queue, command.name, filling.number, filling.pages)
        rows, body = _take(tx, name, most, token)
        cut_short = any(map(tx.allowances.used_up, (Step.FILTER, Step.SET_ASIDE)))
        if not rows and cut_short and claimable(tx, queue):
            return DEFERRED
    elif not sharing:
        wake_queue(tx, queue)
    if rows:
        sequences = str([row[SEQ] for row in rows])
        tx.query("insert_page", *name, token, sequences, body)
    return _save(tx, rules.with_page(tx.consumers, command, filling, len(rows), len(body), tx.now_ms))


def _take(tx: Transaction, name: PageName, messages_max: int, token: int) -> tuple[Sequence[ReadyRow], bytes]:
    """Lease ready messages in claim order, as many as the allowance permits; returns their rows and their lines."""
    queue = name.queue
    leasing = tx.allowances.of(Step.LEASE)
    limit = GroupLimit(tx, queue)
    count = min(messages_max, leasing.messages, limits.CONSUMER_PAGE_MESSAGES_MAX)
    if count <= 0:
        return _NOTHING
    if limit.has_no_limit_nor_held and not tx.isolated:
        rows = select_ready(tx, queue, count, leasing.bytes)
        if max(map(attempts_of, rows), default=0) < tx.rules(queue).max_attempts:
            body = rules.first_lines(encode_lines([_line(queue, row) for row in rows]), leasing.bytes)
            del rows[body.count(b"\n") :]
            leasing.charge(len(rows), len(body))
            _mark_leased(tx, name, rows, token)
            return rows, body
    leased: list[Leased] = []
    terms = Terms(False, None, Step.LEASE, partial(_line_bytes, queue))
    while rows := select_allowed(tx, limit, count - len(leased), terms):
        allowed = _lines(tx, limit, rows)
        _mark_leased(tx, name, [row for row, _ in allowed], token)
        leased += allowed
    return [row for row, _ in leased], encode_lines([line for _, line in leased])


def _mark_leased(tx: Transaction, name: PageName, rows: Sequence[ReadyRow], token: int) -> None:
    """Lease these ready messages, with this token in their receipts; the plain ones move into their page."""
    now_ms, queue = tx.now_ms, name.queue
    lease_until = now_ms + limits.CONSUMER_LEASE_MS
    if not rows:
        return
    waits = tx.figures.measured(WAIT, queue)
    waits += [waited_ms(row[PROCESS_AFTER], row[RECEIVED_AT], now_ms) for row in rows]
    if queue in tx.grouped:
        for row in rows:
            tx.rounds.reach(queue, row[PRIORITY], row[POSITION])
    if in_place := move(tx, name, token, lease_until, rows):
        tx.query("lease_page", now_ms, lease_until, token, str([row[SEQ] for row in in_place]))
    tx.transition(CONSUMED, queue, READY, PROCESSING, rows, due_ms=lease_until)
    spend(tx, queue, rows)


def _lines(tx: Transaction, limit: GroupLimit, rows: Sequence[ReadyRow]) -> list[Leased]:
    """The lines of these messages. In an isolated batch a damaged one is set aside alone."""
    if not tx.isolated:
        return [(row, _line(limit.queue, row)) for row in rows]
    leased: list[Leased] = []
    for row in rows:
        done: list[Leased] = []
        error = tx.attempt(lambda row=row, done=done: done.append(_checked(limit.queue, row)))  # type: ignore[misc]
        if error is None:
            leased += done
        else:
            limit.set_aside(row, error)
    return leased


def _checked(queue: str, row: ReadyRow) -> Leased:
    """A row and its line; fails if it is damaged."""
    waited_ms(row[PROCESS_AFTER], row[RECEIVED_AT], 0)
    return row, _line(queue, row)


def _line(queue: str, row: ReadyRow) -> PageLine:
    """The line of a message, with this delivery counted."""
    return PageLine(
        row[ID],
        queue,
        row[SEQ],
        row[CONTENT],
        row[RECEIVED_AT],
        row[ATTEMPTS] + 1,
        row[PRIORITY],
        row[GROUP_ID] or None,
        read_attributes(row[ATTRIBUTES] or None),
    )


def _line_bytes(queue: str, row: ReadyRow) -> int:
    try:
        return rules.line_bytes(_line(queue, row))
    except (ValueError, TypeError, msgspec.MsgspecError):
        return 0  # a damaged message, which will be set aside


@operation_on_each(SettleLease, changes=lambda _, command: [command.queue])
@_refusing
def settle(tx: Transaction, command: SettleLease) -> PipelineConsumer | Deferred:
    """Settle pages of a lease, as many as the allowance permits."""
    allowance = tx.allowances.of(Step.SETTLE_LEASE)
    if allowance.used_up:
        return DEFERRED
    consumer = rules.lease_to_settle(tx.consumers, command, tx.now_ms)
    if consumer is None:
        return tx.consumers[consumer_key(command.queue, command.name)]
    while consumer.settling is not None and not allowance.used_up:
        consumer = _settle_page(tx, command, consumer, allowance)
    return _drop(tx, consumer)


def _settle_page(
    tx: Transaction, command: SettleLease, consumer: PipelineConsumer, allowance: Allowance
) -> PipelineConsumer:
    assert consumer.open is not None
    page = PageName(command.queue, command.name, consumer.open.number, consumer.settled_pages)
    ((token, sequences, *leased),) = tx.query("find_leased_page", *page)
    allowance.charge(limits.CONSUMER_PAGE_MESSAGES_MAX, 0)
    moved = None if leased[0] is None else moved_page(page, token, *leased)
    if moved is not None and (consumer.being_given_back or tx.history.log.enabled):
        move_back(tx, moved)
        moved = None
    if moved is not None:
        allowance.charge(0, moved.bytes)
        _remove_acked_page(tx, moved)
    if moved is None or len(moved.messages) <= sequences.count(","):
        found = rows_of(tx.query("find_by_sequence", sequences))
        still_leased = [row for row in found if row.receipt == token and row.queue == command.queue]
        allowance.charge(0, sum([row.bytes for row in still_leased]))
        _settle(tx, consumer, still_leased)
    if consumer.being_given_back:
        tx.query("drop_page", *page)
    return rules.after_settled_page(consumer)


def _remove_acked_page(tx: Transaction, moved: MovedPage) -> None:
    """Remove the moved messages of a page that their consumer acknowledged; their lines stay."""
    queue = moved.name.queue
    measure(tx, queue, [(each.received_at, moved.leased_at) for each in moved.messages])
    tx.endings.note_acks(moved.rows)
    tx.query("drop_moved", *moved.name)
    tx.transition(ACKED, queue, PROCESSING, None, moved.rows, size=moved.bytes)


def _settle(tx: Transaction, consumer: PipelineConsumer, still_leased: Sequence[Row]) -> None:
    match consumer.settling:
        case Settling.RELEASE:
            _release(tx, still_leased)
        case Settling.EXPIRE:
            end_leases(tx, still_leased)
        case _:
            remove_acked(tx, still_leased)


def _release(tx: Transaction, still_leased: Sequence[Row]) -> None:
    """Release messages as if they had never been leased."""
    returned = after_release(0, tx.now_ms)
    tx.run(
        "return_message",
        [return_message(tx, RELEASED, row, returned, uncounted(row.attempts)) for row in still_leased],
    )


@operation_on_each(DropPages)
def drop(tx: Transaction, command: DropPages) -> PipelineConsumer | None:
    consumer = tx.consumers.get(consumer_key(command.queue, command.name))
    if consumer is None:
        return None
    return _drop(tx, rules.without_kept(consumer) if consumer.is_idle(tx.now_ms) else consumer)


@operation(ForgetConsumer)
def forget_all(
    tx: Transaction, commands: Sequence[ForgetConsumer]
) -> list[PipelineConsumer | ForqError | Deferred | None]:
    """Forget consumers, and drop the oldest lease numbers only once, because that reads CONSUMER_NUMBERS_MAX rows."""
    outcomes = carry_out_each(tx, commands, forget, lambda _, command: [command.queue])
    if None in tx.consumers.changed.values():
        dropped = [number for (number,) in tx.query("drop_consumer_numbers", limits.CONSUMER_NUMBERS_MAX)]
        totals = tx.consumers.totals = rules.without_numbers(tx.consumers.totals, dropped)
        tx.query("save_forgotten_consumers", totals.forgotten_generation, totals.forgotten_number)
    return outcomes


@_refusing
def forget(tx: Transaction, command: ForgetConsumer) -> PipelineConsumer | None:
    consumer = rules.to_forget(tx.consumers, command)
    if consumer is None:
        return None
    consumer = _drop(tx, consumer)
    if consumer.open is not None or consumer.dropping:
        return consumer
    tx.query("forget_consumer", command.queue, command.name)
    del tx.consumers[consumer.key]
    if consumer.leased:
        tx.query("save_consumer_numbers", consumer.key, consumer.leased, consumer.acknowledged)
    tx.consumers.totals = rules.with_forgotten(tx.consumers.totals, consumer)
    return None


@operation_on_each(NoteConsumerUse)
def note_use(tx: Transaction, command: NoteConsumerUse) -> None:
    consumer = tx.consumers.get(consumer_key(command.queue, command.name))
    if consumer is not None:
        _save(tx, msgspec.structs.replace(consumer, used_at=tx.now_ms))


def _drop(tx: Transaction, consumer: PipelineConsumer) -> PipelineConsumer:
    """Delete some pages that nobody may read any more, and store the consumer."""
    allowance = tx.allowances.of(Step.DROP)
    consumer, pages = rules.dropped(consumer, allowance.messages)
    allowance.charge(len(pages), 0)
    tx.run("drop_page", [(consumer.queue, consumer.name, number, page) for number, page in pages])
    return _save(tx, consumer)


def _save(tx: Transaction, consumer: PipelineConsumer) -> PipelineConsumer:
    known = tx.consumers.get(consumer.key)
    if known != consumer:
        tx.query("save_consumer", consumer.queue, consumer.name, _encode(consumer).decode())
        tx.consumers[consumer.key] = consumer
        totals = tx.consumers.totals
        size, leased = (0, 0) if known is None else (known.stored_bytes, known.leased_bytes)
        tx.consumers.totals = msgspec.structs.replace(
            totals,
            pages_bytes=totals.pages_bytes + consumer.stored_bytes - size,
            leased_bytes=totals.leased_bytes + consumer.leased_bytes - leased,
        )
    return consumer
