"""Refusals of the server as errors: those that the broker raises for the same reasons."""

from forq_trio.model import errors
from forq_trio.model.errors import ForqError, ServiceError


def error_of(code: str, *, field: str | None = None, message: str | None = None) -> ForqError:
    """The error for a code of the API: the one that the broker raises for the same reason.

    field: the part of the request to blame, a path into its JSON ($.priority) or the name of a parameter or header.
    message: what is wrong, in the server's words.
    """
    kind = _KINDS.get(code) or _FAMILIES.get(code.partition(".")[0], ServiceError)
    return kind(message, field=None if field is None else field.removeprefix("$."), code=code)


_FAMILIES: dict[str, type[ForqError]] = {
    "bad_request": errors.InvalidRequest,
    "not_found": errors.NotFound,
    "conflict": errors.CallerError,
    "method_not_allowed": errors.CallerError,
    "request_timeout": errors.CallerError,
}
"""The classes of codes without a class of their own, by the first word; the others are the server's fault."""


def _kinds() -> dict[str, type[ForqError]]:
    """The classes by their codes. Of several with one code, the first is the more general one."""
    classes = [
        each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, ForqError)
    ]
    found: dict[str, type[ForqError]] = {}
    for kind in classes:
        for code in (kind.code, *kind.field_codes.values()):
            found.setdefault(code, kind)
    return found


_KINDS = _kinds()
