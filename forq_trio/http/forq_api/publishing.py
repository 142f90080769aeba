"""Stages, publications, and exports of a queue. Our additions to Forq's API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import msgspec
import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.ndjson import NDJSON, lines_answer
from forq_trio.http.forq_api.parameters import READ_ERRORS, limit_parameter, range_parameters
from forq_trio.http.forq_api.reading import check_length, query_limit, query_number, query_range
from forq_trio.http.forq_api.refusals import Refused, shortened
from forq_trio.http.forq_api.sends import Turn, read_our_message
from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.router import Answer, MakeRoute, Operation, Parameter, Route
from forq_trio.model import errors, limits
from forq_trio.model.access import Scope
from forq_trio.model.forq_error import AnyReason
from forq_trio.model.messages import NewMessage
from forq_trio.wire import publishing as wire
from forq_trio.wire.export import ExportedMessage

_TAG = "Pipelines"
_EXPORTED = (errors.InvalidQueueName, errors.QueueNotFound, errors.OutOfRange, *READ_ERRORS)
_WRITER = (
    errors.OutcomeUnknown,
    errors.StorageUnavailable,
    errors.StorageLost,
    errors.Overloaded,
    errors.Stopping,
)
_MESSAGES: tuple[AnyReason, ...] = (
    *(errors.ProcessAfterInPast, errors.ProcessAfterTooFar),
    *(errors.OutOfRange.about(name) for name in ("processAfter", "priority", "delayMs", "ttlMs")),
    errors.InvalidAttributes,
    *(errors.OutOfRange.about(name) for name in ("deduplicationId", "deduplicationWindowMs")),
    *(errors.OutOfRange.about(name) for name in ("group", "maxAttempts")),
    errors.InvalidQueueName.about("deadLetterQueue"),
)

STAGE_PAGE = Operation(
    name="stagePage",
    tag=_TAG,
    summary="Store a page of messages until they are published",
    description="The body has a message a line, at most 10,000 lines and 4 MiB, stored all or none. A page "
    "that is there already is ignored, and answered like the first time. A stage ends by itself a day after its last "
    "page.",
    body=NewMessage,
    body_type=NDJSON,
    answers=(Answer(200, "The page is stored durably.", wire.Staged),),
    errors=(
        *(errors.InvalidQueueName, errors.ProduceToDeadLetterQueue, errors.InvalidName, errors.OutOfRange),
        *(
            errors.InvalidRequest,
            errors.ContentTooLarge,
            errors.UnknownMember,
            errors.OutOfRange.about("messages"),
        ),
        *(*_MESSAGES, errors.StagingFull, errors.StorageFull, *_WRITER),
    ),
)
DISCARD_STAGE = Operation(
    name="discardStage",
    tag=_TAG,
    summary="End a stage that is not to be published",
    answers=(Answer(204, "It is gone, if it was there, and its name is free again."),),
    errors=(errors.InvalidQueueName, errors.InvalidName, *_WRITER),
)
PUBLISH = Operation(
    name="publish",
    tag=_TAG,
    summary="Publish stages in one transaction, as a version of an app",
    description="From the commit on nothing can lose or repeat the messages; the answer comes when all are in their "
    "queues, or after 30 seconds as `moving`: repeat the request then. A version that the app published before, or an "
    "earlier one, is not published again.",
    body=wire.PublishRequest,
    answers=(Answer(200, "All messages are in their queues, unless it is `moving`.", wire.Publication),),
    errors=(
        *(errors.InvalidQueueName, errors.ProduceToDeadLetterQueue, errors.InvalidName, errors.OutOfRange),
        *(
            errors.InvalidRequest,
            errors.UnknownMember,
            errors.StageMissing,
            errors.QueueFull,
            errors.StorageFull,
        ),
        *(errors.AppInUse, errors.TooManyApps, errors.PublicationUnfinished),
        *_WRITER,
    ),
)
SHOW_PUBLICATION = Operation(
    name="showPublication",
    tag=_TAG,
    summary="The last version that an app published",
    answers=(Answer(200, "The version.", wire.PublishedVersion),),
    errors=(errors.InvalidName, errors.PublicationNotFound, *READ_ERRORS),
)
LIST_APPS = Operation(
    name="listApps",
    tag=_TAG,
    summary="The apps whose last versions are remembered",
    description="In the order in which they published last. Of a key for some queues only those that write no others: "
    "then a page may have fewer than there are behind it.",
    parameters=(
        Parameter(
            "after",
            "query",
            "Only those behind this one: `next` of the page before.",
            {"type": "integer", "minimum": 0, "default": 0},
        ),
        limit_parameter("apps", limits.APPS_PAGE_MAX),
    ),
    answers=(Answer(200, "A page of apps.", wire.AppPage),),
    errors=(errors.OutOfRange, errors.OutOfRange.about("limit"), *READ_ERRORS),
)
DELETE_APP = Operation(
    name="deleteApp",
    tag=_TAG,
    summary="Forget what an app published",
    description="The same version is then published again. Of a key for some queues only apps that write no others.",
    answers=(Answer(204, "It is forgotten."),),
    errors=(errors.InvalidName, errors.PublicationNotFound, *_WRITER),
)
EXPORT = Operation(
    name="exportQueue",
    tag=_TAG,
    summary="The messages of a queue with their contents, without any effect on them",
    description="A message a line, by sequence, whatever its state: at most `limit` and 4 MiB of content. The header "
    "X-Forq-Next is the `after` of the next page; it is absent at the end.",
    parameters=(
        *range_parameters("messages", "a sequence"),
        limit_parameter("messages", limits.EXPORT_PAGE_MAX),
    ),
    answers=(Answer(200, "The messages.", ExportedMessage, NDJSON),),
    errors=(*_EXPORTED, errors.OutOfRange.about("limit")),
)
EXPORT_PARTITIONS = Operation(
    name="exportPartitions",
    tag=_TAG,
    summary="Cut a queue into ranges that can be exported side by side",
    description="The ranges are disjoint and cover everything that is stored now; none for an empty queue.",
    parameters=(
        Parameter(
            "count",
            "query",
            "The most ranges wanted.",
            {
                "type": "integer",
                "minimum": 1,
                "maximum": limits.EXPORT_PARTITIONS_MAX,
                "default": limits.EXPORT_PARTITIONS_DEFAULT,
            },
        ),
    ),
    answers=(Answer(200, "The ranges, in order.", wire.ExportPartitions),),
    errors=_EXPORTED,
)

_read_publish = BodyReader(wire.PublishRequest)
_encode = msgspec.json.Encoder().encode


class PublishingEndpoints:
    """Pages are read in slices, between which others have their turn; long ones a few at a time, one of each caller:
    decoded they are many times as large.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._reading = trio.CapacityLimiter(limits.STAGE_PAGES_READ_MAX)
        self._reading_of: dict[str, trio.Lock] = {}

    async def stage(self, request: Request, queue: str, stage: str, page: str) -> Response:
        """Store a page, all or nothing."""
        self._broker.check_producible(queue)
        number = _number(page, "page")
        is_long = len(request.body) > limits.READ_SLICE_BYTES
        async with self._one_at_a_time(request.caller) if is_long else nullcontext():
            messages = await _read_page(request.body)
            for target in {message.dead_letter_queue for message in messages} - {None, ""}:
                request.principal.check(Scope.PRODUCE, target)
            key = request.principal.key
            return _json(await self._broker.stage(queue, stage, number, messages, key=key))

    @asynccontextmanager
    async def _one_at_a_time(self, caller: str) -> AsyncIterator[None]:
        """Wait until no other long page of the caller is read, and few of others: nobody takes all places for long."""
        lock = self._reading_of.setdefault(caller, trio.Lock())
        try:
            async with lock, self._reading:
                yield
        finally:
            if not lock.locked():
                self._reading_of.pop(caller, None)

    async def discard(self, request: Request, queue: str, stage: str) -> Response:
        """204, whether or not it was there."""
        await self._broker.discard_stage(queue, stage)
        return NO_CONTENT

    async def publish(self, request: Request) -> Response:
        """Answered when all messages are in their queues, or after a while."""
        wanted = _read_publish(request.body)
        for queue in {stage.queue for stage in wanted.stages}:
            request.principal.check(Scope.PRODUCE, queue)
        published = await self._broker.publish_for_a_while(
            *(wanted.app, wanted.version, wanted.stages), once=wanted.once, key=request.principal.key
        )
        return _json(published)

    async def show(self, request: Request, app: str) -> Response:
        """The last version of an app."""
        return _json(await self._broker.publication(app, key=request.principal.key))

    async def list_apps(self, request: Request) -> Response:
        """A page of the apps that the key covers."""
        after = query_number(request.query, "after", 0, 0, limits.SEQUENCE_MAX)
        limit = query_limit(request.query, limits.APPS_PAGE_MAX)
        return _json(await self._broker.apps(after=after, limit=limit, key=request.principal.key))

    async def delete_app(self, request: Request, app: str) -> Response:
        """204: it is forgotten."""
        await self._broker.delete_app(app, key=request.principal.key)
        return NO_CONTENT

    async def export(self, request: Request, queue: str) -> Response:
        """A page of messages, as the reader made its lines."""
        after, until = query_range(request.query)
        limit = query_limit(request.query, limits.EXPORT_PAGE_MAX)
        rows = await self._broker.export_lines(queue, after=after, until=until, limit=limit)
        return lines_answer(rows.lines, rows.next)

    async def partitions(self, request: Request, queue: str) -> Response:
        """Ranges for exports side by side."""
        default, most = limits.EXPORT_PARTITIONS_DEFAULT, limits.EXPORT_PARTITIONS_MAX
        count = query_number(request.query, "count", default, 1, most)
        return _json(await self._broker.export_partitions(queue, count))


