"""The reference engine: messages with a key (operations/offers.py and waiting.py)."""

from operator import itemgetter

from msgspec.structs import replace

from forq_trio.model.commands import AckRevision, DropKey, DropKeys, OfferMany, PurgeStep, RescheduleKey
from forq_trio.model.errors import ForqError, KeyExists, MessageInFlight, QueueFull
from forq_trio.model.keys.types import Offered, Offering, Outcome
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Status
from forq_trio.model.queues.setting_values import Order
from forq_trio.storage import engine, rules
from forq_trio.storage.transitions import UPDATED
from oracle.groups import group_and_position
from oracle.operations import operation
from oracle.send import send_one, store_waiting
from oracle.settle import ack_row
from oracle.state import Keyed, Row, Waiting
from oracle.transaction import Transaction


@operation(OfferMany)
def offer_many(tx: Transaction, command: OfferMany) -> tuple[Offered | ForqError, ...]:
    """Offer messages one by one."""
    newest = tx.state.last_seq
    outcomes: list[Offered | ForqError] = []
    for offering in command.offerings:
        store_waiting(tx)
        try:
            offered = _offer(tx, command.queue, offering, newest)
        except ForqError as error:
            outcomes.append(error)
            continue
        if isinstance(offered, Offered):
            tx.counted[engine.OFFERED, command.queue, offered.outcome] += 1
        outcomes.append(offered)
    return tuple(outcomes)


def _offer(tx: Transaction, queue: str, offering: Offering, newest: int) -> Offered | ForqError:
    row = tx.state.of_key(queue, offering.kind, offering.key)
    if row is None:
        return _create(tx, queue, offering, newest)
    if offering.mode == "create":
        return KeyExists()
    if offering.mode == "createIfAbsent":
        return _ignore(tx, row, offering)
    if row.status is Status.PROCESSING and offering.mode in ("debounce", "onceMore"):
        return _let_wait(tx, row, offering)
    return _change(tx, row, offering)


def _create(tx: Transaction, queue: str, offering: Offering, newest: int) -> Offered | ForqError:
    due, max_wait_until = _due(tx, queue, offering, tx.now_ms)
    key = Keyed(
        key=offering.key,
        kind=offering.kind,
        due=due,
        revision=0,
        mode=offering.mode,
        offers=1,
        first_offer_at=tx.now_ms,
        last_offer_at=tx.now_ms,
        max_wait_until=max_wait_until,
    )
    message = replace(offering.message, process_after=due, delay_ms=None)
    sent = send_one(tx, queue, message, newest, key)
    if isinstance(sent, QueueFull):
        return sent
    return Offered("created", sent.id, sent.sequence, due, sent.sequence)


def _ignore(tx: Transaction, row: Row, offering: Offering) -> Offered:
    key = _key_of(row)
    noted = replace(key, mode=offering.mode, offers=key.offers + 1, last_offer_at=tx.now_ms)
    tx.state.rows[row.seq] = replace(row, key=noted)
    return Offered("ignored", row.id, row.seq, key.due, key.revision)


def _change(tx: Transaction, row: Row, offering: Offering) -> Offered:
    """Change a message: createOrUpdate, or debounce and once more if it is not in process (D4-D7)."""
    key = _key_of(row)
    due, max_wait_until = _due(tx, row.queue, offering, key.first_offer_at)
    same_time = due == key.due or (not _has_time(offering) and key.due <= tx.now_ms)
    if offering.mode == "debounce" and row.status is not Status.DELAYED:
        same_time, due = True, tx.now_ms  # a message that is due stays due
    if same_time and key.waiting is None and _without_time(offering) == _offered(row, offering):
        return _ignore(tx, row, offering)
    _check_stored(tx, row.queue, offering, _bytes_of(offering) - row.bytes)
    group, position = row.group, row.position
    changed_place = (offering.priority, offering.group) != (row.priority, row.shown_group)
    if changed_place or tx.rules(row.queue).order is Order.DUE:
        group, position = group_and_position(tx, row.queue, offering.message, row.seq, due)
    if offering.dead_letter_queue:
        tx.make_known(offering.dead_letter_queue)
    ttl_ms = tx.rules(row.queue).ttl_ms if offering.ttl_ms is None else offering.ttl_ms
    revision = tx.state.last_seq = tx.state.last_seq + 1
    new = Row(
        seq=row.seq,
        id=row.id,
        queue=row.queue,
        content=offering.content,
        status=rules.initial_status(due, tx.now_ms),
        priority=offering.priority,
        position=position,
        received_at=tx.now_ms,
        process_after=due,
        updated_at=tx.now_ms,
        expires_after=rules.expires_after(due, ttl_ms),
        max_attempts=offering.max_attempts,
        ttl_ms=offering.ttl_ms,
        attributes=offering.attributes or None,
        group=group,
        dead_letter_queue=offering.dead_letter_queue,
        key=replace(
            key,
            due=due,
            revision=revision,
            mode=offering.mode,
            offers=key.offers + 1,
            last_offer_at=tx.now_ms,
            max_wait_until=max_wait_until,
            waiting=None,
        ),
    )
    tx.transition(UPDATED, row, new)
    return Offered("updated", row.id, row.seq, due, revision)


