"""Forq's answers to errors: those of the queue have a code, those of HTTP get one here. Statuses are in `codes`."""

from forq_trio.http.errors import (
    ForeignSite,
    HttpError,
    LockedOut,
    MethodNotAllowed,
    PathNotFound,
    Unauthorized,
)
from forq_trio.http.forq_api import codes
from forq_trio.http.forq_api.codes import Refused
from forq_trio.http.message import Response
from forq_trio.model import errors

CODE_BY_HTTP_ERROR: dict[type[HttpError], str] = {
    Unauthorized: codes.UNAUTHORIZED,
    LockedOut: codes.TOO_MANY_REQUESTS,
    ForeignSite: codes.FORBIDDEN,
    PathNotFound: codes.PATH_NOT_FOUND,
    MethodNotAllowed: codes.METHOD_NOT_ALLOWED,
}


def answer_error(error: Exception) -> Response:
    """The answer to an error raised while a request was read or carried out; raises errors without an entry."""
    if isinstance(error, Refused):
        return error.response
    if isinstance(error, HttpError):
        return _with_headers(codes.error_response(CODE_BY_HTTP_ERROR[type(error)]), error.headers)
    if isinstance(error, errors.Forbidden) and error.scope is not None:
        return codes.error_response(error.code, scope=error.scope)
    if isinstance(error, errors.InvalidSetting | errors.InvalidToken):
        return codes.error_response(error.code, field=error.field or "", message=error.message)
    if not isinstance(error, errors.ForqError) or error.code not in codes.CODES:
        raise error
    return codes.error_response(error.code)


def _with_headers(response: Response, headers: tuple[tuple[bytes, bytes], ...]) -> Response:
    return Response(response.status, response.body, headers=headers) if headers else response
