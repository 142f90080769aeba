"""Endpoints for schedules: save, show, pause, run now, delete, and a look at the times of one that is not saved."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint, declare_topic
from forq_trio.model.messages.types import Produced
from forq_trio.model.paths import PathParameter, declare_path, name_schema
from forq_trio.model.schedules import bodies
from forq_trio.model.schedules.types import (
    ChangedSchedule,
    NewSchedule,
    ScheduleDetails,
    SchedulePage,
    Timing,
)

_TAG = "Schedules"
declare_topic(
    "Schedules",
    "The server sends the message of a schedule at its times; docs/schedules.md says what it promises. "
    "A token needs the scope `schedule` for the queue of the schedule, and `produce` on it for whatever "
    "lets it send: to save, resume or run it. Reading takes `browse` on the queue.",
)
declare_path(
    schedule=PathParameter(
        "The schedule's name: 1 to 128 characters of A-Z a-z 0-9 . _ -, but not . or .. alone.",
        name_schema("A-Za-z0-9._-", 128),
        errors.InvalidSchedule,
    )
)
LIST_SCHEDULES = Endpoint(
    "GET",
    "/schedules",
    Scope.BROWSE,
    name="listSchedules",
    tag=_TAG,
    summary="All schedules, page by page",
    description="A key for some queues sees only schedules that send to one of them: then a page may have fewer than "
    "`limit` although more follow.",
    query=bodies.SchedulesQuery,
    answers=(Answer(200, "The schedules by name.", SchedulePage),),
    errors=(errors.InvalidContent, *READ_ERRORS),
)
SAVE_SCHEDULE = Endpoint(
    "PUT",
    "/schedules/{schedule}",
    Scope.SCHEDULE,
    name="saveSchedule",
    tag=_TAG,
    summary="Make a schedule, or change one",
    description="The body is the whole schedule: what it leaves out gets its default, except `paused`, which stays. A "
    "token needs the scope `produce` for the queue, too. If the timing changes, the next run is computed "
    "from now on. With `onlyNew` a name that is taken is refused with 409 `conflict.schedule_exists`.\n\n"
    "The answer has neither the message nor the results of the runs: those take the scope `browse`, with "
    "a GET (docs/access.md#what-a-change-answers). A cron expression that is not valid is refused with "
    "its `place`: `field` is the number of its field, from 1 (0: the whole), `from` and `to` are its "
    "characters, from 0 and without the one at `to`, and `allowed` says what may be there.",
    query=bodies.SaveScheduleQuery,
    body=NewSchedule,
    answers=(Answer(200, "The schedule as it is stored.", ChangedSchedule),),
    errors=(
        errors.InvalidSchedule,
        errors.ProduceToDeadLetterQueue,
        errors.ScheduleExists,
        errors.TooManySchedules,
        errors.TooManyQueues,
        *STORE_ERRORS,
    ),
)
SHOW_SCHEDULE = Endpoint(
    "GET",
    "/schedules/{schedule}",
    Scope.BROWSE,
    name="showSchedule",
    tag=_TAG,
    summary="One schedule, its next runs, and the results of the last ones",
    description="With its message and all other members.",
    query=bodies.ScheduleQuery,
    answers=(Answer(200, "The schedule.", ScheduleDetails),),
    errors=(errors.ScheduleNotFound, *READ_ERRORS),
)
DELETE_SCHEDULE = Endpoint(
    "DELETE",
    "/schedules/{schedule}",
    Scope.SCHEDULE,
    name="deleteSchedule",
    tag=_TAG,
    summary="Delete a schedule and the results of its runs",
    description="Messages that it has sent stay.",
    answers=(Answer(204, "It is deleted.", NoneType),),
    errors=(errors.ScheduleNotFound, *WRITE_ERRORS),
)
PAUSE_SCHEDULE = Endpoint(
    "POST",
    "/schedules/{schedule}/pause",
    Scope.SCHEDULE,
    name="pauseSchedule",
    tag=_TAG,
    summary="Pause a schedule until it is resumed",
    description="Its runs until then are neither sent later nor counted as missed. A schedule that is paused already "
    "stays as it is. The answer is that of a save.",
    takes_nothing=True,
    answers=(Answer(200, "The schedule.", ChangedSchedule),),
    errors=(errors.ScheduleNotFound, *WRITE_ERRORS),
)
RESUME_SCHEDULE = Endpoint(
    "POST",
    "/schedules/{schedule}/resume",
    Scope.SCHEDULE,
    name="resumeSchedule",
    tag=_TAG,
    summary="End the pause of a schedule",
    description="It goes on with its next run from now. The token needs the scope `produce` for the queue, too. The "
    "answer is that of a save.",
    takes_nothing=True,
    answers=(Answer(200, "The schedule.", ChangedSchedule),),
    errors=(errors.ScheduleNotFound, *WRITE_ERRORS),
)
RUN_SCHEDULE = Endpoint(
    "POST",
    "/schedules/{schedule}/run",
    Scope.SCHEDULE,
    name="runSchedule",
    tag=_TAG,
    summary="Send the message of a schedule now",
    description="Even if it is paused. Its planned runs stay as they are. The token needs the scope `produce` for the "
    "queue, too.",
    takes_nothing=True,
    answers=(Answer(200, "The message.", Produced),),
    errors=(errors.ScheduleNotFound, errors.QueueFull, errors.TooManyQueues, *STORE_ERRORS),
)
NEXT_RUNS = Endpoint(
    "POST",
    "/schedule-preview",
    Scope.SCHEDULE,
    name="nextRuns",
    tag=_TAG,
    summary="The next runs that a timing would have",
    description="Nothing is stored. `note` says what a clock change does to a run. A token needs the scope `schedule`, "
    "for whatever queue.",
    query=bodies.NextRunsQuery,
    body=Timing,
    answers=(Answer(200, "The runs from now on; fewer if the timing ends.", bodies.NextRuns),),
    errors=(errors.InvalidSchedule,),
)
