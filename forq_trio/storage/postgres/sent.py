"""Moves messages into their queues that applications sent in their own transactions, with the function forq.send.

A row of `sent` is visible once its transaction has committed. The batch that stores its message removes the row, so
each message enters its queue exactly once. Only one batch runs at a time, and it moves the rows that it sees in the
order of ids. So messages of one transaction, and of transactions that follow one another, keep the order of sending. Of
transactions that overlap, the one that commits first comes first, unless one batch sees both. No transaction waits for
another that is still open.

If a queue refuses a message for now, because it is full, the message stays in `sent`, and so do later ones for the same
queue. It is tried again when the queue's counts or settings have changed, and every DUE_RETRY_MS.

If there are more messages than fit into a page, queues share the pages: every second page has equal shares of the next
queues, sorted by name, leaving out those of the previous page. So an application that sends very many messages at once
delays other queues by no more than a batch or two, and the messages of a queue stay in order. A page contains, or
skips, at most SENT_QUEUES_MAX queues, so its cost does not grow with the number of queue names, and the next page
follows at once.
"""

from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.checks import check_message, check_producible
from forq_trio.model.commands import TakeSetAside
from forq_trio.model.errors import CommandRefused, ForqError, ServiceError, TooManyQueues
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.settings import QueueRules
from forq_trio.storage.engine import Deferred
from forq_trio.storage.postgres.bindings import array
from forq_trio.storage.relational.operations.send import look_up, send
from forq_trio.storage.relational.transaction import Transaction

MAKER = "forq.send()"
"""The maker of queues that forq.send creates. Like an access token it may make only a share of all queues; no token can
have this name, because of the brackets."""
_decode = msgspec.json.Decoder(NewMessage).decode


class _State(Struct, frozen=True):
    """The state of a queue when it refused a message. refused_at: epoch ms."""

    counts: QueueCounts
    rules: QueueRules
    refused_at: int


class FullQueues:
    """The queues that refused a message: at most SENT_FULL_QUEUES_MAX, beyond which no message is moved at all."""

    def __init__(self) -> None:
        self._states: dict[str, _State] = {}
        self.served: set[str] = set()
        """The queues of the last page, to be left out of the next, if that page was of all queues and more is left."""
        self.last = ""
        """The last queue name that a page of shares reached; the next one begins after it."""
        self.moved_some = False
        """Whether any page of shares has moved a message since they began with the first queue."""
        self.set_aside = inf
        """How many messages were set aside since the last time that their number was cut to its bound."""

    def __contains__(self, queue: str) -> bool:
        return queue in self._states

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def add(self, tx: Transaction, queue: str) -> None:
        self._states[queue] = _State(tx.counts.of(queue), tx.rules(queue), tx.now_ms)

    def changed(self, tx: Transaction) -> list[str]:
        """The queues that may take a message now."""
        return [
            queue
            for queue, state in self._states.items()
            if tx.now_ms >= state.refused_at + limits.DUE_RETRY_MS
            or (tx.counts.of(queue), tx.rules(queue)) != (state.counts, state.rules)
        ]

    def forget_changed(self, tx: Transaction) -> None:
        for queue in self.changed(tx):
            del self._states[queue]


class MovedSends(NamedTuple):
    """The result of moving a page. more: further messages may be moved now. set_aside: how many were set aside."""

    more: bool = False
    set_aside: int = 0


class ApplicationSends:
    """The messages that applications sent and that are not in their queues yet."""

    def __init__(self) -> None:
        self.are_there = False
        self.moved = MovedSends()  # by the current or last batch
        self._full = FullQueues()

    def begin(self) -> None:
        """Begin a batch, which has moved nothing yet."""
        self.moved = MovedSends()

    def move(self, tx: Transaction) -> None:
        """Move a page of messages, if there are any."""
        self.moved = move_sent(tx, self._full) if self.are_there else MovedSends()

    def may_move_more(self, tx: Transaction) -> bool:
        """Whether a queue that was full may take a message now."""
        return bool(self._full.changed(tx))