async def _read_page(body: bytes) -> list[NewMessage]:
    """The messages of a page, a line each. Raises Refused, with the number of the line (from 0) in `field`."""
    if len(body) > limits.STAGE_PAGE_BYTES_MAX:
        bytes_max = limits.STAGE_PAGE_BYTES_MAX
        raise Refused(errors.ContentTooLarge, f"a page has at most {bytes_max} bytes", status=413)
    if not body:
        return []
    body = body.removesuffix(b"\n")
    count = body.count(b"\n") + 1
    check_length(
        "$.lines", count, limits.STAGE_PAGE_MESSAGES_MAX, "lines", errors.OutOfRange.about("messages")
    )
    messages: list[NewMessage] = []
    turn = Turn()
    for index, line in enumerate(body.split(b"\n")):
        await turn.read(len(line))
        try:
            if len(line) > limits.SEND_BODY_BYTES_MAX:
                bytes_max = limits.SEND_BODY_BYTES_MAX
                raise Refused(errors.ContentTooLarge, f"a line has at most {bytes_max} bytes", status=413)
            messages.append(read_our_message(line))
        except Refused as refusal:
            raise _of_line(index, refusal) from None
    return messages


def _of_line(index: int, refusal: Refused) -> Refused:
    """The refusal of a line as one of its page."""
    view = refusal.view
    field = f"$.lines[{index}]" + (view.field or "").removeprefix("$")
    return Refused(refusal.reason, view.message, field=field, status=refusal.status)


