"""Settlements: ack, discard, nack, extend and release, each for all its commands of the batch at once.

- Every change of a claimed message is fenced by its receipt. The current receipt is that of the latest claim. It stays
  current after its lease has ended, until the message is claimed again, settled or moved.
- A lease that has ended cannot be extended while `in_flight_max` messages of its queue are in process.
- A message that its consumer discards is removed for good, with the consumer's reason as its last error. It is no dead
  letter. An offer that waits behind its key goes on, as after an ack. It does not count in the end-to-end and handling
  durations.

One SELECT finds the messages that the receipts (or ids) name. Plain Python decides, with that fencing and the functions
of rules.py, and one statement writes the decisions. There is one writer, so nothing changes in between.
"""

from collections.abc import Callable, Collection, Sequence, Set
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    AckById,
    Claims,
    DiscardMessages,
    Extend,
    Nack,
    NackById,
    Nacked,
    Release,
)
from forq_trio.model.messages.types import Receipt, Status
from forq_trio.storage.allowance import Allowance
from forq_trio.storage.engine import (
    ACKED,
    CLEANED_UP,
    DEFERRED,
    END_TO_END,
    HANDLING,
    NACKED,
    RELEASED,
    Deferred,
)
from forq_trio.storage.logs import DISCARDED_BY_CONSUMER
from forq_trio.storage.relational.operations.dead_letters import remove
from forq_trio.storage.relational.operations.find_messages import find_by_id, find_by_sequence
from forq_trio.storage.relational.operations.group_limit import count_in_process
from forq_trio.storage.relational.operations.logs import Keep, keep_all, note_reasons
from forq_trio.storage.relational.operations.rate_limit import in_flight_left
from forq_trio.storage.relational.operations.returned import return_message
from forq_trio.storage.relational.operations.table import operation
from forq_trio.storage.relational.parts.groups import Group
from forq_trio.storage.relational.row import Row
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import after_lease_end, after_nack, after_release, uncounted
from forq_trio.storage.transitions import EXTENDED, PROCESSING, SHORTENED

OutcomeT = TypeVar("OutcomeT")


class _Messages:
    """The messages that the settlements of one kind in a batch name.

    returned: bindings of `return_message` that are still to be written. Most batches cannot use up their allowance, so
    they do not charge it.
    """

    def __init__(
        self, tx: Transaction, kind: type, found: list[Row], count: int, later: Set[str | int] = frozenset()
    ) -> None:
        """found: the messages. count: how many are named.

        later: the ids or sequence numbers of messages that the next batch may find.
        """
        self._tx = tx
        self._found = {row.seq: row for row in found}
        self.later = later
        self.returned: list[tuple[Any, ...]] = []
        self._allowance: Allowance | None = None
        most_bytes = count * max([found.bytes for found in self._found.values()], default=0)
        if tx.isolated or count >= limits.COMMIT_MESSAGES_MAX or most_bytes >= limits.REWRITE_BYTES_MAX:
            self._allowance = tx.allowances.of(kind)

    @property
    def found(self) -> Collection[Row]:
        return self._found.values()

    @property
    def bounded(self) -> bool:
        """True if the allowance may be used up."""
        return self._allowance is not None

    @property
    def used_up(self) -> bool:
        """True if the remaining commands of this kind have to wait for the next batch."""
        return self._allowance is not None and self._allowance.used_up

    @cached_property
    def _sequences(self) -> dict[str, int]:
        return {found.id: found.seq for found in self._found.values()}

    def by_receipt(
        self,
        queue: str | None,
        receipt: Receipt,
        message_id: str | None = None,
        claims: Claims = Claims.CURRENT,
    ) -> Row | None:
        """The message that this receipt settles, else None. A failed message has no current receipt."""
        found = self._found.get(receipt.seq)
        if (
            found is None
            or (found.receipt != receipt.token and not (claims is Claims.ANY and _was_given(receipt, found)))
            or (found.status != PROCESSING and claims is Claims.LEASED)
            or (found.queue != queue and queue is not None)
            or (message_id is not None and found.id != message_id)
        ):
            return None
        self._charge(found)
        return found

    def by_id(self, queue: str, message_id: str, token: int | None) -> Row | None:
        """The message with this id, if it is in process, or (with a token) if its claim has this token; else None."""
        found = self._found.get(self._sequences.get(message_id, 0))
        if found is None or found.queue != queue:
            return None
        if found.receipt != token if token is not None else found.status != PROCESSING:
            return None
        self._charge(found)
        return found

    def _charge(self, found: Row) -> None:
        if self._allowance is not None:
            self._allowance.charge(1, found.bytes)

    def forget(self, found: Row) -> None:
        """Note that a message is settled, so that later receipts of this batch do not find it."""
        del self._found[found.seq]

    def replace(self, found: Row) -> None:
        self._found[found.seq] = found

    def write_returned(self) -> None:
        self._tx.run("return_message", self.returned)
        self.returned.clear()


