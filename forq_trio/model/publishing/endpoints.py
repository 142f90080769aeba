"""Endpoints for stages, publications, apps and exports."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import (
    NDJSON,
    READ_ERRORS,
    STORE_ERRORS,
    WRITE_ERRORS,
    Answer,
    Endpoint,
    Header,
    declare_topic,
)
from forq_trio.model.error_answers import NEXT_HEADER
from forq_trio.model.messages.export import ExportedMessage
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.paths import PROGRAM_NAME, PathParameter, declare_path
from forq_trio.model.publishing import bodies
from forq_trio.model.publishing.types import PublishedVersion, Staged

_TAG = "Pipelines"
declare_topic(
    "Pipelines",
    "For programs that move many messages at once. To write: *stage* pages of messages beside a queue, "
    "from any number of processes, and *publish* the stages in one transaction. Messages that are not "
    "published are never delivered. To read a queue without changing it: export it. Each line of NDJSON "
    "(`application/x-ndjson`) is a JSON object.",
)
declare_path(
    stage=PathParameter(
        "The name of the stage: 1 to 128 characters of A-Z a-z 0-9 . _ : -.", PROGRAM_NAME, errors.InvalidName
    ),
    page=PathParameter(
        "The number of the page, from 0.", {"type": "integer", "minimum": 0}, errors.OutOfRange
    ),
    app=PathParameter(
        "The name of the app: 1 to 128 characters of A-Z a-z 0-9 . _ : -.", PROGRAM_NAME, errors.InvalidName
    ),
)
STAGE_PAGE = Endpoint(
    "POST",
    "/queues/{queue}/stages/{stage}/pages/{page}",
    Scope.PRODUCE,
    name="stagePage",
    tag=_TAG,
    summary="Store a page of messages until they are published",
    description="The body has a message a line, with the members of a message of a batch, at most 10,000 lines and 4 "
    "MiB; all are stored, or none. One wrong line refuses the whole page, and `field` names it, counted "
    "from 0: `$.lines[1].priority`. `stage` is a name of your choice that nobody else uses for this "
    "queue; pages come in any order.\n\n"
    "A page that is stored already is ignored, and gets the first answer again, so a request can be "
    "repeated. A stage is discarded a day after its last page. Shares bound how many stages and bytes may "
    "wait (docs/access.md#shares): 503 `forq.staging_full`.",
    body=NewMessage,
    body_type=NDJSON,
    needs_body=False,
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
    description="204, whether or not it existed.",
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
    description="In this order, at most 1,000. The messages enter their queues in order, at most a few hundred in "
    "each batch of the server, so that others' sends do not wait for them. Once it is committed, no "
    "message can be lost or sent twice; after a kill, the next start continues. The answer comes when all "
    "are in their queues, or after 30 seconds with `moving`: then repeat the request to wait on. 504 "
    "`forq.publication_unfinished` says the same while they cannot enter, because the disk is full or a "
    "database file is missing; they enter as soon as they can. Delays and times to live count from when a "
    "message enters its queue.\n\n"
    "409 `forq.stage_missing` if a stage does not have exactly the pages 0 to `pages` - 1; nothing is "
    "published then. 503 `forq.queue_full` is checked before anything is published, by the messages in "
    "the queue and on their way to it. While messages enter, bounds are ignored; a queue that evicts "
    "shrinks to its bounds with later sends.\n\n"
    "An app is a name with growing versions, and belongs to the queues that it writes. A version that it "
    "published before, or an earlier one, is not published again: so a publication can be repeated until "
    "it is answered. A publication belongs to the app of its name that has written one of its queues, "
    "with any key, or that its own key has made, for any queues. So a version is published once, even if "
    "the program gets another token, or its rows go to other queues when it is repeated. The same name, "
    "used by keys that write different queues, is two apps. 409 `conflict.app_in_use`: the app has "
    "written a queue that the key may not write, or another key has published this version to only some "
    "of the queues. Use another name, publish with a key that covers all queues of the app, or delete the "
    "app.\n\n"
    "An app is remembered for 366 days, or for 7 days if it published with `once`, which is for a name "
    "that is used for one job only. At most 100,000 apps are remembered, and 25,000 of one key. At these "
    "bounds a new app replaces the oldest app with `once`, of this key or of any. No other app is "
    "forgotten sooner, because its version may still prevent a repeated publication: without an app with "
    "`once` a new one gets 503 `forq.too_many_apps`, until some are deleted. Give a program the same app "
    "in each run, with a version that grows, or `once`.",
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
    description="Of several apps of the name that of the key, else the highest. 404 `not_found.publication` if there "
    "is none whose queues the key covers.",
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
    description="In the order of their last publications. A key for some queues sees only apps that write no others: "
    "then a page may have fewer than `limit`, or none, although more follow.",
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
    description="All apps of this name whose queues the key covers. Their versions can then be published again.",
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
    description="A message a line, by sequence, whatever its state: at most `limit` and 4 MiB of content. A dead "
    "letter also has where it came from (docs/dead-letters.md#what-is-stored-with-each).",
    query=bodies.ExportQuery,
    answers=(
        Answer(
            200,
            "The messages.",
            ExportedMessage,
            NDJSON,
            headers=(
                Header(
                    NEXT_HEADER,
                    "The `after` of the next page; absent at the end.",
                    {"type": "integer", "minimum": 0},
                ),
            ),
        ),
    ),
    errors=(errors.QueueNotFound, *READ_ERRORS),
)
EXPORT_PARTITIONS = Endpoint(
    "GET",
    "/queues/{queue}/export/partitions",
    Scope.BROWSE,
    name="exportPartitions",
    tag=_TAG,
    summary="Cut a queue into ranges that can be exported side by side",
    description="For exports side by side. The ranges are disjoint and cover everything that is stored now; none for "
    "an empty queue.",
    query=bodies.PartitionsQuery,
    answers=(Answer(200, "The ranges, in order.", bodies.ExportPartitions),),
    errors=(errors.QueueNotFound, *READ_ERRORS),
)
