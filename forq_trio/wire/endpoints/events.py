"""Endpoints for lifecycle events."""

from forq_trio.model import errors, limits
from forq_trio.model.access import Scope
from forq_trio.model.events import MessageEvent
from forq_trio.wire.endpoints.endpoint import (
    NDJSON,
    READ_ERRORS,
    Answer,
    Endpoint,
    Parameter,
    limit_parameter,
    range_parameters,
)
from forq_trio.wire.logs import EventRange

_TAG = "Events"
LIST_EVENTS = Endpoint(
    "GET",
    "/events",
    Scope.BROWSE,
    name="listEvents",
    tag=_TAG,
    summary="What happened to messages, oldest first",
    description="One event a line, at most 4 MiB of them. The headers X-Forq-Next (pass it as `after` to go on), "
    "X-Forq-First and X-Forq-Last (which are kept) are always there. A token for some queues has to name one.",
    parameters=(
        *range_parameters("events", "an id"),
        limit_parameter("events", limits.LOG_PAGE_MAX),
        Parameter("queue", "query", "Only events of this queue.", {"type": "string"}),
        Parameter(
            "waitMs",
            "query",
            "How long to wait for one.",
            {"type": "integer", "minimum": 0, "maximum": limits.WAIT_MS_MAX, "default": 0},
        ),
    ),
    answers=(Answer(200, "The events, one a line.", MessageEvent, content_type=NDJSON),),
    errors=(errors.EventsOff, errors.EventsGone, *READ_ERRORS),
)
SHOW_EVENT_RANGE = Endpoint(
    "GET",
    "/events/range",
    Scope.BROWSE,
    name="showEventRange",
    tag=_TAG,
    summary="Which events are kept",
    answers=(Answer(200, "The ids of the oldest and the newest one.", EventRange),),
)
LIST_MESSAGE_EVENTS = Endpoint(
    "GET",
    "/queues/{queue}/messages/{messageId}/events",
    Scope.BROWSE,
    name="listMessageEvents",
    tag=_TAG,
    summary="What happened to one message, also to one that has gone",
    description="The latest 1,000, oldest first; a token sees those in queues that it covers.",
    answers=(Answer(200, "The events.", list[MessageEvent]),),
    errors=(errors.MessageNotFound, *READ_ERRORS),
)
