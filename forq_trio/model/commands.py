"""The commands that the writer actor executes. Every command names its outcome: `Command[Outcome]`.

Commands are plain values that the broker has already validated; the storage engine executes them. All commands of a
batch were sent before any of them was answered, so any order is correct; the engine takes that of `COMMANDS`. The class
of a command declares everything about it, in one of these modules.
"""

from collections.abc import Collection
from typing import Any

from forq_trio.model.access.commands import *
from forq_trio.model.command import *
from forq_trio.model.consumers.commands import *
from forq_trio.model.keys.commands import *
from forq_trio.model.message_batches.commands import *
from forq_trio.model.messages.receive_commands import *
from forq_trio.model.messages.send_commands import *
from forq_trio.model.outboxes.commands import *
from forq_trio.model.publishing.commands import *
from forq_trio.model.queues.commands import *
from forq_trio.model.results.commands import *
from forq_trio.model.schedules.commands import *
from forq_trio.model.server.commands import *

_GROUPS: list[CommandOrder | None] = list(CommandOrder)
COMMANDS: tuple[type[Command[Any]], ...] = tuple(
    sorted(Command.__subclasses__(), key=lambda kind: _GROUPS.index(kind.traits.order))
)
"""All commands, in the order in which a batch runs them."""
NOTED = frozenset(kind for kind in COMMANDS if kind.traits.noted is not None)


def in_order(kinds: Collection[type[Command[Any]]]) -> tuple[type[Command[Any]], ...]:
    """The commands for which an engine has operations, in order. Raises TypeError unless these are all but Claim."""
    if odd := ({*COMMANDS} - {Claim}) ^ {*kinds}:
        raise TypeError(f"no operation, or no command: {sorted(kind.__name__ for kind in odd)}")
    return tuple(kind for kind in COMMANDS if kind in kinds)
