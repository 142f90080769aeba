"""Endpoints for stages, publications, apps and exports."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import NDJSON, READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint
from forq_trio.model.messages.export import ExportedMessage
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.paths import PROGRAM_NAME, PathParameter, declare_path
from forq_trio.model.publishing import bodies
from forq_trio.model.publishing.types import PublishedVersion, Staged

_TAG = "Pipelines"
declare_path(
    stage=PathParameter("The name of the stage.", PROGRAM_NAME, errors.InvalidName),
    page=PathParameter(
        "The number of the page, from 0.", {"type": "integer", "minimum": 0}, errors.OutOfRange
    ),
    app=PathParameter("The name of the app.", PROGRAM_NAME, errors.InvalidName),
)
STAGE_PAGE = Endpoint(
    "POST",
    "/queues/{queue}/stages/{stage}/pages/{page}",
    Scope.PRODUCE,
    name="stagePage",
    tag=_TAG,
    summary="Store a page of messages until they are published",
    description="The body has a message a line, at most 10,000 lines and 4 MiB; all are stored, or none. A "
    "page that is stored already is ignored, and gets the first answer again. A stage is discarded a day after "
    "its last page.",
    body=NewMessage,
    body_type=NDJSON,
    answers=(Answer(200, "The page is stored durably.", Staged),),
    errors=(
        errors.ProduceToDeadLetterQueue,
        errors.OutOfRange.about("messages"),
        errors.StagingFull,
        *STORE_ERRORS,
    ),
)
DISCARD_STAGE = Endpoint(
    "DELETE",
    "/queues/{queue}/stages/{stage}",
    Scope.PRODUCE,
    name="discardStage",
    tag=_TAG,
    summary="Discard a stage",
    answers=(Answer(204, "The stage is gone, if there was one, and its name is free again.", NoneType),),
    errors=WRITE_ERRORS,
)
PUBLISH = Endpoint(
    "POST",
    "/publications",
    Scope.PRODUCE,
    name="publish",
    tag=_TAG,
    summary="Publish stages in one transaction, as a version of an app",
    description="Once it is committed, no message can be lost or sent twice. The answer comes when all are in "
    "their queues, or after 30 seconds with `moving`: then repeat the request to wait on. A version that the "
    "app published before, or an earlier one, is not published again.",
    body=bodies.PublishRequest,
    answers=(Answer(200, "All messages are in their queues, unless it is `moving`.", bodies.Publication),),
    errors=(
        errors.ProduceToDeadLetterQueue,
        errors.StageMissing,
        errors.AppInUse,
        errors.TooManyQueues,
        errors.QueueFull,
        errors.PublicationUnfinished,
        errors.TooManyApps,
        *STORE_ERRORS,
    ),
)
SHOW_PUBLICATION = Endpoint(
    "GET",
    "/publications/{app}",
    Scope.PRODUCE,
    name="showPublication",
    tag=_TAG,
    summary="The last version that an app published",
    answers=(Answer(200, "The version.", PublishedVersion),),
    errors=(errors.PublicationNotFound, *READ_ERRORS),
)
LIST_APPS = Endpoint(
    "GET",
    "/publications",
    Scope.PRODUCE,
    name="listApps",
    tag=_TAG,
    summary="The apps whose last versions are remembered",
    description="In the order of their last publications. A key for some queues sees only apps that write no "
    "others: then a page may have fewer than `limit` although more follow.",
    query=bodies.AppsQuery,
    answers=(Answer(200, "A page of apps.", bodies.AppPage),),
    errors=READ_ERRORS,
)
DELETE_APP = Endpoint(
    "DELETE",
    "/publications/{app}",
    Scope.PRODUCE,
    name="deleteApp",
    tag=_TAG,
    summary="Forget what an app published",
    description="Its versions can then be published again. A key for some queues may only delete apps that "
    "write no others.",
    answers=(Answer(204, "It is forgotten.", NoneType),),
    errors=(errors.PublicationNotFound, *WRITE_ERRORS),
)
EXPORT_QUEUE = Endpoint(
    "GET",
    "/queues/{queue}/export",
    Scope.BROWSE,
    name="exportQueue",
    tag=_TAG,
    summary="The messages of a queue with their contents, without any effect on them",
    description="A message a line, by sequence, whatever its state: at most `limit` and 4 MiB of content. The header "
    "X-Forq-Next is the `after` of the next page; it is absent at the end.",
    query=bodies.ExportQuery,
    answers=(Answer(200, "The messages.", ExportedMessage, NDJSON),),
    errors=(errors.QueueNotFound, *READ_ERRORS),
)
EXPORT_PARTITIONS = Endpoint(
    "GET",
    "/queues/{queue}/export/partitions",
    Scope.BROWSE,
    name="exportPartitions",
    tag=_TAG,
    summary="Cut a queue into ranges that can be exported side by side",
    description="The ranges are disjoint and cover everything that is stored now; none for an empty queue.",
    query=bodies.PartitionsQuery,
    answers=(Answer(200, "The ranges, in order.", bodies.ExportPartitions),),
    errors=(errors.QueueNotFound, *READ_ERRORS),
)
