"""Driving an engine by hand, without actors."""

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import closing
from itertools import count
from typing import Any, TypeVar

from msgspec.json import decode
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import Claim, Command
from forq_trio.model.messages.types import Delivery
from forq_trio.storage.engine import DEFERRED, Batch, BatchResult, Deferred, Engine, Receiver
from forq_trio.storage.reader import ReadAfter, Reader
from support.actors import T0

ReadT = TypeVar("ReadT")
Receivers = Mapping[str, Sequence[Receiver]]


def waiting(claims: Mapping[str, Sequence[Claim]]) -> dict[str, tuple[Receiver, ...]]:
    """These claims as receivers that wait, by queue."""
    ids = count(1)
    return {queue: tuple(Receiver(next(ids), claim) for claim in some) for queue, some in claims.items()}


def served_by_queue(
    result: BatchResult, receivers: Receivers
) -> dict[str, list[tuple[int, tuple[Delivery, ...]]]]:
    """What the receivers got: by queue, as (place in its line, deliveries), in the order of the line."""
    places = {
        receiver.id: (queue, place)
        for queue, line in receivers.items()
        for place, receiver in enumerate(line)
    }
    assert len({receiver for receiver, _ in result.served}) == len(result.served), "somebody was served twice"
    served: dict[str, list[tuple[int, tuple[Delivery, ...]]]] = {}
    for receiver, deliveries in sorted(result.served, key=lambda each: places[each[0]]):
        queue, place = places[receiver]
        served.setdefault(queue, []).append((place, deliveries))
    return served


def run(
    engine: Engine,
    *commands: Command[Any],
    now_ms: int = T0,
    parked: Mapping[str, Sequence[Claim]] | None = None,
    notified: Set[str] = frozenset(),
) -> BatchResult:
    """Execute one batch and commit it. `served` is by queue here, as (place in parked[queue], deliveries)."""
    receivers = waiting(parked or {})
    result = engine.execute_batch(Batch(commands, now_ms, receivers, notified=notified))
    engine.commit()
    return replace(result, served=served_by_queue(result, receivers))


def do(engine: Engine, command: Command[Any], now_ms: int = T0) -> Any:
    """The outcome of a command in a batch of its own."""
    return run(engine, command, now_ms=now_ms).outcomes[0]


def looking(engine: Engine, read: Callable[[Reader], ReadT], now_ms: int = T0) -> ReadT:
    """What a pool of readers answers: a command that a read needs before it is run."""
    with closing(engine.open_reader()) as reader:
        while True:
            try:
                return read(reader)
            except ReadAfter as needed:
                while do(engine, needed.command, now_ms) is DEFERRED:
                    pass


def read_events(reader: Reader, *, after: int = 0, queue: str | None = None) -> list[dict[str, Any]]:
    """All lifecycle events behind `after`, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        page = reader.log_lines("events", after, None, limits.LOG_PAGE_MAX, queue)
        found += [decode(line) for line in page.lines.splitlines()]
        if page.next >= page.last:
            return found
        assert page.next > after
        after = page.next


def run_to_the_end(commands: Sequence[Any], run: Callable[[Sequence[Any]], Sequence[Any]]) -> list[Any]:
    """The outcomes of commands of one batch; what it leaves of them is run in the next ones, as the writer does.

    run: runs a batch, and returns its outcomes.
    """
    rest, done = list(commands), [()] * len(commands)
    outcomes = list(run(rest))
    while left := [index for index, outcome in enumerate(outcomes) if isinstance(outcome, Deferred)]:
        for index in left:
            if parts := outcomes[index].done:
                done[index] += parts
                rest[index] = rest[index].part(len(parts))
        for index, outcome in zip(left, run([rest[index] for index in left]), strict=True):
            is_rest = bool(done[index]) and isinstance(outcome, tuple)
            outcomes[index] = done[index] + outcome if is_rest else outcome
    return outcomes