def _let_wait(tx: Transaction, row: Row, offering: Offering) -> Offered:
    """Let an offer wait behind the message in process; it replaces one that waits there already."""
    old = row.waiting
    first_offer_at = tx.now_ms if old is None else old.first_offer_at
    due, max_wait_until = _due(tx, row.queue, offering, first_offer_at)
    same = False
    if old is not None:
        same_time = due == old.due or (not _has_time(offering) and old.due <= tx.now_ms)
        same = same_time and _without_time(offering) == _without_time(old.offering)
        due = old.due if same else due
    _check_stored(
        tx, row.queue, offering, _bytes_of(offering) - (0 if old is None else _bytes_of(old.offering))
    )
    if offering.dead_letter_queue:
        tx.make_known(offering.dead_letter_queue)
    if old is not None and same:
        revision = old.revision
    else:
        revision = tx.state.last_seq = tx.state.last_seq + 1
    waiting = Waiting(
        offering,
        due,
        revision,
        1 if old is None else old.offers + 1,
        first_offer_at,
        tx.now_ms,
        max_wait_until,
    )
    _set_waiting(tx, row, waiting)
    outcome: Outcome = "created" if old is None else "ignored" if same else "updated"
    return Offered(outcome, row.id, row.seq, due, revision, once_more=True)


def _set_waiting(tx: Transaction, row: Row, waiting: Waiting | None) -> None:
    tx.state.rows[row.seq] = replace(row, key=replace(_key_of(row), waiting=waiting))


def _key_of(row: Row) -> Keyed:
    assert row.key is not None
    return row.key


def _has_time(offering: Offering) -> bool:
    return offering.process_after is not None or offering.delay_ms is not None


def _due(tx: Transaction, queue: str, offering: Offering, first_at: int) -> tuple[int, int | None]:
    """When an offer is due, and the latest due time of debounced offers. first_at: when the first of them came."""
    due = rules.due_time(offering.message, tx.now_ms, tx.rules(queue))
    if offering.mode != "debounce":
        return due, None
    return rules.debounced(due, first_at, offering.max_wait_ms, tx.now_ms)


def _without_time(offering: Offering) -> NewMessage:
    message = offering.message
    return replace(message, process_after=None, delay_ms=None, attributes=message.attributes or None)


def _offered(row: Row, offering: Offering) -> NewMessage:
    """The message in the form of an offer without a time, to be compared with `offering`."""
    alike = rules.offers_bound(offering.max_attempts, row.attempts, row.max_attempts)
    return NewMessage(
        row.content,
        priority=row.priority,
        ttl_ms=row.ttl_ms,
        attributes=row.attributes,
        group=row.shown_group,
        max_attempts=offering.max_attempts if alike else row.max_attempts,
        dead_letter_queue=row.dead_letter_queue,
    )


def _bytes_of(offering: Offering) -> int:
    return rules.message_bytes(offering.content, offering.attributes)


def _check_stored(tx: Transaction, queue: str, offering: Offering, growth: int) -> None:
    """Raise the error if a change may not be stored. growth: by how many bytes the queue would grow."""
    if offering.dead_letter_queue:
        tx.check_admitted(offering.dead_letter_queue)
    bytes_max = tx.rules(queue).max_bytes
    if growth > 0 and bytes_max is not None and tx.state.counts(queue).bytes + growth > bytes_max:
        raise QueueFull


def _find(tx: Transaction, command: RescheduleKey | AckRevision | DropKey) -> Row | None:
    store_waiting(tx)
    return tx.state.of_key(command.queue, command.kind, command.key)


@operation(RescheduleKey)
def reschedule(tx: Transaction, command: RescheduleKey) -> Offered | None:
    row, due = _find(tx, command), command.process_after
    if row is None or (command.once_more and row.waiting is None):
        return None
    if row.status in (Status.PROCESSING, Status.FAILED) and not command.once_more:
        raise MessageInFlight
    revision = tx.state.last_seq = tx.state.last_seq + 1
    if command.once_more:
        assert row.waiting is not None
        _set_waiting(tx, row, replace(row.waiting, due=due, revision=revision))
        return Offered("updated", row.id, row.seq, due, revision, once_more=True)
    rules_now = tx.rules(row.queue)
    tx.change(
        UPDATED,
        row,
        status=rules.initial_status(due, tx.now_ms),
        process_after=due,
        expires_after=rules.expires_after(due, rules_now.ttl_ms if row.ttl_ms is None else row.ttl_ms),
        position=due if rules_now.order is Order.DUE else row.position,
        token=None,
        key=replace(_key_of(row), due=due, revision=revision),
    )
    return Offered("updated", row.id, row.seq, due, revision)


@operation(AckRevision)
def ack_revision(tx: Transaction, command: AckRevision) -> bool:
    row = _find(tx, command)
    if row is None or _key_of(row).revision != command.revision:
        return False
    ack_row(tx, row)
    store_waiting(tx)
    return True


@operation(DropKey)
def drop(tx: Transaction, command: DropKey) -> bool:
    row = _find(tx, command)
    if row is None or (command.once_more and row.waiting is None):
        return False
    if command.once_more:
        _set_waiting(tx, row, None)
    else:
        tx.clean_up(row, "deleted_by_user", with_waiting=True)
    return True


@operation(DropKeys)
def drop_all(tx: Transaction, command: DropKeys) -> PurgeStep:
    store_waiting(tx)
    up_to = tx.newest_before if command.up_to is None else command.up_to
    found = [
        (row.pending_key, row)
        for row in tx.state.of_queue(command.queue)
        if row.seq <= up_to and row.pending_key is not None and row.pending_key[0] == command.kind
    ]
    for _, row in sorted(found, key=itemgetter(0)):
        tx.clean_up(row, "deleted_by_user", with_waiting=True)
    return PurgeStep(len(found), None)
