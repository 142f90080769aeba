"""The errors about schedules; `errors` has them, too."""

from typing import NamedTuple

from forq_trio.model.forq_error import CallerError, NotFound


class InvalidSchedule(
    CallerError,
    code="bad_request.schedule.invalid",
    means="The schedule has none of cron, every and daily, or more than one of them.",
    members={
        "schedule": (
            "bad_request.schedule.invalid_name",
            "The name of a schedule is not 1 to 128 characters of A-Z a-z 0-9 . _ -.",
        ),
        "every": (
            "bad_request.every.invalid",
            "every is not a duration of 1 s to 366 d, such as 90s or 1h30m.",
        ),
        "daily": (
            "bad_request.daily.invalid",
            "daily is not 1 to 100 different times of a day, such as 08:00 or 08:00:30.",
        ),
        "timeZone": (
            "bad_request.timeZone.invalid",
            "timeZone is not the name of a time zone such as Europe/Paris.",
        ),
        "jitter": ("bad_request.jitter.invalid", "jitter is not a duration of at most 24 h, such as 30s."),
        "start": ("bad_request.start.invalid", "start is not a time until the year 9999."),
        "end": ("bad_request.end.invalid", "end is not a time until the year 9999, or lies before start."),
    },
):
    """A schedule takes exactly one of cron, every and daily"""


class CronPlace(NamedTuple):
    """Where a cron expression is wrong."""

    number: int  # of the field, from 1; 0 for the whole expression
    start: int  # this and the next: the range of characters, from 0; `end` is not included
    end: int
    allowed: str  # what may be there, in words

    @property
    def carets(self) -> str:
        """A line that points at these characters, below the expression."""
        return " " * self.start + "^" * max(1, self.end - self.start)


class InvalidCron(
    CallerError,
    code="bad_request.cron.invalid",
    means="The cron expression is not valid; `message` says where, and what may be there.",
):
    """The cron expression is not valid

    place: where; None where a server did not say it.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = "cron",
        code: str | None = None,
        place: CronPlace | None = None,
    ) -> None:
        super().__init__(message, field=field, code=code)
        self.place = place

    @classmethod
    def sentence(cls) -> str:
        return "The cron expression is not valid"


class ScheduleNotFound(NotFound, code="not_found.schedule"):
    """There is no schedule of that name"""


class ScheduleExists(CallerError, code="conflict.schedule_exists", status=409):
    """There is a schedule of that name already"""


class TooManySchedules(CallerError, code="conflict.too_many_schedules", status=409):
    """There are as many schedules as are allowed, in all or of one access token; delete some first"""
