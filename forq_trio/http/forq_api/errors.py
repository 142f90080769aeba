"""Forq's answers to errors. An error of the queue has a code and status; an error of HTTP uses those of its `kind`."""

import re

from forq_trio.http.access import presented_key
from forq_trio.http.errors import (
    ForeignSite,
    HttpError,
    MethodNotAllowed,
    PathNotFound,
    Unauthorized,
    UnknownEncoding,
    UnknownParameter,
)
from forq_trio.http.forq_api.body_errors import did_you_mean
from forq_trio.http.forq_api.refusals import Refused, answer, forqs_answer, shortened
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Route
from forq_trio.model import errors
from forq_trio.model.error_answers import RECEIPT_HEADER, PlaceView
from forq_trio.model.forq_error import REASONS

PART_BY_ERROR: dict[type[errors.ForqError], str] = {
    errors.ProduceToDeadLetterQueue: "queue",
    errors.DeadLettersOnly: "queue",
    errors.MalformedReceipt: RECEIPT_HEADER,
}
"""The parameter of the path, or the header, to blame for an error that names no part of the request."""


def answer_error(error: Exception, request: Request) -> Response:
    """The answer of our own routes to an error; raises errors that have no code of the API."""
    return answer(explain(error, request))


def answer_forqs_error(error: Exception, request: Request) -> Response:
    """The answer of Forq's own routes to an error; raises errors that have no code of the API."""
    return forqs_answer(explain(error, request), request)


def explain(error: Exception, request: Request) -> Refused:
    """The error as a refusal with its words; raises errors that have no code of the API."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, HttpError):
        return _http_refusal(error, request)
    if not isinstance(error, errors.ForqError):
        raise error
    return refusal_of(error, _outside_body(request) if request.body else None)


def _outside_body(request: Request) -> frozenset[str]:
    """The names of the values that the request has in its path and query."""
    if request.route is None:
        return frozenset()
    route: Route = request.route[0]
    return route.operation.query_names.union(re.findall(r"{(\w+)}", route.path))


def refusal_of(error: errors.ForqError, outside: frozenset[str] | None = frozenset()) -> Refused:
    """The refusal that answers `error`; raises errors that have no code of the API.

    outside: names of the values that are not in the body; None: no value is.
    """
    reason = REASONS.get(error.code)
    if reason is None:
        raise error
    if not error.message_for_callers:
        return Refused(reason)  # the words of a fault of the server are for its log
    if error.member is None:
        return Refused(reason, error.message, field=PART_BY_ERROR.get(type(error)))
    name = error.member.rpartition(".")[2]
    field = name if outside is None or name in outside else f"$.{error.member}"
    place = error.place if isinstance(error, errors.InvalidCron) else None
    return Refused(reason, error.api_message, field=field, place=None if place is None else PlaceView(*place))


def _http_refusal(error: HttpError, request: Request) -> Refused:
    message = field = None
    match error:
        case Unauthorized() if not presented_key(request):
            message = "the request has no key: send FORQ_AUTH_SECRET, or an access token, as X-API-Key"
        case ForeignSite():
            message = "without keys the server takes no requests from web pages of other sites"
        case PathNotFound():
            message = f"nothing is served at {shortened(request.path)}"
        case MethodNotAllowed(allow=allow):
            message = f"this path takes {allow}, not {shortened(request.method)}"
        case UnknownParameter(name=name, known=known):
            field = name
            message = f"there is no parameter '{shortened(name)}' here{did_you_mean(name, known)}"
        case UnknownEncoding():
            field = "Content-Encoding"
    return Refused(error.kind, message, field=field, headers=error.headers)
