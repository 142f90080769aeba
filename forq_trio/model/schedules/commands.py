"""Commands on schedules. Runs need no command: each batch carries out those that are due."""

from forq_trio.model import limits
from forq_trio.model.command import Command, CommandOrder, Effect, Traits
from forq_trio.model.messages.types import Produced
from forq_trio.model.schedules.types import NewSchedule, Schedule

_CHARACTER_BYTES_MAX = 4


def _bytes_max(command: "SaveSchedule") -> int:
    return len(command.new.content) * _CHARACTER_BYTES_MAX + limits.ATTRIBUTES_BYTES_MAX


class SaveSchedule(Command[Schedule], frozen=True, gc=False):
    """Store a schedule. It replaces one of the same name, whose runs and maker it keeps.

    Fails with TooManySchedules.
    """

    traits = Traits(CommandOrder.SCHEDULES, Effect.GROWS, weighs=limits.SCHEDULE_WEIGHT, stores=_bytes_max)

    name: str
    new: NewSchedule
    only_new: bool = False  # fail with ScheduleExists if there is one
    by: str | None = None  # the name of the access token, None for the secret


class PauseSchedule(Command[Schedule], frozen=True, gc=False):
    """Stop the runs of a schedule, or (paused False) resume with the first one after now. Fails with ScheduleNotFound.

    by: as for `SaveSchedule`.
    """

    traits = Traits(CommandOrder.SCHEDULES, Effect.LASTS, weighs=limits.SCHEDULE_WEIGHT)

    name: str
    paused: bool
    by: str | None = None


class DeleteSchedule(Command[bool], frozen=True, gc=False):
    """Remove a schedule and the records of its runs; its messages stay. False if there is none."""

    traits = Traits(CommandOrder.SCHEDULES, Effect.LASTS, weighs=limits.SCHEDULE_WEIGHT)

    name: str


class RunSchedule(Command[Produced], frozen=True, gc=False):
    """Send the message of a schedule now, regardless of its timing, pause and `whilePending`; the next run stays.

    Fails with ScheduleNotFound, QueueFull, TooManyQueues or Overloaded.
    """

    traits = Traits(
        CommandOrder.SCHEDULES,
        Effect.GROWS,
        weighs=limits.SCHEDULE_WEIGHT,
        stores=limits.CONTENT_BYTES_MAX + limits.ATTRIBUTES_BYTES_MAX,
    )

    name: str
