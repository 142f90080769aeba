"""Commands on queues, on single messages by id, and on redrive tasks."""

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.command import Command, CommandOrder, Effect, Traits, Work
from forq_trio.model.dead_letters.redrives import RedriveState, RedriveStep, RedriveTask
from forq_trio.model.errors import ForqError
from forq_trio.model.queues.settings import QueueSettings, QueueTable, SettingsChange
from forq_trio.model.sqs.types import SqsChange


def _count(command: "NameQueues") -> int:
    return len(command.queues)


def _named(command: "Redrive | Delete") -> int:
    return len(command.message_ids)


def _forgotten(command: "ForgetQueue") -> int:
    return 1 + command.messages_max


def _details_bytes(command: "Configure") -> int:
    return 0 if command.details is None else limits.SQS_DETAILS_BYTES_MAX


class Configure(Command[QueueSettings], frozen=True, gc=False):
    """Change the settings of a queue; outcome: its new settings. change: None removes all but the pause.

    Fails with InvalidSetting if dead letters would go round in a circle or through too many queues, and with
    TooManyQueues or Overloaded if the queue may not be made.
    """

    traits = Traits(CommandOrder.SETTINGS, Effect.LASTS, weighs=1, stores=_details_bytes)

    queue: str
    change: SettingsChange | None
    details: SqsChange | None = (
        None  # what changes of those that one dialect has; such a queue exists from then on
    )
    made_by: str = ""  # the access token that a queue made by `details` counts for; "" for none


class NameQueues(Command[tuple[ForqError | None, ...]], frozen=True, gc=False):
    """Create queues before an access token uses them for the first time; a token may make only a share of all queues.

    made_by: the token's name. Outcome per queue: None if it exists now, or the error if it may not be made.
    """

    traits = Traits(CommandOrder.SETTINGS, Effect.LASTS, weighs=_count)

    queues: tuple[str, ...]
    made_by: str


class Pause(Command[None], frozen=True, gc=False):
    """Stop deliveries of a queue, or (paused False) deliver again and serve parked receivers. Sends still work."""

    traits = Traits(CommandOrder.SETTINGS, Effect.LASTS, weighs=1)

    queue: str
    paused: bool


class BindTable(Command[ForqError | None], frozen=True, gc=False):
    """Bind a queue to a table, whose rows are its messages from then on; None: unbind it.

    Outcome: None, or the error: QueueNotEmpty, QueueBound if the table belongs to another queue or the queue takes dead
    letters, InvalidSetting if a setting has no meaning for a table, QueueNotBound.
    """

    traits = Traits(CommandOrder.SETTINGS, Effect.LASTS, weighs=1)

    queue: str
    table: QueueTable | None


class Redrive(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Move messages to `target`, or (None) each to the queue it came from; resets attempts, due time, TTL and reason.

    They keep id, sequence number, position and failures. Outcome per id: False if the message is not in `queue`, is
    processing, or has no queue to go to. Bounds of the target are ignored. step: the progress of the task that asks.
    """

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=_named)

    queue: str
    message_ids: tuple[str, ...]
    target: str | None = None
    step: RedriveStep | None = None


class Delete(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove messages for good. Outcome per id: False if the message is not in `queue`, or is processing.

    step: the progress of the task that asks.
    """

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=_named)

    queue: str
    message_ids: tuple[str, ...]
    step: RedriveStep | None = None


class Cancel(Command[None], frozen=True, gc=False):
    """Remove a message that nobody has received: ready, delayed, held, or failed and about to be moved.

    Fails with MessageInFlight where a consumer has it, and with MessageNotFound where it is not in `queue`.
    """

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=1)

    queue: str
    message_id: str


class CancelRunning(Command[None], frozen=True, gc=False):
    """Remove a message whether or not a consumer has it; a receipt of it is void then.

    Fails with MessageNotFound where it is not in `queue`.
    """

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=1)

    queue: str
    message_id: str
    reason: str = ""  # what its consumer is told, and its last error; "" for nothing


class PurgeStep(Struct, frozen=True, gc=False):
    """One step of a purge."""

    count: int  # how many messages were removed
    up_to: int | None  # the `up_to` of the next step, None at the end


class Purge(Command[PurgeStep], frozen=True, gc=False):
    """Remove up to PURGE_BATCH_MAX messages of a queue, whatever their status.

    up_to: the last sequence number to remove; None begins a purge of the messages that were sent before this batch. The
    outcome has the `up_to` of the next step, so that messages that are sent in the meantime stay.
    """

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=limits.PURGE_BATCH_MAX, work=Work.LONG)

    queue: str
    up_to: int | None = None


class ForgetQueue(Command[bool], frozen=True, gc=False):
    """Forget an empty queue, its settings and its deduplication ids. False if it has messages; then it stays.

    A batch forgets a bounded number of ids, and the last one the queue. messages_max: remove up to so many messages
    with the queue, whatever their status.
    """

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=_forgotten)

    queue: str
    messages_max: int = 0


class SaveRedrive(Command[None], frozen=True, gc=False):
    """Store a redrive task, in place of the one with this id if there is one.

    If there are REDRIVES_REMEMBERED_MAX tasks, a new one replaces the oldest one that has ended; it fails with
    TooManyRedrives if none has.
    """

    traits = Traits(CommandOrder.TASKS, Effect.LASTS, weighs=1)

    task: RedriveTask


class ChangeRedrive(Command[RedriveTask | None], frozen=True, gc=False):
    """Bring a task to another state. Outcome: the task afterwards, None if there is none with this id.

    A change that its state does not allow does nothing. Only a running task can be paused, and only one that has not
    ended can be cancelled. Only a paused or failed one can be resumed ("running"); a running one can be taken over if
    it has no walk, or a silent one.
    """

    traits = Traits(CommandOrder.TASKS, Effect.LASTS, weighs=1)

    task_id: str
    state: RedriveState
    error: str | None = None  # why it failed
    walker: str = ""  # the walk that continues it
    # how far a walk has come; it is stored if the walk still owns the task. A walk must give it, and own the task,
    # to say that the task is done, has failed, or is running: the walk is alive, or gives the task up (walker "")
    step: RedriveStep | None = None


class ForgetRedrive(Command[bool], frozen=True, gc=False):
    """Forget the task with this id; False if there is none."""

    traits = Traits(CommandOrder.TASKS, Effect.LASTS, weighs=1)

    task_id: str
