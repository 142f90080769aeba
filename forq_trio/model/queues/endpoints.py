"""Endpoints for queues as a whole: lists, one queue, its health, settings, pause, purge, removal."""

from types import NoneType

from forq_trio.model import errors, limits
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import READ_ERRORS, TABLE_ERRORS, WRITE_ERRORS, Answer, Endpoint, declare_topic
from forq_trio.model.queues import bodies
from forq_trio.model.queues.settings import QueueTable, SettingsChange

_TAG = "Administration"
declare_topic(
    "Queues",
    "These operations only read.\n\n"
    "A queue is known from its first message or setting until it is removed; the dead-letter queue of a "
    "known queue is known, too. Operations on a whole queue (counts, health, settings, exports, pause, "
    "purge, removal, searches and redrives of dead letters) are answered 404 `not_found.queue` for a "
    "name that nobody has used. Receives and peeks find an unknown queue empty, because a consumer may "
    "start before the first send.",
)
declare_topic("Administration", "Operations on a whole queue. Changes apply at once, for all clients.")
_SETTINGS = (Answer(200, "The settings, and the rules that follow from them.", bodies.QueueConfiguration),)

LIST_QUEUES = Endpoint(
    "GET",
    "/queues",
    Scope.BROWSE,
    name="listQueues",
    tag="Queues",
    summary="All queues, page by page",
    description="A page looks at 10,000 names: for a token with few queues it may have fewer than `limit`, or none, "
    "and still a `next`. `oldestReadyAgeMs` is null here. A queue that is bound to a table has its counts "
    "as of the last look at the table (docs/pgq.md#a-queue-bound-to-a-table).",
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
    description="404 `not_found.queue` for a name that nobody has used.",
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
    description="A verdict in words, its causes, and what to do (docs/health.md has all verdicts). "
    "It follows from the last minutes; a problem shows once it has lasted one minute (broken) or five "
    "(attention). The answer may be up to 20 seconds old; `sendsRefused` is current, concerns all queues, "
    "and changes no verdict.",
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
    description="Pages are those of the list of queues.",
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
    description="As they were set, and the effective values. A queue without settings has the defaults.",
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
    description="Absent members stay as they are; null resets one to the default. docs/queues.md#settings-of-a-queue "
    "explains each. `order`, `delayMs` and `ttlMs` apply to messages sent from now on, all others also to "
    "those in the queue. A queue that does not exist is created: it can have settings without messages.\n\n"
    "An invalid value is answered 400 with a code of its own, the member in `field`, and the reason in "
    "`message`. The `deadLetterQueue` settings of several queues must not form a circle, nor lead through more than "
    f"{limits.DEAD_LETTER_STEPS_MAX} queues.",
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
    "publish and consume there at the same time (docs/pgq.md#a-queue-bound-to-a-table). The queue must "
    "have no messages, and no settings but `leaseMs` and `maxAttempts`. A token needs the scope for all "
    "queues: through a queue of its own it could read any table.\n\n"
    "404 `not_found.table` without the table; 409 `conflict.wrong_table` if columns or indexes are "
    "missing, which `message` names; 409 `conflict.queue_not_empty`; 409 `conflict.queue_bound` for a "
    "table that another queue is bound to, or a queue that takes dead letters; 400 with the code of a "
    "setting that cannot hold there; 400 `bad_request.feature_unavailable` without PostgreSQL.",
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
    description="404 `not_found.bound_table`: it is not bound.",
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
    description="Sends still work, and receivers wait. A pause survives a restart.",
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
    description="Those that were sent before this request, in any status. Receipts of leased messages become void. "
    "Deduplication ids are still remembered.",
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
    summary="Forget an empty queue, its settings, its consumers and its deduplication ids",
    description="409 `conflict.queue_not_empty` if it has messages, leased ones, too; those of a bound queue are in "
    "its table, which stays as it is. What pipelines have stored for it and not published stays until it is "
    "published, discarded or a day old; a publication makes the queue again.",
    answers=(Answer(204, "The queue is forgotten.", NoneType),),
    errors=(errors.QueueNotFound, errors.QueueNotEmpty, *WRITE_ERRORS),
)
