"""Errors of HTTP itself, the same for all dialects: wrong keys, unknown paths, methods, parameters and encodings.

Each has a `kind`, the error of the queue that means the same to a client, so that a dialect can answer both alike. (A
valid key without the scope for a request is `model.errors.Forbidden`.)
"""

from collections.abc import Collection
from math import ceil
from typing import ClassVar

from forq_trio.model import errors


class HttpError(Exception):
    """Base of these errors."""

    kind: ClassVar[type[errors.ForqError]]  # the error of the queue that means the same to a client
    headers: tuple[tuple[bytes, bytes], ...] = ()  # the answer has them in every dialect


class Unauthorized(HttpError):
    """The key is missing or wrong, or its token expired or was revoked."""

    kind = errors.WrongKey


class LockedOut(HttpError):
    """Too many wrong keys came from the client's address; it is locked out. seconds: for how much longer."""

    kind = errors.TooManyWrongKeys

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.headers = ((b"retry-after", b"%d" % ceil(seconds)),)


class ForeignSite(HttpError):
    """The request came from a web page of another site, or for another host, to a server that asks for no key."""

    kind = errors.Forbidden


class PathNotFound(HttpError):
    """Nothing is served at this path."""

    kind = errors.UnknownPath


class MethodNotAllowed(HttpError):
    """The path does not have this method. allow: the methods it has, as the Allow header lists them."""

    kind = errors.UnknownMethod

    def __init__(self, allow: bytes) -> None:
        super().__init__(allow)
        self.allow = allow.decode()
        self.headers = ((b"allow", allow),)


class UnknownParameter(HttpError):
    """The query has a parameter that the route does not know. known: those that it knows."""

    kind = errors.UnknownQueryParameter

    def __init__(self, name: str, known: Collection[str]) -> None:
        super().__init__(name)
        self.name = name
        self.known = known


class UnknownEncoding(HttpError):
    """The body is compressed (Content-Encoding); the server takes only bodies that are not."""

    kind = errors.UnknownContentEncoding

    headers = ((b"accept-encoding", b"identity"),)  # RFC 9110 section 15.5.16
