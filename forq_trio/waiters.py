"""Calls on their way through the writer, parked receivers among them.

A `Call` is one command with the slot for its outcome. Its life: sent -> taken into a batch -> resolved. A claim that
found nothing is parked in between. A command for which the batch was full is taken again; if it is a claim, it is
parked. The caller may be cancelled at any moment, and then the call is abandoned:

- before it was taken, the writer drops it: nothing happens;
- while it is parked, it leaves its line at once;
- while its batch runs, it is executed; `resolve` then returns False and the writer releases the messages it claimed.

A parked receiver belongs to one queue and waits in line, first come first served, until the writer resolves it with
messages or its wait is over. Waits are measured on trio's clock. A batch gets the receivers as values with ids, so a
receiver that leaves while the batch runs does not change the batch.

An outcome travels in a slot, never in a channel: resolving an abandoned call must not fail.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from itertools import count
from math import inf
from typing import Any, Generic, cast

import trio

from forq_trio.in_place import pause, runs_in_place
from forq_trio.model import limits
from forq_trio.model.budget import Budget
from forq_trio.model.commands import Claim, Command, Effect, OutcomeT
from forq_trio.model.errors import ServiceError
from forq_trio.model.holders import HOLDER
from forq_trio.storage.engine import Receiver

_UNRESOLVED: Any = object()


class Call(Generic[OutcomeT]):
    """One command and the slot for its outcome.

    posted: no caller waits for it. abandoned: its caller was cancelled. holder: whose share of the inbox and of the
    parked receivers it uses. on_resolved: called once, when it has its outcome; neither raises nor waits.
    """

    __slots__ = ("_done", "_outcome", "abandoned", "command", "holder", "on_resolved", "parked_in", "posted")

    def __init__(self, command: Command[OutcomeT], *, posted: bool = False) -> None:
        self.command = command
        self.posted = posted
        self.holder = HOLDER.get()
        self.abandoned = False
        self.parked_in: ParkedQueue | None = None
        self._done: tuple[Any, ...] = ()
        self._outcome: OutcomeT | BaseException = _UNRESOLVED
        self.on_resolved: Callable[[], object] | None = None

    def resolve(self, outcome: OutcomeT | BaseException) -> bool:
        """Give the call its outcome and wake its caller. False if it is abandoned, or has an outcome already.

        The first outcome counts: a receiver's wait may end while the commit that serves it runs.
        """
        if self._outcome is not _UNRESOLVED:
            return False
        if self._done and isinstance(outcome, tuple):
            outcome = cast("OutcomeT", self._done + outcome)
        self._outcome = outcome
        on_resolved, self.on_resolved = self.on_resolved, None
        if on_resolved is not None:
            on_resolved()
        return not self.abandoned

    def go_on(self, done: tuple[Any, ...]) -> None:
        """Store the outcomes of the first parts, and leave the other parts to the next batch."""
        if done:
            self._done += done
            self.command = self.command.part(len(done))

    async def wait(self) -> OutcomeT:
        """Return the outcome or raise it. For one caller, once; cancelled, the call is abandoned."""
        if self._outcome is _UNRESOLVED:
            if runs_in_place():
                await pause(self)
            else:
                self.on_resolved = partial(trio.lowlevel.reschedule, trio.lowlevel.current_task())
                await trio.lowlevel.wait_task_rescheduled(self._abort)
        outcome = self._outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def abandon(self) -> None:
        """Nobody waits for the outcome any more."""
        self.on_resolved = None
        self.abandoned = True
        if self.parked_in is not None:
            self.parked_in.owner.remove(self)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self.abandon()
        return trio.lowlevel.Abort.SUCCEEDED


def fail(calls: Iterable[Call[Any]], kind: type[ServiceError], *args: str) -> None:
    """Resolve every call with an exception of its own: a shared one would collect the tracebacks of all tasks."""
    for call in calls:
        call.resolve(kind(*args))


def without(effects: Set[Effect], calls: list[Call[Any]], error: type[ServiceError]) -> list[Call[Any]]:
    """Answer calls whose commands have one of these effects with `error`; returns the others."""
    fail([call for call in calls if call.command.traits.effect in effects], error)
    return [call for call in calls if call.command.traits.effect not in effects]


class ParkedQueue:
    """The line of one queue, the longest waiting first."""

    __slots__ = ("line", "owner", "queue")

    def __init__(self, queue: str, owner: "ParkedReceivers") -> None:
        self.queue = queue
        self.owner = owner
        self.line: dict[Call[Any], Receiver] = {}

    def __len__(self) -> int:
        return len(self.line)


class ParkedReceivers(Mapping[str, ParkedQueue]):
    """All parked receivers by queue, with the deadline of each. on_first: called when the first one parks."""

    def __init__(self, limit: int) -> None:
        self._queues: dict[str, ParkedQueue] = {}
        self._calls: dict[int, Call[Any]] = {}
        self._by_queue: dict[str, tuple[Receiver, ...]] = {}
        self._changed: set[str] = set()
        self._deadlines: list[tuple[float, int, Call[Any]]] = []
        self._ids = count()
        self.budget = Budget(limit)
        self.on_first: Callable[[], object] = lambda: None

    def __getitem__(self, queue: str) -> ParkedQueue:
        return self._queues[queue]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queues)

    def __len__(self) -> int:
        return len(self._queues)

    def by_queue(self) -> Mapping[str, tuple[Receiver, ...]]:
        """The receivers of each queue, the longest waiting first, at most RECEIVERS_OFFERED_MAX of each.

        The returned mapping never changes: receivers that come or leave are seen in the next one.
        """
        if self._changed:
            receivers = self._by_queue.copy()
            for queue in self._changed:
                parked = self._queues.get(queue)
                if parked is None:
                    receivers.pop(queue, None)
                else:
                    receivers[queue] = _offered(parked.line.values())
            self._by_queue = receivers
            self._changed.clear()
        return self._by_queue

    def find(self, receiver_id: int) -> Call[Any] | None:
        """The call of a receiver; None if it is no longer parked."""
        return self._calls.get(receiver_id)

    def still_waiting(self, receiver_ids: Iterable[int]) -> list[Call[Any]]:
        """The calls of these receivers, without those that have left."""
        found = map(self.find, receiver_ids)
        return [call for call in found if call is not None]

    @property
    def total(self) -> int:
        return len(self._calls)

    def count(self, queue: str) -> int:
        """How many receivers are parked on `queue`."""
        parked = self._queues.get(queue)
        return 0 if parked is None else len(parked)

    def add(self, call: Call[Any], claim: Claim, deadline: float) -> bool:
        """Park a call, whose command is `claim`, at the end of its queue's line until `deadline` (trio's clock).

        Returns False, and does nothing, if there are too many, in all or of its holder.
        """
        if not self.budget.take(call.holder):
            return False
        parked = self._queues.get(claim.queue)
        if parked is None:
            parked = self._queues[claim.queue] = ParkedQueue(claim.queue, self)
        receiver = Receiver(next(self._ids), claim)
        parked.line[call] = receiver
        call.parked_in = parked
        self._calls[receiver.id] = call
        if len(self._calls) == 1:
            self.on_first()
        self._changed.add(claim.queue)
        heapq.heappush(self._deadlines, (deadline, receiver.id, call))
        if len(self._deadlines) > 2 * self.total + 1_000:
            self._deadlines = [entry for entry in self._deadlines if entry[2].parked_in is not None]
            heapq.heapify(self._deadlines)
        return True

    def remove(self, call: Call[Any]) -> None:
        """Take a call out of its line; does nothing for one that is not parked."""
        parked = call.parked_in
        if parked is None:
            return
        call.parked_in = None
        self.budget.change(call.holder, -1)
        del self._calls[parked.line.pop(call).id]
        self._changed.add(parked.queue)
        if not parked.line:
            del self._queues[parked.queue]

    def next_deadline(self) -> float:
        """The earliest deadline (trio's clock); infinity when no receiver is parked."""
        while self._deadlines and self._deadlines[0][2].parked_in is None:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else float("inf")

    def expire(self, now: float, most: float = inf) -> None:
        """Answer receivers whose deadline has passed with nothing, at most `most` of them. now: infinity for all."""
        while most > 0 and self.next_deadline() <= now:
            if not self._deadlines:
                return
            most -= 1
            call = heapq.heappop(self._deadlines)[2]
            self.remove(call)
            call.resolve(())


def _offered(line: Iterable[Receiver]) -> tuple[Receiver, ...]:
    """The first receivers; at most half of them have conditions, so that the others are always served."""
    filtered = 0
    offered: list[Receiver] = []
    for receiver in line:
        filtered += bool(receiver.claim.where)
        if not receiver.claim.where or filtered <= limits.RECEIVERS_OFFERED_MAX // 2:
            offered.append(receiver)
            if len(offered) == limits.RECEIVERS_OFFERED_MAX:
                break
    return tuple(offered)
