"""Refusals of Forq's API: the error of a request, and the two forms of its answer.

Our own routes answer `{"code", "field", "message"}`. Forq's clients accept no member beside `code`, so Forq's own
routes (`is_forqs_path`) answer the other two in headers, unless the client asks for our form.
"""

import re
from collections.abc import Mapping

from forq_trio.http.message import Request, Response, encode_json
from forq_trio.model import limits
from forq_trio.model.error_answers import (
    ANSWER_HEADER,
    FIELD_HEADER,
    FULL,
    MESSAGE_HEADER,
    ErrorView,
    PlaceView,
)
from forq_trio.model.errors import ContentTooLarge, ForqError, InternalError, Overloaded
from forq_trio.model.forq_error import REASONS, AnyReason, Reason

_ANSWER = ANSWER_HEADER.lower().encode()
_FULL = FULL.encode()
_FORQS_PATH = re.compile(r"/api/v1/queues/[^/]+/messages(/[^/]+/(ack|nack))?")
_FIELD = FIELD_HEADER.lower().encode()
_MESSAGE = MESSAGE_HEADER.lower().encode()

Headers = tuple[tuple[bytes, bytes], ...]
_RETRY = (b"retry-after", b"%d" % limits.RETRY_SECONDS)

TRANSPORT_CODES: Mapping[int, tuple[str, str]] = {
    400: ("bad_request.http.malformed", "The request is no valid HTTP."),
    408: ("request_timeout", "The head did not arrive within 10 seconds, or the body not within 45."),
    413: (ContentTooLarge.code, "The body is longer than the server takes."),
    414: ("bad_request.uri.too_long", "The path and query are too long."),
    417: ("bad_request.expectation.unknown", "`Expect` says something other than `100-continue`."),
    431: ("bad_request.headers.too_large", "The headers are longer than 16 KiB, or more than 100."),
    500: (InternalError.code, REASONS[InternalError.code].meaning),
    501: (
        "bad_request.http.not_implemented",
        "The transfer encoding is not known, or the method is CONNECT.",
    ),
    503: (Overloaded.code, "There are too many connections, or too many bodies on their way."),
    505: ("bad_request.http.version_not_supported", "The HTTP version is not known."),
}
"""Code and meaning of the answers that the transport gives before a request is routed, by status."""


class Refused(Exception):
    """Raised while a request is read or carried out: the request does nothing, and is answered with `view`.

    reason: the error, or its code, status and meaning. message: None for the meaning. field, place: see `ErrorView`.
    status: None for that of the reason.
    """

    def __init__(
        self,
        reason: AnyReason,
        message: str | None = None,
        *,
        field: str | None = None,
        status: int | None = None,
        headers: Headers = (),
        place: PlaceView | None = None,
    ) -> None:
        self.reason = reason if isinstance(reason, Reason) else REASONS[reason.code]
        super().__init__(self.reason.code, message)
        self.status = status or self.reason.status
        self.headers = headers
        self.view = _view(self.reason.code, field, message or self.reason.meaning, place)


def shortened(text: str, length_max: int = limits.ERROR_FIELD_LENGTH_MAX) -> str:
    """A text of a request, made safe to repeat in an answer: no control characters, at most `length_max` long."""
    text = text[: length_max + 1]
    if not text.isprintable():
        text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    return text if len(text) <= length_max else text[: length_max - 1] + "…"


def asks_for_more(request: Request) -> bool:
    """Whether a request to one of Forq's own routes asks for all members, not only for Forq's."""
    return request.headers.get(_ANSWER) == _FULL


def is_forqs_path(path: str) -> bool:
    """Whether the path is that of one of Forq's own routes: send, receive, ack and nack."""
    return _FORQS_PATH.fullmatch(path) is not None


def answer(refused: Refused) -> Response:
    """The answer of our own routes."""
    return _response(refused.status, refused.view, refused.headers)


def forqs_answer(refused: Refused, request: Request) -> Response:
    """The answer of Forq's own routes."""
    if asks_for_more(request):
        return answer(refused)
    return _forqs_response(refused.status, refused.view, refused.headers)


def transport_answer(status: int, method: str, path: str, headers: Mapping[bytes, bytes]) -> Response:
    """The answer where the transport itself refuses a request: a `transport.config.Refuse`."""
    code, meaning = TRANSPORT_CODES[status]
    respond = _forqs_response if is_forqs_path(path) else _response
    return respond(status, _view(code, None, meaning), ())


def error_body_start(kind: type[ForqError]) -> bytes:
    """The beginning of every body with the code of this error, in either form."""
    return encode_json(ErrorView(kind.code))[:-1]


def _view(code: str, field: str | None, message: str, place: PlaceView | None = None) -> ErrorView:
    message = message[:1].lower() + message[1:].removesuffix(".")
    return ErrorView(
        code,
        None if field is None else shortened(field),
        shortened(message, limits.ERROR_MESSAGE_LENGTH_MAX),
        place,
    )


def _response(status: int, view: ErrorView, headers: Headers) -> Response:
    return Response(status, encode_json(view), headers=(*headers, _RETRY) if status == 503 else headers)


def _forqs_response(status: int, view: ErrorView, headers: Headers) -> Response:
    more = tuple(
        (name, text.encode("unicode_escape")[: limits.ERROR_HEADER_BYTES_MAX].strip())
        for name, text in ((_FIELD, view.field), (_MESSAGE, view.message))
        if text is not None
    )
    return _response(status, ErrorView(view.code), (*headers, *more))
