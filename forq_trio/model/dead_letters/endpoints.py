"""Endpoints for dead letters: search, show, resubmit, redrive, delete, and tasks that do so for all that match."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.dead_letters import bodies
from forq_trio.model.dead_letters.redrives import ChangedRedrive, RedriveInfo
from forq_trio.model.dead_letters.searches import DeadLetterPage
from forq_trio.model.endpoint import READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint, declare_topic
from forq_trio.model.messages.types import MessageInfo, Produced
from forq_trio.model.paths import PathParameter, declare_path

_TAG = "Dead letters"
declare_topic(
    "Dead letters",
    "For dead-letter queues: those whose name ends in `-dlq`, and those that a setting "
    "`deadLetterQueue` names. Others answer 400 `bad_request.dlq_only_operation`. docs/dead-letters.md "
    "explains how to work with them.",
)
declare_path(redriveId=PathParameter("The redrive's id.", {"type": "string"}, errors.RedriveNotFound))
SEARCH_DEAD_LETTERS = Endpoint(
    "GET",
    "/queues/{queue}/dead-letters",
    Scope.BROWSE,
    name="searchDeadLetters",
    tag=_TAG,
    summary="Find dead letters, newest first",
    description="Those that match all parameters. A page reads at most 10,000 messages, has at most 4 MiB of content, "
    "attributes and reasons (or one message), and says how far it came.",
    query=bodies.DeadLettersQuery,
    answers=(Answer(200, "Those that match, with their provenance.", DeadLetterPage),),
    errors=(errors.InvalidRequest, errors.DeadLettersOnly, errors.QueueNotFound, *READ_ERRORS),
)
SHOW_DEAD_LETTER = Endpoint(
    "GET",
    "/queues/{queue}/dead-letters/{messageId}",
    Scope.BROWSE,
    name="showDeadLetter",
    tag=_TAG,
    summary="One dead letter, with where it came from and how it failed",
    description="404 `not_found.message` for one that is not in this queue.",
    answers=(Answer(200, "The message.", MessageInfo),),
    errors=(errors.DeadLettersOnly, errors.MessageNotFound, *READ_ERRORS),
)
RESUBMIT_DEAD_LETTER = Endpoint(
    "POST",
    "/queues/{queue}/dead-letters/{messageId}/resubmit",
    Scope.REDRIVE,
    name="resubmitDeadLetter",
    tag=_TAG,
    summary="Send an edited copy of a dead letter",
    description="The copy is a new message, with the original's priority, group and bounds, and with other content or "
    "attributes if they are given. The answer is that of a send. The target's bounds apply: 503 "
    "`forq.queue_full`, and the original stays. A token needs the scope for the target, if one is named; "
    "else `redrive` or `produce` for the queue that the message came from.",
    body=bodies.Resubmission,
    answers=(Answer(200, "The copy.", Produced),),
    errors=(
        errors.DeadLettersOnly,
        errors.MessageNotFound,
        errors.TooManyQueues,
        errors.QueueFull,
        *STORE_ERRORS,
    ),
)
REDRIVE_DEAD_LETTERS = Endpoint(
    "POST",
    "/queues/{queue}/dead-letters/redrive",
    Scope.REDRIVE,
    name="redriveDeadLetters",
    tag=_TAG,
    summary="Move dead letters back to where they came from",
    description="In transactions of 50. Attempts, due time, time to live and reason start anew; id, sequence and "
    "failures stay. The target's bounds do not apply. A message that is refused does not affect the "
    "others: its `code` is `not_found.message` if it is not in this queue, is in process, or has no queue "
    "to go to, or `bad_request.messageId.invalid` if the id is none. A token needs the scope for the "
    "target, too.",
    body=bodies.RedriveMessages,
    answers=(Answer(200, "One result per id, in their order.", bodies.MoveResults),),
    errors=(errors.DeadLettersOnly, errors.TooManyQueues, *WRITE_ERRORS),
)
DELETE_DEAD_LETTERS = Endpoint(
    "POST",
    "/queues/{queue}/dead-letters/delete",
    Scope.REDRIVE,
    name="deleteDeadLetters",
    tag=_TAG,
    summary="Remove dead letters for good",
    description="In transactions of 50. Results as for a redrive.",
    body=bodies.DeleteMessages,
    answers=(Answer(200, "One result per id, in their order.", bodies.MoveResults),),
    errors=(errors.DeadLettersOnly, *WRITE_ERRORS),
)
START_REDRIVE = Endpoint(
    "POST",
    "/queues/{queue}/dead-letters/redrives",
    Scope.REDRIVE,
    name="startRedrive",
    tag=_TAG,
    summary="Move or delete all dead letters that match",
    description="A task of the server takes those that are there now, in one transaction after the other, and "
    "continues after a restart. The answer comes once it is stored, without filter and counts: those take "
    "the scope `browse`, because a count of those that match a text tells of contents "
    "(docs/access.md#what-a-change-answers). A token needs `redrive` for the target, too. At most 16 run "
    "at once, and at most 100 are remembered, else 503 `forq.too_many_redrives`.",
    body=bodies.StartRedrive,
    answers=(Answer(202, "The task.", ChangedRedrive),),
    errors=(
        errors.DeadLettersOnly,
        errors.QueueNotFound,
        errors.TooManyQueues,
        errors.TooManyRedrives,
        errors.QueueBound,
        *WRITE_ERRORS,
    ),
)
LIST_REDRIVES = Endpoint(
    "GET",
    "/queues/{queue}/dead-letters/redrives",
    Scope.BROWSE,
    name="listRedrives",
    tag=_TAG,
    summary="The redrives of a queue",
    description="The latest first. The server remembers 100 of all queues, also after a restart: a new one replaces "
    "the oldest that has ended.",
    answers=(Answer(200, "Those that run or are paused, and the latest that ended.", bodies.RedriveList),),
    errors=(errors.DeadLettersOnly, errors.Stopping),
)
SHOW_REDRIVE = Endpoint(
    "GET",
    "/queues/{queue}/dead-letters/redrives/{redriveId}",
    Scope.BROWSE,
    name="showRedrive",
    tag=_TAG,
    summary="How far a redrive is",
    description="404 `not_found.redrive`: there is no such task, or it is forgotten.",
    answers=(Answer(200, "The task.", RedriveInfo),),
)
PAUSE_REDRIVE = Endpoint(
    "POST",
    "/queues/{queue}/dead-letters/redrives/{redriveId}/pause",
    Scope.REDRIVE,
    name="pauseRedrive",
    tag=_TAG,
    summary="Stop a redrive until it is resumed",
    description="After its current transaction. The answer comes once the pause is stored, so that it outlives a "
    "restart. A redrive that is paused already stays as it is; one that has ended is 409 "
    "`conflict.redrive_state`.",
    answers=(Answer(200, "The task.", ChangedRedrive),),
    errors=(errors.RedriveStateConflict, *WRITE_ERRORS),
)
RESUME_REDRIVE = Endpoint(
    "POST",
    "/queues/{queue}/dead-letters/redrives/{redriveId}/resume",
    Scope.REDRIVE,
    name="resumeRedrive",
    tag=_TAG,
    summary="Continue a paused or failed redrive from where it was",
    description="A redrive that runs stays as it is; one that is done or cancelled is 409 `conflict.redrive_state`.",
    answers=(Answer(200, "The task.", ChangedRedrive),),
    errors=(errors.RedriveStateConflict, errors.TooManyRedrives, *WRITE_ERRORS),
)
CANCEL_REDRIVE = Endpoint(
    "POST",
    "/queues/{queue}/dead-letters/redrives/{redriveId}/cancel",
    Scope.REDRIVE,
    name="cancelRedrive",
    tag=_TAG,
    summary="Stop a redrive for good, between two transactions",
    description="The answer comes once it has ended; what it moved stays moved. A redrive that ended before "
    "stays as it is.",
    answers=(Answer(200, "The task.", ChangedRedrive),),
    errors=WRITE_ERRORS,
)
DISMISS_REDRIVE = Endpoint(
    "DELETE",
    "/queues/{queue}/dead-letters/redrives/{redriveId}",
    Scope.REDRIVE,
    name="dismissRedrive",
    tag=_TAG,
    summary="Forget a redrive that has ended",
    description="One that runs or is paused is 409 `conflict.redrive_state`.",
    answers=(Answer(204, "It is forgotten.", NoneType),),
    errors=(errors.RedriveStateConflict, *WRITE_ERRORS),
)
