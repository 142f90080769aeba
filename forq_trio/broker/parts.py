"""Commands that name many messages, in parts: so that no batch is long because of one of them."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from forq_trio.model import limits
from forq_trio.model.commands import Command
from forq_trio.writer_actor import WriterActor

ItemT = TypeVar("ItemT")
OutcomeT = TypeVar("OutcomeT")


async def execute_in_parts(
    writer: WriterActor,
    items: Sequence[ItemT],
    command_of: Callable[[tuple[ItemT, ...]], Command[tuple[OutcomeT, ...]]],
) -> tuple[OutcomeT, ...]:
    """Have these items dealt with by commands of at most PART_MESSAGES_MAX of them; returns an outcome for each.

    Raises what `WriterActor.execute` raises. Where that happens, or it is cancelled, some parts may have been executed.
    """
    size = limits.PART_MESSAGES_MAX
    if len(items) <= size:
        return await writer.execute(command_of(tuple(items)))
    parts = [command_of(tuple(items[start : start + size])) for start in range(0, len(items), size)]
    outcomes = await writer.execute_each(parts)
    return tuple(outcome for part in outcomes for outcome in part)
