"""Endpoints for message batches: open, add, close, abandon, show and list."""

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint, declare_topic
from forq_trio.model.message_batches import bodies
from forq_trio.model.message_batches.types import MessageBatch, MessageBatchPage, NewMessageBatch
from forq_trio.model.messages.bodies import SendResults
from forq_trio.model.paths import PROGRAM_NAME, PathParameter, declare_path

_TAG = "Batches"
declare_topic(
    "Batches",
    "Messages that belong together: the server counts what becomes of them, and sends a message when the last has "
    "ended (docs/batches.md). A token needs the scope `produce` for the queue of each message. It sees, closes and "
    "abandons the batches that it opened; whoever knows the id of a batch may add to it.",
)
declare_path(
    batch=PathParameter(
        "The id of the batch: 1 to 128 characters of A-Z a-z 0-9 . _ : -.", PROGRAM_NAME, errors.InvalidName
    )
)
OPEN_BATCH = Endpoint(
    "PUT",
    "/batches/{batch}",
    Scope.PRODUCE,
    name="openBatch",
    tag=_TAG,
    summary="Open a batch",
    description="Choose an id that nobody else uses, such as a UUID. The same request again changes nothing, so it can "
    "be repeated. If that id was opened in another way, or by another token, it is refused with 409 "
    "`conflict.batch_exists`. A batch inside of another one names it as `outer`.",
    body=NewMessageBatch,
    answers=(Answer(200, "The batch.", MessageBatch),),
    errors=(
        errors.ProduceToDeadLetterQueue,
        errors.InvalidRequest,
        errors.MessageBatchExists,
        errors.MessageBatchNotFound,
        errors.MessageBatchEnded,
        errors.MessageBatchFull,
        errors.MessageBatchTooDeep,
        errors.TooManyMessageBatches,
        errors.TooManyQueues,
        *STORE_ERRORS,
    ),
)
ADD_TO_BATCH = Endpoint(
    "POST",
    "/batches/{batch}/messages",
    Scope.PRODUCE,
    name="addToBatch",
    tag=_TAG,
    summary="Send messages as members of a batch",
    description="At most 1,000 messages and 4 MiB, in one commit; each is refused alone. A message whose "
    "deduplicationId is known is not a further member. Members can be added until the batch has ended: as long as "
    "it is open, and while a member is left. Each member has the attribute `forq-batch`, which is the id of the batch.",
    body=bodies.AddMembers,
    answers=(Answer(200, "One result per message, in their order.", SendResults),),
    errors=(
        errors.OutOfRange.about("messages"),
        errors.MessageBatchNotFound,
        errors.MessageBatchEnded,
        errors.MessageBatchFull,
        *STORE_ERRORS,
    ),
)
CLOSE_BATCH = Endpoint(
    "POST",
    "/batches/{batch}/close",
    Scope.PRODUCE,
    name="closeBatch",
    tag=_TAG,
    summary="Close a batch: it ends when no member is left",
    description="One without members ends at once. A closed one stays as it is.",
    takes_nothing=True,
    answers=(Answer(200, "The batch.", MessageBatch),),
    errors=(errors.MessageBatchNotFound, *WRITE_ERRORS),
)
ABANDON_BATCH = Endpoint(
    "POST",
    "/batches/{batch}/abandon",
    Scope.PRODUCE,
    name="abandonBatch",
    tag=_TAG,
    summary="End a batch without its message",
    description="Its members stay in their queues. "
    "One that has ended gives up what it could not send yet, and else stays as it is.",
    takes_nothing=True,
    answers=(Answer(200, "The batch.", MessageBatch),),
    errors=(errors.MessageBatchNotFound, *WRITE_ERRORS),
)
SHOW_BATCH = Endpoint(
    "GET",
    "/batches/{batch}",
    Scope.PRODUCE,
    name="showBatch",
    tag=_TAG,
    summary="How far a batch is",
    description="One that has ended is remembered for a day. Once there are 20,000 batches, a new one takes the "
    "place of the one that ended first.",
    answers=(Answer(200, "The batch.", MessageBatch),),
    errors=(errors.MessageBatchNotFound, *READ_ERRORS),
)
LIST_BATCHES = Endpoint(
    "GET",
    "/batches",
    Scope.PRODUCE,
    name="listBatches",
    tag=_TAG,
    summary="Batches, the newest first",
    description="A token sees those that it opened; the secret all.",
    query=bodies.MessageBatchesQuery,
    answers=(Answer(200, "A page; `next` is the `before` of the next one.", MessageBatchPage),),
    errors=READ_ERRORS,
)
