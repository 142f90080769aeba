"""The routes for queues as a whole, and their part of the OpenAPI document."""

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.administration import AdministrationEndpoints
from forq_trio.http.forq_api.parameters import QUEUES_PAGE
from forq_trio.http.router import Answer, MakeRoute, Operation, Route
from forq_trio.model import errors
from forq_trio.model.access import Scope
from forq_trio.model.queue_settings import SettingsChange
from forq_trio.wire import queues as wire

_TAG = "Administration"
_HERE = (errors.InvalidQueueName, errors.OutcomeUnknown)
_WRITER = (*_HERE, errors.StorageUnavailable, errors.StorageLost, errors.Overloaded, errors.Stopping)
_KNOWN = (*_WRITER, errors.QueueNotFound)
_SETTINGS = (Answer(200, "The settings, and the rules that follow from them.", wire.QueueConfiguration),)

LIST_SETTINGS = Operation(
    name="listSettings",
    tag=_TAG,
    summary="The queues for which something was set, page by page",
    parameters=QUEUES_PAGE,
    answers=(Answer(200, "Their settings, by name.", wire.ConfiguredQueues),),
    errors=(errors.OutcomeUnknown, errors.OutOfRange.about("limit")),
)
SHOW_SETTINGS = Operation(
    name="showSettings",
    tag=_TAG,
    summary="The settings of a queue",
    description="A queue for which nothing was set has the defaults.",
    answers=_SETTINGS,
    errors=(*_HERE, errors.QueueNotFound),
)
CHANGE_SETTINGS = Operation(
    name="changeSettings",
    tag=_TAG,
    summary="Change settings of a queue",
    description="Members that are absent stay as they are, null goes back to the default. Order, delay and ttl "
    "apply to messages sent from now on, all others also to those in the queue. It makes a queue that is not known.",
    body=SettingsChange,
    answers=_SETTINGS,
    errors=(*_WRITER, errors.InvalidRequest, errors.UnknownMember, *errors.InvalidSetting.members.values()),
)
FORGET_SETTINGS = Operation(
    name="forgetSettings",
    tag=_TAG,
    summary="Go back to the defaults",
    description="A queue that is paused stays paused.",
    answers=(Answer(204, "The queue has the defaults."),),
    errors=_KNOWN,
)
PAUSE = Operation(
    name="pauseQueue",
    tag=_TAG,
    summary="Deliver no messages until the queue is resumed",
    description="Sends go on, and receivers wait.",
    answers=(Answer(204, "The queue is paused."),),
    errors=_KNOWN,
)
RESUME = Operation(
    name="resumeQueue",
    tag=_TAG,
    summary="End a pause",
    answers=(Answer(204, "Messages are delivered, first to waiting receivers."),),
    errors=_KNOWN,
)
PURGE = Operation(
    name="purgeQueue",
    tag=_TAG,
    summary="Remove all messages of a queue",
    description="Those that were sent before this request, in whatever status. Deduplication ids are remembered.",
    answers=(Answer(200, "How many there were.", wire.Purged),),
    errors=_KNOWN,
)
REMOVE = Operation(
    name="removeQueue",
    tag=_TAG,
    summary="Forget an empty queue, its settings and its consumers",
    answers=(Answer(204, "The queue is forgotten."),),
    errors=(*_KNOWN, errors.QueueNotEmpty),
)


def administration_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """Settings, pause, purge and removal. route: makes one of method, path, endpoint, operation, scope."""
    endpoints = AdministrationEndpoints(broker)
    queue = "/queues/{queue}"
    return [
        route("GET", "/settings", endpoints.list, LIST_SETTINGS, Scope.BROWSE),
        route("GET", f"{queue}/settings", endpoints.show, SHOW_SETTINGS, Scope.BROWSE),
        route("PUT", f"{queue}/settings", endpoints.change, CHANGE_SETTINGS, Scope.ADMIN),
        route("DELETE", f"{queue}/settings", endpoints.forget, FORGET_SETTINGS, Scope.ADMIN),
        route("POST", f"{queue}/pause", endpoints.pause, PAUSE, Scope.ADMIN),
        route("POST", f"{queue}/resume", endpoints.resume, RESUME, Scope.ADMIN),
        route("POST", f"{queue}/purge", endpoints.purge, PURGE, Scope.ADMIN),
        route("DELETE", queue, endpoints.remove, REMOVE, Scope.ADMIN),
    ]