def _number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(limits.SEQUENCE_MAX))):
        raise Refused(errors.OutOfRange, f"{field} must be a number, not '{shortened(text)}'", field=field)
    return int(text)


def _json(answer: Any) -> Response:
    return Response(200, _encode(answer))


def publishing_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes for stages, publications and exports. route: see `forq_routes`."""
    publishing = PublishingEndpoints(broker)
    stage = "/queues/{queue}/stages/{stage}"
    return [
        route("POST", f"{stage}/pages/{{page}}", publishing.stage, STAGE_PAGE, Scope.PRODUCE),
        route("DELETE", stage, publishing.discard, DISCARD_STAGE, Scope.PRODUCE),
        route("POST", "/publications", publishing.publish, PUBLISH, Scope.PRODUCE),
        route("GET", "/publications", publishing.list_apps, LIST_APPS, Scope.PRODUCE),
        route("GET", "/publications/{app}", publishing.show, SHOW_PUBLICATION, Scope.PRODUCE),
        route("DELETE", "/publications/{app}", publishing.delete_app, DELETE_APP, Scope.PRODUCE),
        route("GET", "/queues/{queue}/export", publishing.export, EXPORT, Scope.BROWSE),
        route(
            "GET",
            "/queues/{queue}/export/partitions",
            publishing.partitions,
            EXPORT_PARTITIONS,
            Scope.BROWSE,
        ),
    ]
