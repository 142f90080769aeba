"""Offers: messages with a key are stored, changed, or left as they are; and the commands that name a key.

- A key is unique in its queue and kind while its message is pending: stored, and not a dead letter. A dead letter has
  no key. When it is moved to a queue, it gets its key back if that is free there; otherwise it has none any more.
- An offer with the content, options and due time of the pending message changes nothing, and does not end a lease. The
  due time that counts is the one that was offered, even if a nack has changed it since. An offer without a time equals
  any message that is due already.
- Any other change makes the message like one that was just sent, but with its old id and sequence number, and, if group
  and priority stay the same, its old position. Its attempts start again, and if it is in process its receipt is no
  longer current. Each change has a revision, a new sequence number; that of a new message is its sequence number.
- An offer that adds bytes to a message is refused if the queue has no space for them.

One SELECT finds the pending messages of a command's keys; a key that comes twice in the command is looked up again. In
a bounded queue that evicts messages an offer may evict some, so each offer is looked up alone there. Contents that
offers replace, or are compared with, are charged to their allowance; the next batch continues with the other offers.
"""

from collections.abc import Hashable, Iterator, Sequence
from json import dumps
from typing import NamedTuple

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import AckRevision, DropKey, DropKeys, OfferMany, PurgeStep, RescheduleKey
from forq_trio.model.errors import ForqError, KeyExists, MessageInFlight, QueueFull
from forq_trio.model.keys.types import Offered, Offering, Outcome
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.setting_values import Order, Overflow
from forq_trio.model.queues.settings import QueueRules
from forq_trio.storage.allowance import Allowance, within
from forq_trio.storage.engine import DEFERRED, OFFERED, Deferred
from forq_trio.storage.relational.operations.dead_letters import drop, resized
from forq_trio.storage.relational.operations.groups import position_and_group
from forq_trio.storage.relational.operations.isolation import settle_each
from forq_trio.storage.relational.operations.send import Key, is_bounded, look_up, send
from forq_trio.storage.relational.operations.settle import remove_acked
from forq_trio.storage.relational.operations.table import carry_out_each, operation, operation_on_each
from forq_trio.storage.relational.operations.waiting import store_waiting
from forq_trio.storage.relational.row import Row, read_attributes, rows_of, write_attributes
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.relational.waiting_offers import Waiting, read_waiting, write_waiting
from forq_trio.storage.rules import Space, above, debounced, due_time, message_bytes, offers_bound
from forq_trio.storage.transitions import DELAYED, FAILED, PROCESSING, READY, UPDATED

_ROW_COLUMNS = len(Row.__struct_fields__)


class Pending(NamedTuple):
    """A pending message with its key: the columns `row` and `pending` of engine.sql."""

    row: Row
    key: str
    attributes: str | None
    mode: str
    due: int
    revision: int
    offers: int
    first_offer_at: int
    max_wait_until: int | None
    waiting_bytes: int
    has_waiting: bool


def _changes_of_offers(tx: Transaction, command: OfferMany) -> list[Hashable]:
    """The keys of a command; for a full queue the whole queue, because an offer may evict another one's message."""
    queue = command.queue
    if _may_evict(tx, queue):
        return [queue]
    return [(queue, each.kind, each.key) for each in command.offerings]


def _may_evict(tx: Transaction, queue: str) -> bool:
    rules = tx.rules(queue)
    return is_bounded(rules) and rules.overflow is not Overflow.REJECT


def _changes_of_key(_: Transaction, command: RescheduleKey | AckRevision | DropKey) -> list[Hashable]:
    return [(command.queue, command.kind, command.key)]


def _changes_of_queue(_: Transaction, command: DropKeys) -> list[Hashable]:
    return [command.queue]