def move_sent(tx: Transaction, full: FullQueues) -> MovedSends:
    """Move a page of messages that applications sent.

    A message that its queue refuses for good is set aside with the reason. In an isolated batch a damaged one is, too.
    """
    full.forget_changed(tx)
    if len(full) >= limits.SENT_FULL_QUEUES_MAX:
        return MovedSends()
    bounds = tx.allowances.step(limits.OUTBOX_PAGE_MAX), limits.OUTBOX_PAGE_BYTES_MAX
    is_turn = len(full) > 0 or bool(full.served)
    page, was_last = _next_queues(tx, full, bounds) if is_turn else (tx.query("sent_page", *bounds), False)
    if is_turn and not page and not full:
        is_turn, page = False, tx.query("sent_page", *bounds)
    tx.begin_step()
    messages = [None if tx.isolated else _readable(text) for _, _, text, _ in page]
    look_up(tx, [(row[1], each) for row, each in zip(page, messages, strict=True) if each is not None])
    newest = tx.sequence.last
    moved: list[int] = []
    served: set[str] = set()
    is_cut = False
    set_aside = 0
    for (id, queue, text, _), message in zip(page, messages, strict=True):
        if queue in full:
            continue
        if queue not in served and len(served) == limits.SENT_QUEUES_MAX:
            is_cut = True
            break
        if tx.waited_out and moved:
            is_cut = True
            break
        work = partial(_store, tx, queue, text, message, newest)
        outcome = _attempt(tx, work) if tx.isolated else work()
        if isinstance(outcome, Deferred):
            is_cut = True
            break
        if isinstance(outcome, ServiceError) and not isinstance(outcome, CommandRefused):
            full.add(tx, queue)
            continue
        moved.append(id)
        served.add(queue)
        if outcome is not None:
            tx.query("set_sent_aside", id, outcome.code, str(outcome))
            set_aside += 1
    tx.write_inserts()
    if moved:
        tx.query("forget_sent", str(moved))
    full.set_aside += set_aside
    if set_aside and full.set_aside >= limits.SENT_SET_ASIDE_MAX // 100:
        tx.query("bound_set_aside", limits.SENT_SET_ASIDE_MAX)
        full.set_aside = 0
    if not is_turn:
        has_rest = is_cut or len(page) == bounds[0] or sum(each[3] for each in page) >= bounds[1]
        full.served = served if has_rest and not full else set()
        return MovedSends(has_rest, set_aside)
    full.served = set()
    full.moved_some = full.moved_some or bool(moved)
    has_more = full.moved_some or not was_last
    if was_last:
        full.moved_some = False
    return MovedSends(has_more, set_aside)


def _next_queues(
    tx: Transaction, full: FullQueues, bounds: tuple[int, int]
) -> tuple[list[tuple[Any, ...]], bool]:
    """A page with shares of the next queues, and whether these are the last queues."""
    but = array([*full, *full.served])
    rows = tx.query("sent_page_of_queues", *bounds, full.last, limits.SENT_QUEUES_MAX, but)
    (last, number), *page = [(row[1], row[3]) if row[0] is None else row for row in rows]
    was_last = number < limits.SENT_QUEUES_MAX
    full.last = "" if was_last else last
    return page, was_last


def take_set_aside(tx: Transaction, command: TakeSetAside) -> tuple[int, ...]:
    """Remove messages that were set aside, and send them again if the command asks for it; returns their ids."""
    taken = tx.query("take_set_aside", array(command.ids), limits.OUTBOX_PAGE_BYTES_MAX, int(command.again))
    if command.again:
        tx.wakes.next.update(queue for _, queue in taken)  # runs the next batch, which moves them, at once
    return tuple(id for id, _ in taken)


def _readable(text: str) -> NewMessage | None:
    """The message of a row; None for a damaged one, which fails later, when it is stored."""
    try:
        return _decode(text)
    except msgspec.MsgspecError:
        return None


def _store(
    tx: Transaction, queue: str, text: str, message: NewMessage | None, newest: int
) -> ForqError | Deferred | None:
    """Store a message; returns the reason if it is not stored. message: decoded from `text`, None if not done yet."""
    if message is None:
        message = _decode(text)
    if message.process_after is not None:  # set when the application sent it, so it may have passed by now
        message = replace(message, process_after=max(message.process_after, tx.now_ms))
    try:
        check_producible(queue)
        checked = check_message(message, tx.now_ms)
    except ForqError as error:
        return error
    refusal = tx.name(queue, MAKER)
    if refusal is not None:
        return TooManyQueues(f"there are too many queues, in all or made by {MAKER}, for one more: {refusal}")
    try:
        stored = send(tx, queue, (checked,), newest)
    except ForqError as error:
        return error
    return None if isinstance(stored, list) else stored


def _attempt(tx: Transaction, work: "partial[ForqError | Deferred | None]") -> ForqError | Deferred | None:
    """Run `work` in a savepoint; an exception that it raises becomes the reason for refusing the message."""
    outcomes: list[ForqError | Deferred | None] = []

    def attempt() -> None:
        outcomes.append(work())
        tx.write_inserts()

    error = tx.attempt(attempt)
    if error is None:
        return outcomes[0]
    return error if isinstance(error, ForqError) else CommandRefused(f"{type(error).__name__}: {error}")
