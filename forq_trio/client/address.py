"""The address of a server, from its URL."""

import re
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

DEFAULT_URL = "http://localhost:8080"
_PORTS = {"http": 80, "https": 443}
_LABEL_LENGTH_MAX = 63
_NOT_IN_URLS = re.compile(r"[\s\x00-\x20\x7f]")


class ServerAddress(NamedTuple):
    """The parts of a server's URL.

    authority: host and port as a request names them. path: the prefix of every path, without a slash at its end.
    credentials: user and password, with a colon between them; empty for none.
    """

    tls: bool
    host: str
    port: int
    authority: str
    path: str
    credentials: str


def is_server_url(url: str) -> bool:
    """Whether this is a valid URL of a server."""
    try:
        address_of(url)
    except ValueError:
        return False
    return True


def address_of(url: str) -> ServerAddress:
    """The address in a URL. Raises ValueError if it is not a valid URL of a server."""
    try:
        parts = urlsplit(url)
        usable = (
            parts.scheme in _PORTS and parts.hostname and parts.port != 0 and not _NOT_IN_URLS.search(url)
        )
    except ValueError:  # half an IPv6 address, or a port past 65535
        usable = False
    if not usable:
        raise ValueError(f"{without_credentials(url)!r} is not the URL of a server, such as {DEFAULT_URL}")
    host = parts.hostname or ""
    _check_labels(host)
    port = _PORTS[parts.scheme] if parts.port is None else parts.port
    path = parts.path.rstrip("/")
    return ServerAddress(parts.scheme == "https", host, port, _authority(parts), path, _credentials(parts))


def without_credentials(url: str) -> str:
    """The URL without the user and password that it may have."""
    return re.sub(r"//[^/]*@", "//", url)


def _check_labels(host: str) -> None:
    """Raise ValueError for a host name that cannot be looked up (RFC 1035 section 2.3.4)."""
    if ":" in host:
        return
    labels = host.removesuffix(".").split(".")
    if not all(0 < len(label) <= _LABEL_LENGTH_MAX for label in labels):
        raise ValueError(f"{host!r} is not the name of a host")


def _authority(parts: SplitResult) -> str:
    host = parts.hostname or ""
    # A name that IDNA cannot carry stays as it is: the system says so when it is looked up.
    name = f"[{host}]" if ":" in host else host if host.isascii() else host.encode("idna").decode("ascii")
    return name if parts.port is None else f"{name}:{parts.port}"


def _credentials(parts: SplitResult) -> str:
    if parts.username is None:
        return ""
    return f"{unquote(parts.username)}:{unquote(parts.password or '')}"