@operation(OfferMany)
def offer_all(
    tx: Transaction, commands: Sequence[OfferMany]
) -> list[tuple[Offered | ForqError, ...] | Deferred]:
    look_up(tx, [(command.queue, each.message) for command in commands for each in command.offerings])
    return carry_out_each(tx, commands, offer, _changes_of_offers)


def offer(tx: Transaction, command: OfferMany) -> tuple[Offered | ForqError, ...] | Deferred:
    queue = command.queue
    may_evict = _may_evict(tx, queue)
    newest = tx.sequence.last
    outcomes: list[Offered | ForqError] = []
    allowance = tx.allowances.of(OfferMany)
    for run in _runs(command.offerings, 1 if may_evict else limits.PRODUCE_BATCH_MAX):
        store_waiting(tx)
        offers = _Offers(tx, queue, run, newest)
        for each in run:
            is_left = allowance.used_up or (bool(outcomes) and tx.waited_out)
            outcome = DEFERRED if is_left else offers.take(each)
            if isinstance(outcome, Deferred):
                offers.write()
                return Deferred(tuple(outcomes))
            if isinstance(outcome, Offered):
                tx.figures.count(OFFERED, queue, outcome.outcome, 1)
            outcomes.append(outcome)
        offers.write()
    return tuple(outcomes)


def _runs(offerings: Sequence[Offering], most: int) -> Iterator[Sequence[Offering]]:
    """Split offers into parts of at most `most`, none of which has a key twice."""
    seen: set[Key] = set()
    start = 0
    for index, each in enumerate(offerings):
        key = each.kind, each.key
        if key in seen or index - start == most:
            yield offerings[start:index]
            start = index
            seen.clear()
        seen.add(key)
    if start < len(offerings):
        yield offerings[start:]


def _find(tx: Transaction, queue: str, keys: Sequence[Key]) -> dict[Key, Pending]:
    """The pending messages of these keys."""
    found = {}
    for columns in tx.query("find_pending", queue, dumps(keys)):
        row = Row(*columns[:_ROW_COLUMNS])
        pending = Pending(row, *columns[_ROW_COLUMNS:])
        found[str(row.kind), pending.key] = pending
    return found


def _find_one(tx: Transaction, command: RescheduleKey | AckRevision | DropKey) -> Pending | None:
    store_waiting(tx)
    return next(iter(_find(tx, command.queue, [(command.kind, command.key)]).values()), None)


