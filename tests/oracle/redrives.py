"""The reference engine: tasks over dead letters."""

from forq_trio.model.commands import ForgetRedrive, SaveRedrive
from forq_trio.model.errors import ServiceError
from forq_trio.model.redrives import RedriveStep
from forq_trio.storage import rules
from oracle.operations import operation
from oracle.transaction import Transaction


@operation(SaveRedrive)
def save(tx: Transaction, command: SaveRedrive) -> None:
    redrives = tx.state.redrives
    if command.task.id not in redrives:
        forgotten = rules.redrive_to_forget(redrives.values(), command.task.started_by)
        if isinstance(forgotten, ServiceError):
            raise forgotten
        if forgotten is not None:
            del redrives[forgotten]
    redrives[command.task.id] = command.task


@operation(ForgetRedrive)
def forget(tx: Transaction, command: ForgetRedrive) -> bool:
    return tx.state.redrives.pop(command.task_id, None) is not None


def take_step(tx: Transaction, step: RedriveStep | None, moved: int) -> None:
    """Store how far a task is, now that it moved or deleted so many messages."""
    if step is not None and step.task_id in tx.state.redrives:
        task = tx.state.redrives[step.task_id]
        tx.state.redrives[step.task_id] = rules.after_step(task, step, moved)
