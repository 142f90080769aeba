"""The reference engine: redrive tasks."""

from forq_trio.model.commands import ChangeRedrive, ForgetRedrive, SaveRedrive
from forq_trio.model.dead_letters.redrives import RedriveStep, RedriveTask, after_step
from forq_trio.model.errors import ServiceError
from forq_trio.storage import bound_tables, rules
from oracle.operations import operation
from oracle.transaction import Transaction


@operation(SaveRedrive)
def save(tx: Transaction, command: SaveRedrive) -> None:
    redrives = tx.state.redrives
    if (refusal := bound_tables.check_all_unbound((command.task.target,), tx.state.settings.get)) is not None:
        raise refusal
    if command.task.id not in redrives:
        forgotten = rules.redrive_to_forget(redrives.values(), command.task.started_by)
        if isinstance(forgotten, ServiceError):
            raise forgotten
        if forgotten is not None:
            del redrives[forgotten]
    redrives[command.task.id] = command.task


@operation(ChangeRedrive)
def change(tx: Transaction, command: ChangeRedrive) -> RedriveTask | None:
    if (task := tx.state.redrives.get(command.task_id)) is None:
        return None
    tx.state.redrives[command.task_id] = rules.after_change(task, command, tx.now_ms)
    return tx.state.redrives[command.task_id]


@operation(ForgetRedrive)
def forget(tx: Transaction, command: ForgetRedrive) -> bool:
    return tx.state.redrives.pop(command.task_id, None) is not None


def check_step(tx: Transaction, step: RedriveStep | None) -> None:
    """Raise if the walk of this step no longer owns its task."""
    if step is not None and (refusal := rules.step_refused(tx.state.redrives.get(step.task_id), step)):
        raise refusal


def take_step(tx: Transaction, step: RedriveStep | None, moved: int) -> None:
    """Store the progress of a task after a step that moved or deleted `moved` messages."""
    if step is not None:
        task = tx.state.redrives[step.task_id]
        tx.state.redrives[step.task_id] = after_step(task, step, moved, tx.now_ms)