class _Offers:
    """Offers of different keys to one queue, and the statements that are still to be run for them."""

    def __init__(self, tx: Transaction, queue: str, offerings: Sequence[Offering], newest: int) -> None:
        self._tx = tx
        self._queue = queue
        self._rules = tx.rules(queue)
        self._newest = newest
        self._pending = _find(tx, queue, [(each.kind, each.key) for each in offerings])
        self._new_keys: list[tuple[object, ...]] = []
        self._look_up(offerings)

    def _look_up(self, offerings: Sequence[Offering]) -> None:
        """For a database over the network: read at once which offers wait behind these keys, and compare contents."""
        tx = self._tx
        self._waiting: dict[int, bytes] = {}
        self._same: dict[int, bool] = {}
        pairs = [(each, self._pending.get((each.kind, each.key))) for each in offerings]
        known = [
            (each, pending)
            for each, pending in pairs
            if pending is not None and not each.mode.startswith("create")
        ]
        if len(known) < 2 or not tx.connection.is_distant:
            return
        waiting = [(pending.row.seq,) for _, pending in known if pending.has_waiting]
        for (seq,), ((text,),) in zip(waiting, tx.query_each("read_waiting", waiting), strict=True):
            self._waiting[seq] = text
        alike = [(pending.row.seq, each.content) for each, pending in known if _has_options(each, pending)]
        for (seq, _), ((same,),) in zip(alike, tx.query_each("has_content", alike), strict=True):
            self._same[seq] = bool(same)

    def write(self) -> None:
        self._tx.write_inserts()
        self._tx.run("insert_key", self._new_keys)

    def take(self, offering: Offering) -> Offered | ForqError | Deferred:
        pending = self._pending.get((offering.kind, offering.key))
        if pending is None:
            return self._create(offering)
        if offering.mode == "create":
            return KeyExists()
        if offering.mode == "createIfAbsent":
            return self._ignore(offering, pending)
        self._tx.allowances.of(OfferMany).charge(1, pending.row.bytes)
        if pending.row.status == PROCESSING and offering.mode in ("debounce", "onceMore"):
            return self._let_wait(offering, pending)
        return self._update(offering, pending)

    def _create(self, offering: Offering) -> Offered | ForqError | Deferred:
        tx, now_ms = self._tx, self._tx.now_ms
        due, max_wait_until = _due(tx, offering, self._rules, now_ms)
        message = replace(offering.message, process_after=due, delay_ms=None)
        stored = send(tx, self._queue, (message,), self._newest, key=(offering.kind, offering.key))
        if not isinstance(stored, list):
            return stored
        (made,) = stored
        self._new_keys.append(
            (
                made.sequence,
                offering.key,
                offering.mode,
                due,
                made.sequence,
                1,
                now_ms,
                now_ms,
                max_wait_until,
            )
        )
        return Offered("created", made.id, made.sequence, due, made.sequence)

    def _ignore(self, offering: Offering, pending: Pending) -> Offered:
        row = pending.row
        self._tx.query("note_offer", offering.mode, self._tx.now_ms, row.seq)
        return Offered("ignored", row.id, row.seq, pending.due, pending.revision)

    def _update(self, offering: Offering, pending: Pending) -> Offered | ForqError:
        """Change a message that is not in process, or take it away from its consumer (D7)."""
        tx, row, now_ms = self._tx, pending.row, self._tx.now_ms
        due, max_wait_until = _due(tx, offering, self._rules, pending.first_offer_at)
        stays_due = offering.mode == "debounce" and row.status != DELAYED
        if stays_due:
            due = now_ms
        same_time = stays_due or _is_same_time(offering, due, pending.due, now_ms)
        if not pending.has_waiting and same_time and self._is_like(offering, pending):
            return self._ignore(offering, pending)
        size = message_bytes(offering.content, offering.attributes)
        refusal = self._refusal(offering, size - row.bytes)
        if refusal is not None:
            return refusal
        revision = tx.sequence.next_revision()
        self._write_update(offering, pending, due, size)
        tx.query("update_key", offering.mode, due, revision, now_ms, max_wait_until, row.seq)
        return Offered("updated", row.id, row.seq, due, revision)

    def _write_update(self, offering: Offering, pending: Pending, due: int, size: int) -> None:
        tx, row, rules = self._tx, pending.row, self._rules
        status = DELAYED if due > tx.now_ms else READY
        expires_after = due + (rules.ttl_ms if offering.ttl_ms is None else offering.ttl_ms)
        position, group_id = row.position, row.group_id
        if rules.order is Order.DUE or (offering.priority, offering.group) != (
            row.priority,
            row.group_id or None,
        ):
            position, group_id = position_and_group(
                tx, self._queue, rules.order, offering.group, row.seq, due, offering.priority, status
            )
        if offering.dead_letter_queue:
            tx.counts.make_known(offering.dead_letter_queue)
        clock_ms = expires_after if status == READY else min(due, expires_after)
        tx.counts.resize(self._queue, size - row.bytes)
        changed = replace(
            row, bytes=size, received_at=tx.now_ms, priority=offering.priority, position=position
        )
        leaves = group_id != row.group_id
        tx.transition(
            UPDATED, self._queue, row.status, status, (changed,), due_ms=clock_ms, leaves_group=leaves
        )
        tx.query(
            "update_message",
            status,
            due,
            tx.now_ms,
            tx.now_ms,
            expires_after,
            offering.priority,
            position,
            size,
            offering.max_attempts,
            offering.ttl_ms,
            group_id,
            write_attributes(offering.attributes) if offering.attributes else None,
            offering.dead_letter_queue,
            offering.content,
            row.seq,
        )

    def _let_wait(self, offering: Offering, pending: Pending) -> Offered | ForqError:
        """Let an offer wait behind the message in process; it replaces one that waits there already."""
        tx, row, now_ms = self._tx, pending.row, self._tx.now_ms
        old = self._read_waiting(pending)
        first_offer_at = now_ms if old is None else old.first_offer_at
        due, max_wait_until = _due(tx, offering, self._rules, first_offer_at)
        same = (
            old is not None
            and _is_same_time(offering, due, old.due, now_ms)
            and _content_of(offering) == _content_of(old.offering)
        )
        if old is not None and same:
            due = old.due
        size = message_bytes(offering.content, offering.attributes)
        growth = size - pending.waiting_bytes
        refusal = self._refusal(offering, growth)
        if refusal is not None:
            return refusal
        if offering.dead_letter_queue:
            tx.counts.make_known(offering.dead_letter_queue)
        revision = old.revision if old is not None and same else tx.sequence.next_revision()
        offers = 1 if old is None else old.offers + 1
        new = Waiting(offering, due, revision, size, offers, first_offer_at, now_ms, max_wait_until)
        _save_waiting(tx, row, new, growth)
        outcome: Outcome = "created" if old is None else "ignored" if same else "updated"
        return Offered(outcome, row.id, row.seq, due, revision, once_more=True)

    def _is_like(self, offering: Offering, pending: Pending) -> bool:
        """Whether the pending message has the content and the options of an offer, whatever its due time."""
        if not _has_options(offering, pending):
            return False
        seq = pending.row.seq
        if seq not in self._same:
            self._same[seq] = bool(self._tx.query("has_content", seq, offering.content)[0][0])
        return self._same[seq]

    def _read_waiting(self, pending: Pending) -> Waiting | None:
        seq = pending.row.seq
        return read_waiting(self._waiting[seq]) if seq in self._waiting else _read_waiting(self._tx, pending)

    def _refusal(self, offering: Offering, growth: int) -> ForqError | None:
        """The error of an offer that makes the queue grow by so many bytes, if it may not be stored."""
        tx = self._tx
        named = offering.dead_letter_queue
        if named and (refusal := tx.admit(named)):
            return refusal
        counts = tx.counts.of(self._queue)
        grown = Space(counts.total, counts.bytes + growth)
        return QueueFull() if growth > 0 and above(grown, self._rules).bytes > 0 else None