def _was_given(receipt: Receipt, found: Row) -> bool:
    """Whether an earlier claim of this message may have given this receipt."""
    return bool(found.attempts) and receipt.is_of(found.id)


SETTLEMENTS = Ack, DiscardMessages, Nack, Extend, Release


class ByReceipts(Protocol):
    """A command that settles messages by their receipts."""

    @property
    def queue(self) -> str | None: ...
    @property
    def receipts(self) -> tuple[Receipt, ...]: ...


SettlingT = TypeVar("SettlingT", bound=ByReceipts)


def named_by(commands: Sequence[ByReceipts]) -> tuple[str, str | int, int]:
    """The statement that finds the messages that these commands name, its binding, and how many there are."""
    seqs = [receipt.seq for command in commands for receipt in command.receipts]
    if len(seqs) == 1:
        return "find_one_by_sequence", seqs[0], 1
    return "find_by_sequence", str(seqs), len(seqs)


def named_by_receipts(tx: Transaction, commands: Sequence[ByReceipts]) -> _Messages:
    """The messages that these commands of one kind name."""
    statement, names, count = named_by(commands)
    # what a pipeline has leased has another receipt, but that of an earlier claim may do
    perhaps_leased = [
        (command.queue, receipt.seq)
        for command in commands
        if isinstance(command, Ack | Extend) and command.claims is Claims.ANY and command.queue is not None
        for receipt in command.receipts
    ]
    found, later = find_by_sequence(tx, statement, names, perhaps_leased)
    return _Messages(tx, type(commands[0]), found, count, later)


def _named_by_ids(tx: Transaction, commands: Sequence[AckById | NackById]) -> _Messages:
    found, later = find_by_id(tx, [(command.queue, command.message_id) for command in commands])
    return _Messages(tx, type(commands[0]), found, len(commands), later)


@operation(Ack)
def ack(tx: Transaction, commands: Sequence[Ack]) -> list[tuple[bool, ...] | Deferred]:
    messages = named_by_receipts(tx, commands)
    removed: list[Row] = []

    def settle(command: Ack, receipt: Receipt) -> bool:
        found = messages.by_receipt(command.queue, receipt, command.message_id, command.claims)
        if found is None:
            return False
        messages.forget(found)
        removed.append(found)
        return True

    outcomes = each_receipt(messages, commands, settle)
    remove_acked(tx, removed)
    return outcomes


@operation(AckById)
def ack_by_id(tx: Transaction, commands: Sequence[AckById]) -> list[bool | Deferred]:
    messages = _named_by_ids(tx, commands)
    removed: list[Row] = []

    def settle(found: Row) -> None:
        messages.forget(found)
        removed.append(found)

    outcomes = _each_id(messages, commands, settle)
    remove_acked(tx, removed)
    return outcomes


def remove_acked(tx: Transaction, messages: Sequence[Row], keep: Keep = keep_all) -> None:
    """Delete messages that their consumer acknowledged. keep: what stores them in the history."""
    for queue, those in groupby(messages, key=attrgetter("queue")):
        measure(tx, queue, [(each.received_at, each.processing_started_at) for each in those])
    remove(tx, messages, ACKED, keep=keep)


def measure(tx: Transaction, queue: str, handled: Sequence[tuple[int, int | None]]) -> None:
    """Note how long acknowledged messages took. handled: when each was received, and when its handling began."""
    now_ms = tx.now_ms
    tx.figures.measured(END_TO_END, queue).extend([max(now_ms - at, 0) for at, _ in handled])
    started = [max(now_ms - at, 0) for _, at in handled if at is not None]
    if started:
        tx.figures.measured(HANDLING, queue).extend(started)


