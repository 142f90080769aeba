"""Splits commands about many messages into parts and steps, so that no batch becomes long."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from forq_trio.in_place import require_task
from forq_trio.model import limits
from forq_trio.model.commands import Command, PurgeStep
from forq_trio.writer_actor import WriterActor

ItemT = TypeVar("ItemT")
OutcomeT = TypeVar("OutcomeT")


async def execute_in_parts(
    writer: WriterActor,
    items: Sequence[ItemT],
    command_of: Callable[[tuple[ItemT, ...]], Command[tuple[OutcomeT, ...]]],
) -> tuple[OutcomeT, ...]:
    """Execute commands of at most PART_MESSAGES_MAX of these items each; returns an outcome for each item.

    Raises the errors of `WriterActor.execute`. If it raises or is cancelled, some parts may have been executed.
    """
    size = limits.PART_MESSAGES_MAX
    if len(items) <= size:
        return await writer.execute(command_of(tuple(items)))
    require_task()  # the inbox may be full when some parts are in it
    parts = [command_of(tuple(items[start : start + size])) for start in range(0, len(items), size)]
    outcomes = await writer.execute_each(parts)
    return tuple(outcome for part in outcomes for outcome in part)


class Executor(Protocol):
    """The writer, or the backend of a queue."""

    async def execute(self, command: Command[OutcomeT]) -> OutcomeT: ...


async def purge_in_steps(
    executor: Executor,
    step: Callable[[str, int | None], Command[PurgeStep]],
    queue: str,
    on_step: Callable[[int], None],
) -> int:
    """Remove all messages that a queue has now, step by step; returns how many.

    step: makes the command of a step. on_step: called with the number removed so far.
    """
    removed, up_to = 0, None
    while True:
        purged = await executor.execute(step(queue, up_to))
        removed, up_to = removed + purged.count, purged.up_to
        on_step(removed)
        if up_to is None:
            return removed
