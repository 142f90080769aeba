"""Endpoints for dead letters: search, show, resubmit, redrive, delete, and tasks that do so for all that match."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.dead_letters import bodies
from forq_trio.model.dead_letters.redrives import ChangedRedrive, RedriveInfo
from forq_trio.model.dead_letters.searches import DeadLetterPage
from forq_trio.model.endpoint import READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint
from forq_trio.model.messages.types import MessageInfo, Produced
from forq_trio.model.paths import PathParameter, declare_path

_TAG = "Dead letters"
declare_path(redriveId=PathParameter("The redrive's id.", {"type": "string"}, errors.RedriveNotFound))
SEARCH_DEAD_LETTERS = Endpoint(
    "GET",
    "/queues/{queue}/dead-letters",
    Scope.BROWSE,
    name="searchDeadLetters",
    tag=_TAG,
    summary="Find dead letters, newest first",
    description="A page reads at most 10,000 messages, and says how far it came.",
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
    description="A task takes those that are there now, in one transaction after the other, and continues "
    "after a restart.",
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
    answers=(Answer(200, "The task.", RedriveInfo),),
)
PAUSE_REDRIVE = Endpoint(
    "POST",
    "/queues/{queue}/dead-letters/redrives/{redriveId}/pause",
    Scope.REDRIVE,
    name="pauseRedrive",
    tag=_TAG,
    summary="Stop a redrive until it is resumed",
    description="The answer comes once the pause is stored, so that it outlives a restart. A redrive that is "
    "paused already stays as it is.",
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
    description="A redrive that runs stays as it is.",
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
    answers=(Answer(204, "It is forgotten.", NoneType),),
    errors=(errors.RedriveStateConflict, *WRITE_ERRORS),
)