@operation(DiscardMessages)
def discard(tx: Transaction, commands: Sequence[DiscardMessages]) -> list[tuple[bool, ...] | Deferred]:
    messages = named_by_receipts(tx, commands)
    removed: list[Row] = []
    reasons: list[tuple[Row, str]] = []

    def settle(command: DiscardMessages, receipt: Receipt) -> bool:
        found = messages.by_receipt(command.queue, receipt)
        if found is None:
            return False
        messages.forget(found)
        removed.append(found)
        reasons.append((found, command.reason))
        return True

    outcomes = each_receipt(messages, commands, settle)
    note_reasons(tx, reasons)
    remove(tx, removed, CLEANED_UP, DISCARDED_BY_CONSUMER)
    return outcomes


@operation(Nack)
def nack(tx: Transaction, commands: Sequence[Nack]) -> list[tuple[Nacked, ...] | Deferred]:
    messages = named_by_receipts(tx, commands)

    def settle(command: Nack, receipt: Receipt) -> Nacked:
        found = messages.by_receipt(command.queue, receipt, command.message_id)
        if found is None:
            return Nacked.REFUSED
        return _nack(
            tx,
            messages,
            found,
            command.delay_ms,
            command.reason,
            final=command.final,
            max_attempts=command.max_attempts,
        )

    outcomes = each_receipt(messages, commands, settle)
    messages.write_returned()
    return outcomes


@operation(NackById)
def nack_by_id(tx: Transaction, commands: Sequence[NackById]) -> list[bool | Deferred]:
    messages = _named_by_ids(tx, commands)
    outcomes = _each_id(messages, commands, lambda found: _nack(tx, messages, found, None, None))
    messages.write_returned()
    return outcomes


def _nack(
    tx: Transaction,
    messages: _Messages,
    found: Row,
    delay_ms: int | None,
    reason: str | None,
    *,
    final: bool = False,
    max_attempts: int | None = None,
) -> Nacked:
    messages.forget(found)
    rules = tx.rules(found.queue)
    bound = found.max_attempts if max_attempts is None else max_attempts
    returned = after_nack(found.seq, found.attempts, bound, delay_ms, tx.now_ms, rules, final=final)
    failures = found.failures_with(tx.now_ms, reason)
    messages.returned.append(
        return_message(
            tx,
            NACKED,
            found,
            returned,
            found.attempts,
            reason=reason,
            failures=failures,
            max_attempts=max_attempts,
        )
    )
    return Nacked.FAILED if returned.status is Status.FAILED else Nacked.RETURNED


@operation(Extend)
def extend(tx: Transaction, commands: Sequence[Extend]) -> list[tuple[int | None, ...] | Deferred]:
    messages = named_by_receipts(tx, commands)
    extended: dict[int, tuple[int, ...]] = {}
    extended_ended: dict[int, tuple[int, ...]] = {}
    in_process: dict[Group, int] = {}  # each group is counted once, not for each receipt
    _count_groups(tx, messages, in_process)

    def write() -> None:
        messages.write_returned()
        tx.run("extend", list(extended.values()))
        tx.run("extend_ended", list(extended_ended.values()))
        extended.clear()
        extended_ended.clear()

    def is_full(found: Row) -> bool:
        rules = tx.rules(found.queue)
        if rules.in_flight_max is not None and not in_flight_left(tx, found.queue, rules.in_flight_max):
            return True
        limit = 1 if rules.strict_groups else rules.group_in_flight_max
        if limit is None or not found.group_id:
            return False
        group = found.queue, found.group_id
        if group not in in_process:
            write()  # so that what this batch did so far is counted
            in_process[group] = count_in_process(tx, group, limit)
        if in_process[group] >= limit:
            return True
        in_process[group] += 1
        return False

    def settle(command: Extend, receipt: Receipt) -> int | None:
        found = messages.by_receipt(command.queue, receipt, claims=command.claims)
        if found is None or (found.status != PROCESSING and command.claims is Claims.ANY):
            return None
        if command.lease_ms > 0 and found.status != PROCESSING and is_full(found):
            return None
        lease_until = tx.now_ms + command.lease_ms
        extended.pop(found.seq, None)
        had_ended = extended_ended.pop(found.seq, None) is not None or found.status != PROCESSING
        if command.lease_ms == 0:
            _end_lease(tx, messages, found)
            in_process.pop((found.queue, found.group_id or ""), None)
        else:
            tx.transition(EXTENDED, found.queue, found.status, PROCESSING, (found,), due_ms=lease_until)
            if found.status != PROCESSING:
                started_at = tx.now_ms if found.processing_started_at is None else found.processing_started_at
                messages.replace(replace(found, status=PROCESSING, processing_started_at=started_at))
            changes = extended_ended if had_ended else extended
            changes[found.seq] = (tx.now_ms, lease_until, tx.now_ms, found.seq)
        return lease_until

    outcomes = each_receipt(messages, commands, settle)
    write()
    return outcomes