def _is_same_time(offering: Offering, due: int, stored: int, now_ms: int) -> bool:
    """Whether an offer is due when the stored one is. An offer without a time is, if the stored one is due already."""
    has_time = offering.process_after is not None or offering.delay_ms is not None
    return due == stored or (not has_time and stored <= now_ms)


def _due(tx: Transaction, offering: Offering, rules: QueueRules, first_at: int) -> tuple[int, int | None]:
    """When an offer is due, and the latest due time of debounced offers. first_at: when the first of them came."""
    due = due_time(offering.message, tx.now_ms, rules)
    return (
        (due, None)
        if offering.mode != "debounce"
        else debounced(due, first_at, offering.max_wait_ms, tx.now_ms)
    )


def _content_of(offering: Offering) -> NewMessage:
    """The members of an offer that have to be equal for two offers to be the same, besides the due time."""
    return replace(
        offering.message, process_after=None, delay_ms=None, attributes=offering.attributes or None
    )


def _has_options(offering: Offering, pending: Pending) -> bool:
    """True if the pending message has the options of an offer."""
    row = pending.row
    return (
        offering.priority == row.priority
        and offering.group == (row.group_id or None)
        and offering.ttl_ms == row.ttl_ms
        and offers_bound(offering.max_attempts, row.attempts, row.max_attempts)
        and offering.dead_letter_queue == row.dead_letter_queue
        and (offering.attributes or None) == read_attributes(pending.attributes)
    )


