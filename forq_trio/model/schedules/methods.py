"""Methods for schedules."""

from abc import ABC, abstractmethod

from forq_trio.model.limits import NEXT_RUNS_DEFAULT, RUNS_SHOWN_DEFAULT, SCHEDULES_PAGE_DEFAULT
from forq_trio.model.messages.types import Produced
from forq_trio.model.schedules.types import (
    ChangedSchedule,
    NewSchedule,
    NextRun,
    ScheduleDetails,
    SchedulePage,
    Timing,
)


class ScheduleMethods(ABC):
    """The server keeps and runs schedules."""

    @abstractmethod
    async def save_schedule(
        self, name: str, schedule: NewSchedule, *, only_new: bool = False
    ) -> ChangedSchedule:
        """Store a schedule, in place of the one of this name if there is one; returns once it is durable.

        name: 1-128 characters of A-Z a-z 0-9 . _ -. only_new: refuse a name that is taken. A schedule that is replaced
        keeps what is known of its runs; its next run is the first one from now on, and stays if the timing does. Raises
        InvalidSchedule; InvalidCron, whose `place` says what is wrong in the expression; ScheduleExists,
        TooManySchedules, InvalidRequest for a member of a wrong type, and what `produce` raises for its message and
        queue, except QueueFull.
        """

    @abstractmethod
    async def schedule(self, name: str, *, runs: int = RUNS_SHOWN_DEFAULT) -> ScheduleDetails:
        """A schedule with its next five runs, and its latest ones, at most `runs` (0-100).

        The next runs are those that its timing has, also while it is paused. Cancelled, the read is interrupted. Raises
        InvalidSchedule, ScheduleNotFound, OutOfRange, ReadDeadlineExceeded, StorageUnavailable or Stopping.
        """

    @abstractmethod
    async def schedules(
        self, *, after: str | None = None, limit: int = SCHEDULES_PAGE_DEFAULT
    ) -> SchedulePage:
        """A page of the schedules by name, at most `limit` (1-1,000), and 4 MiB of content.

        after: the `next` of the page before. Raises OutOfRange, InvalidContent, and what reads raise.
        """

    @abstractmethod
    async def next_runs(self, timing: Timing, count: int = NEXT_RUNS_DEFAULT) -> list[NextRun]:
        """When a schedule with this timing would run next, `count` (1-100) times; nothing is stored.

        Raises InvalidSchedule, InvalidCron, InvalidRequest or OutOfRange.
        """

    @abstractmethod
    async def pause_schedule(self, name: str) -> ChangedSchedule:
        """Stop the runs of a schedule until `resume_schedule`. Runs in between are not sent later.

        A paused one is unchanged. Raises InvalidSchedule, ScheduleNotFound.
        """

    @abstractmethod
    async def resume_schedule(self, name: str) -> ChangedSchedule:
        """Go on with the runs of a paused schedule, from now on. Raises InvalidSchedule, ScheduleNotFound."""

    @abstractmethod
    async def run_schedule(self, name: str) -> Produced:
        """Send the message of a schedule now, also of a paused one; its next run stays where it is.

        Raises InvalidSchedule, ScheduleNotFound, QueueFull, TooManyQueues.
        """

    @abstractmethod
    async def delete_schedule(self, name: str) -> None:
        """Delete a schedule and the results of its runs; messages that it sent stay.

        Raises InvalidSchedule, ScheduleNotFound.
        """
