"""Endpoints for queues as a whole: lists, one queue, its health, settings, pause, purge, removal."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import READ_ERRORS, TABLE_ERRORS, WRITE_ERRORS, Answer, Endpoint
from forq_trio.model.queues import bodies
from forq_trio.model.queues.settings import QueueTable, SettingsChange

_TAG = "Administration"
_SETTINGS = (Answer(200, "The settings, and the rules that follow from them.", bodies.QueueConfiguration),)

LIST_QUEUES = Endpoint(
    "GET",
    "/queues",
    Scope.BROWSE,
    name="listQueues",
    tag="Queues",
    summary="All queues, page by page",
    query=bodies.QueuesQuery,
    answers=(Answer(200, "The queues by name.", bodies.QueueList),),
)
SHOW_QUEUE = Endpoint(
    "GET",
    "/queues/{queue}",
    Scope.BROWSE,
    name="showQueue",
    tag="Queues",
    summary="One queue",
    description="A queue exists from the first message, or the first setting, until it is removed.",
    answers=(Answer(200, "The queue.", bodies.QueueInfo),),
    errors=(errors.QueueNotFound, *READ_ERRORS, *TABLE_ERRORS),
)
SHOW_HEALTH = Endpoint(
    "GET",
    "/queues/{queue}/health",
    Scope.BROWSE,
    name="showHealth",
    tag="Queues",
    summary="The health of a queue",
    description="A verdict in words, its causes, and what to do. It follows from the last minutes; a problem "
    "shows once it has lasted one minute (broken) or five (attention).",
    answers=(Answer(200, "The verdict.", bodies.QueueHealth),),
    errors=(errors.QueueNotFound,),
)
LIST_SETTINGS = Endpoint(
    "GET",
    "/settings",
    Scope.BROWSE,
    name="listSettings",
    tag=_TAG,
    summary="The queues that have settings, page by page",
    query=bodies.QueuesQuery,
    answers=(Answer(200, "Their settings, by name.", bodies.ConfiguredQueues),),
)
SHOW_SETTINGS = Endpoint(
    "GET",
    "/queues/{queue}/settings",
    Scope.BROWSE,
    name="showSettings",
    tag=_TAG,
    summary="The settings of a queue",
    description="A queue without settings has the defaults.",
    answers=_SETTINGS,
    errors=(errors.QueueNotFound,),
)
CHANGE_SETTINGS = Endpoint(
    "PUT",
    "/queues/{queue}/settings",
    Scope.ADMIN,
    name="changeSettings",
    tag=_TAG,
    summary="Change settings of a queue",
    description="Absent members stay as they are; null resets one to the default. Order, delay and ttl apply "
    "to messages sent from now on, all others also to those in the queue. A queue that does not exist is "
    "created.",
    body=SettingsChange,
    answers=_SETTINGS,
    errors=(errors.TooManyQueues, errors.QueueBound, *WRITE_ERRORS),
)
FORGET_SETTINGS = Endpoint(
    "DELETE",
    "/queues/{queue}/settings",
    Scope.ADMIN,
    name="forgetSettings",
    tag=_TAG,
    summary="Reset all settings of a queue to the defaults",
    description="A queue that is paused stays paused.",
    answers=(Answer(204, "The queue has the defaults.", NoneType),),
    errors=(errors.QueueNotFound, *WRITE_ERRORS),
)
BIND_QUEUE = Endpoint(
    "PUT",
    "/queues/{queue}/table",
    Scope.ADMIN,
    name="bindQueue",
    tag=_TAG,
    summary="Bind a queue to a table of pgq's layout",
    description="Its messages are the rows of the table, in the PostgreSQL database of the server, and pgq's programs "
    "publish and consume there at the same time. The queue must have no messages, and no settings but leaseMs and "
    "maxAttempts. A token needs the scope for all queues.",
    body=QueueTable,
    answers=(Answer(200, "The table.", QueueTable),),
    errors=(
        errors.FeatureUnavailable,
        errors.InvalidTableName,
        errors.QueueNotEmpty,
        errors.InvalidSetting.about("delayMs"),
        errors.TooManyQueues,
        *TABLE_ERRORS,
        errors.ReadDeadlineExceeded,
        *WRITE_ERRORS,
    ),
)
SHOW_TABLE = Endpoint(
    "GET",
    "/queues/{queue}/table",
    Scope.BROWSE,
    name="showTable",
    tag=_TAG,
    summary="The table to which a queue is bound",
    answers=(Answer(200, "The table.", QueueTable),),
    errors=(errors.QueueNotBound,),
)
UNBIND_QUEUE = Endpoint(
    "DELETE",
    "/queues/{queue}/table",
    Scope.ADMIN,
    name="unbindQueue",
    tag=_TAG,
    summary="End the binding of a queue",
    description="It has messages of its own again; the table stays as it is.",
    answers=(Answer(204, "The queue is not bound.", NoneType),),
    errors=(errors.QueueNotBound, *WRITE_ERRORS),
)
PAUSE_QUEUE = Endpoint(
    "POST",
    "/queues/{queue}/pause",
    Scope.ADMIN,
    name="pauseQueue",
    tag=_TAG,
    summary="Deliver no messages until the queue is resumed",
    description="Sends go on, and receivers wait.",
    takes_nothing=True,
    answers=(Answer(204, "The queue is paused.", NoneType),),
    errors=(errors.QueueNotFound, errors.QueueBound, *WRITE_ERRORS),
)
RESUME_QUEUE = Endpoint(
    "POST",
    "/queues/{queue}/resume",
    Scope.ADMIN,
    name="resumeQueue",
    tag=_TAG,
    summary="End a pause",
    takes_nothing=True,
    answers=(Answer(204, "Messages are delivered, first to waiting receivers.", NoneType),),
    errors=(errors.QueueNotFound, *WRITE_ERRORS),
)
PURGE_QUEUE = Endpoint(
    "POST",
    "/queues/{queue}/purge",
    Scope.ADMIN,
    name="purgeQueue",
    tag=_TAG,
    summary="Remove all messages of a queue",
    description="Those that were sent before this request, in any status. Deduplication ids are still remembered.",
    takes_nothing=True,
    answers=(Answer(200, "How many there were.", bodies.Purged),),
    errors=(errors.QueueNotFound, errors.QueueBound, *WRITE_ERRORS),
)
REMOVE_QUEUE = Endpoint(
    "DELETE",
    "/queues/{queue}",
    Scope.ADMIN,
    name="removeQueue",
    tag=_TAG,
    summary="Forget an empty queue, its settings and its consumers",
    answers=(Answer(204, "The queue is forgotten.", NoneType),),
    errors=(errors.QueueNotFound, errors.QueueNotEmpty, *WRITE_ERRORS),
)