def _read_waiting(tx: Transaction, pending: Pending) -> Waiting | None:
    return read_waiting(tx.query("read_waiting", pending.row.seq)[0][0]) if pending.has_waiting else None


def _save_waiting(tx: Transaction, row: Row, waiting: Waiting | None, growth: int) -> None:
    resized(tx, row, growth)
    size = 0 if waiting is None else waiting.size
    tx.query("save_waiting", size, None if waiting is None else write_waiting(waiting), row.seq)


@operation_on_each(RescheduleKey, changes=_changes_of_key)
def reschedule(tx: Transaction, command: RescheduleKey) -> Offered | MessageInFlight | Deferred | None:
    allowance = tx.allowances.of(RescheduleKey)
    if allowance.used_up:
        return DEFERRED
    pending = _find_one(tx, command)
    if pending is None or (command.once_more and not pending.has_waiting):
        return None
    row, due = pending.row, command.process_after
    allowance.charge(1, row.bytes)
    if command.once_more:
        waiting = _read_waiting(tx, pending)
        assert waiting is not None
        waiting = replace(waiting, due=due, revision=tx.sequence.next_revision())
        _save_waiting(tx, row, waiting, 0)
        return Offered("updated", row.id, row.seq, due, waiting.revision, once_more=True)
    if row.status in (PROCESSING, FAILED):
        return MessageInFlight()
    rules = tx.rules(command.queue)
    status = DELAYED if due > tx.now_ms else READY
    expires_after = due + (rules.ttl_ms if row.ttl_ms is None else row.ttl_ms)
    if rules.order is Order.DUE:
        row = replace(row, position=due)
    clock_ms = min(due, expires_after) if status == DELAYED else expires_after
    tx.transition(UPDATED, command.queue, row.status, status, (row,), due_ms=clock_ms)
    tx.query("reschedule_message", status, due, tx.now_ms, expires_after, row.position, row.seq)
    revision = tx.sequence.next_revision()
    tx.query("reschedule_key", due, revision, row.seq)
    return Offered("updated", row.id, row.seq, due, revision)


@operation_on_each(AckRevision, changes=_changes_of_key)
def ack_revision(tx: Transaction, command: AckRevision) -> bool | Deferred:
    allowance = tx.allowances.of(AckRevision)
    if allowance.used_up:
        return DEFERRED
    pending = _find_one(tx, command)
    if pending is None or pending.revision != command.revision:
        return False
    allowance.charge(1, pending.row.bytes)
    remove_acked(tx, [pending.row])
    store_waiting(tx)
    return True


@operation_on_each(DropKey, changes=_changes_of_key)
def drop_key(tx: Transaction, command: DropKey) -> bool | Deferred:
    allowance = tx.allowances.of(DropKey)
    if allowance.used_up:
        return DEFERRED
    pending = _find_one(tx, command)
    if pending is None or (command.once_more and not pending.has_waiting):
        return False
    allowance.charge(1, pending.row.bytes)
    if command.once_more:
        _save_waiting(tx, pending.row, None, -pending.waiting_bytes)
    else:
        drop(tx, [pending.row])
    return True


@operation_on_each(DropKeys, changes=_changes_of_queue)
def drop_keys(tx: Transaction, command: DropKeys) -> PurgeStep:
    store_waiting(tx)
    bound = tx.allowances.step(limits.PURGE_BATCH_MAX)
    up_to = tx.sequence.before if command.up_to is None else command.up_to
    found = rows_of(tx.query("select_of_kind", command.queue, command.kind, up_to, bound + 1))
    dropped = within(Allowance(bound), found)
    removed = settle_each(tx, dropped, drop)
    return PurgeStep(removed, up_to if len(found) > len(dropped) and removed else None)