def _count_groups(tx: Transaction, messages: _Messages, in_process: dict[Group, int]) -> None:
    """For a database over the network: count at once the groups of the messages whose leases have ended."""
    ended = [found for found in messages.found if found.status != PROCESSING and found.group_id]
    if len(ended) > 1 and tx.connection.is_distant:
        rules_of = {each.queue: tx.rules(each.queue) for each in ended}
        limits_of = {
            (each.queue, str(each.group_id)): 1 if rules.strict_groups else rules.group_in_flight_max
            for each in ended
            for rules in (rules_of[each.queue],)
        }
        counted = [(*group, limit) for group, limit in limits_of.items() if limit is not None]
        for (queue, group_id, _), ((count,),) in zip(
            counted, tx.query_each("count_in_process", counted), strict=True
        ):
            in_process[queue, group_id] = count


def _end_lease(tx: Transaction, messages: _Messages, found: Row) -> None:
    """End a lease that its consumer extended by 0: as if it had run out, but without recording a failure."""
    returned = after_lease_end(found.attempts, found.max_attempts, tx.now_ms, tx.rules(found.queue))
    if returned.status is Status.FAILED:
        messages.forget(found)
        messages.returned.append(return_message(tx, SHORTENED, found, returned, found.attempts))
    else:
        messages.replace(replace(found, status=int(Status.READY), processing_started_at=None))
        messages.returned.append(
            return_message(tx, SHORTENED, found, returned, found.attempts, receipt=found.receipt)
        )


@operation(Release)
def release(tx: Transaction, commands: Sequence[Release]) -> list[tuple[bool, ...] | Deferred]:
    messages = named_by_receipts(tx, commands)

    def settle(command: Release, receipt: Receipt) -> bool:
        found = messages.by_receipt(command.queue, receipt)
        if found is None:
            return False
        messages.forget(found)
        returned = after_release(command.delay_ms, tx.now_ms)
        messages.returned.append(return_message(tx, RELEASED, found, returned, uncounted(found.attempts)))
        return True

    outcomes = each_receipt(messages, commands, settle)
    messages.write_returned()
    return outcomes


def each_receipt(
    messages: _Messages, commands: Sequence[SettlingT], settle: Callable[[SettlingT, Receipt], OutcomeT]
) -> list[tuple[OutcomeT, ...] | Deferred]:
    """The outcomes of these commands: `settle` for each receipt."""
    if not messages.bounded and not messages.later:
        return [tuple([settle(command, receipt) for receipt in command.receipts]) for command in commands]
    outcomes: list[tuple[OutcomeT, ...] | Deferred] = []
    for command in commands:
        if messages.used_up:
            outcomes.append(DEFERRED)
            continue
        done: list[OutcomeT] = []
        for receipt in command.receipts:
            if messages.used_up or receipt.seq in messages.later:
                break
            done.append(settle(command, receipt))
        settled = tuple(done)
        outcomes.append(settled if len(done) == len(command.receipts) else Deferred(settled))
    return outcomes


def _each_id(
    messages: _Messages, commands: Sequence[AckById | NackById], settle: Callable[[Row], object]
) -> list[bool | Deferred]:
    """The outcomes of these commands: `settle` for each message that is in process."""
    outcomes: list[bool | Deferred] = []
    for command in commands:
        if messages.used_up or command.message_id in messages.later:
            outcomes.append(DEFERRED)
            continue
        found = messages.by_id(command.queue, command.message_id, command.token)
        if found is not None:
            settle(found)
        outcomes.append(found is not None)
    return outcomes
