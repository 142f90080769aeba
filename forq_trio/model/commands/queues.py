"""Commands on queues, on messages in them that are named by id, and on tasks over dead letters."""

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.commands.base import Command, CommandOrder, Effect, Traits, Work
from forq_trio.model.errors import ForqError
from forq_trio.model.messages import Status
from forq_trio.model.queue_settings import QueueSettings, QueueTable, SettingsChange
from forq_trio.model.redrives import RedriveState, RedriveStep, RedriveTask


def _count(command: "NameQueues") -> int:
    return len(command.queues)


def _named(command: "Redrive | Delete") -> int:
    return len(command.message_ids)


class Configure(Command[QueueSettings], frozen=True, gc=False):
    """Change the settings of a queue; outcome: its settings now. change: None removes all but the pause.

    Fails with InvalidSetting where dead letters would go round in a circle.
    """

    traits = Traits(CommandOrder.SETTINGS, Effect.LASTS, weighs=1)

    queue: str
    change: SettingsChange | None


class NameQueues(Command[tuple[ForqError | None, ...]], frozen=True, gc=False):
    """Make queues exist, before an access token uses them for the first time: it may make only a share of all.

    made_by: the token's name. Outcome per queue: None if it exists now, the error where it may not be made.
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
    """Bind a queue to a table, which has its messages from then on; None: it has messages of its own again.

    Outcome: None, or why not: QueueNotEmpty, QueueBound where the table is another queue's or the queue takes dead
    letters, InvalidSetting where a setting cannot hold for it, QueueNotBound.
    """

    traits = Traits(CommandOrder.SETTINGS, Effect.LASTS, weighs=1)

    queue: str
    table: QueueTable | None


class Redrive(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Move messages to `target`, or (None) each to the queue it came from: attempts, due time, TTL and reason reset.

    They keep their id, sequence, position and failures. Outcome per id: False for one that is not in `queue`, is
    processing, or has no queue to go to. Bounds of the target are ignored. step: the progress of the task that asks.
    """

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=_named)

    queue: str
    message_ids: tuple[str, ...]
    target: str | None = None
    step: RedriveStep | None = None


class Delete(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove messages for good. Outcome per id: False for one that is not in `queue`, or is processing.

    step: the progress of the task that asks.
    """

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=_named)

    queue: str
    message_ids: tuple[str, ...]
    step: RedriveStep | None = None


class Cancel(Command[Status | None], frozen=True, gc=False):
    """Remove a message that nobody has received: ready, delayed, held, or failed and about to be moved.

    Outcome: its status until now. PROCESSING: it is in flight, and stays. None: it is not in `queue`.
    """

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=1)

    queue: str
    message_id: str


class PurgeStep(Struct, frozen=True, gc=False):
    """One step of a purge."""

    count: int  # how many messages were removed
    up_to: int | None  # of the next `Purge`, None at the end


class Purge(Command[PurgeStep], frozen=True, gc=False):
    """Remove up to PURGE_BATCH_MAX messages of a queue, in whatever status.

    up_to: only messages with a sequence up to this one; None begins a purge of the messages sent before this batch.
    The outcome has the `up_to` of the next step, so that messages that are sent meanwhile stay.
    """

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=limits.PURGE_BATCH_MAX, work=Work.LONG)

    queue: str
    up_to: int | None = None


class ForgetQueue(Command[bool], frozen=True, gc=False):
    """Forget an empty queue and its settings. False if it has messages: nothing is changed then."""

    traits = Traits(CommandOrder.MOVE, Effect.LASTS, weighs=1)

    queue: str


class SaveRedrive(Command[None], frozen=True, gc=False):
    """Store a task over dead letters, in place of the one of this id if there is one.

    A new one that would be more than REDRIVES_REMEMBERED_MAX takes the place of the one that ended and was stored
    first; it fails with TooManyRedrives if none has ended.
    """

    traits = Traits(CommandOrder.TASKS, Effect.LASTS, weighs=1)

    task: RedriveTask


class ChangeRedrive(Command[RedriveTask | None], frozen=True, gc=False):
    """Bring a task to another state; returns it as it is then, None if there is none of this id.

    What its state does not allow changes nothing: only a running one can be paused, only one that has not ended
    cancelled; only a paused or failed one can be resumed ("running"), or a running one taken over that has no walk, or
    a silent one.
    """

    traits = Traits(CommandOrder.TASKS, Effect.LASTS, weighs=1)

    task_id: str
    state: RedriveState
    error: str | None = None  # why it failed
    walker: str = ""  # the walk that goes on with it
    # how far a walk has come; it is stored if the walk still has the task. Only with it, and while it has the
    # task, a walk can say that the task is done, failed, or running: then the walk is alive, or gives the
    # task up (walker is "").
    step: RedriveStep | None = None


class ForgetRedrive(Command[bool], frozen=True, gc=False):
    """Forget the task of this id; False if there is none."""

    traits = Traits(CommandOrder.TASKS, Effect.LASTS, weighs=1)

    task_id: str
