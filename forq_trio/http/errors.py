"""Errors of HTTP itself, the same for all dialects: wrong keys, unknown paths, methods, parameters and encodings.

A dialect answers them like the errors of `model.errors`: by a table of its own. (A right key without the right for a
request is `model.errors.Forbidden`.)
"""

from collections.abc import Collection
from math import ceil


class HttpError(Exception):
    """Base of these errors. headers: those that belong to the answer in every dialect."""

    headers: tuple[tuple[bytes, bytes], ...] = ()


class Unauthorized(HttpError):
    """The key is missing or wrong, or its token expired or was revoked."""


class LockedOut(HttpError):
    """Too many wrong keys came from the client's address; it is locked out. seconds: for how long yet."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.headers = ((b"retry-after", b"%d" % ceil(seconds)),)


class ForeignSite(HttpError):
    """The request came from a web page of another site, or for another host, to a server that asks for no key."""


class PathNotFound(HttpError):
    """Nothing is served at this path."""


class MethodNotAllowed(HttpError):
    """The path does not have this method. allow: the methods it has, as the Allow header lists them."""

    def __init__(self, allow: bytes) -> None:
        super().__init__(allow)
        self.allow = allow.decode()
        self.headers = ((b"allow", allow),)


class UnknownParameter(HttpError):
    """The query has a parameter that the route does not know. known: those that it knows."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        super().__init__(name)
        self.name = name
        self.known = known


class UnknownEncoding(HttpError):
    """The body is encoded (Content-Encoding), and no encoding is known."""

    headers = ((b"accept-encoding", b"identity"),)  # RFC 9110 section 15.5.16
