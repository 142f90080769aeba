"""The table of operations by command; decorators on the functions fill it."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from forq_trio.model.commands import Command
from forq_trio.storage.engine import DEFERRED
from forq_trio.storage.relational.rehearsal import each_rehearsed
from forq_trio.storage.relational.transaction import Transaction

Operation = Callable[[Transaction, Sequence[Any]], Sequence[Any]]
OperationT = TypeVar("OperationT", bound=Callable[[Transaction, Any], Any])

Operations = dict[type[Command[Any]], Operation]
OPERATIONS: Operations = {}
"""The operations that all engines on SQL share."""


def operation(kind: type[Command[Any]]) -> Callable[[OperationT], OperationT]:
    """Decorates a function that carries out all commands of this kind of a batch together."""

    def note(carry_out: OperationT) -> OperationT:
        OPERATIONS[kind] = carry_out
        return carry_out

    return note


def carry_out_each(
    tx: Transaction,
    commands: Sequence[Any],
    carry_out: Callable[[Transaction, Any], Any],
    changes: Callable[[Transaction, Any], Iterable[Hashable]] | None,
) -> list[Any]:
    """Carry out commands one by one; the next batch does the rest once they have waited too often for the database.

    changes: see `operation_on_each`.
    """
    first = commands[0]

    def carry_out_one(command: Any) -> Any:
        if tx.waited_out and command is not first:
            return DEFERRED
        return carry_out(tx, command)

    if changes is None:
        return [carry_out_one(command) for command in commands]
    return each_rehearsed(tx, commands, carry_out_one, lambda command: changes(tx, command))


def operation_on_each(
    kind: type[Command[Any]],
    table: Operations = OPERATIONS,
    *,
    changes: Callable[[Transaction, Any], Iterable[Hashable]] | None = None,
) -> Callable[[OperationT], OperationT]:
    """Decorates a function that carries out one command of this kind; a batch calls it for each of them.

    changes: names of what a command changes, for commands that read. Commands without a name in common wait for the
    database together (rehearsal.py). None for commands that read nothing or are few in a batch. If they still wait too
    often, the next batch does the rest.
    """

    def note(carry_out: OperationT) -> OperationT:
        table[kind] = lambda tx, commands: carry_out_each(tx, commands, carry_out, changes)
        return carry_out

    return note
