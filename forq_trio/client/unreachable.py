"""Why no answer came: the errors of httpx, and of what is below it, in words."""

import re
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from forq_trio.model.errors import ForqUnreachable

_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.InvalidURL,
    httpx.LocalProtocolError,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    UnicodeError,
)


def unreachable(url: str, problem: Exception) -> ForqUnreachable:
    """The error for a request to the server at `url` that got no answer."""
    return ForqUnreachable(_sentence(url, problem), sent=not isinstance(problem, _NOT_SENT))


def _sentence(url: str, problem: Exception) -> str:
    proxy = _proxy_before(url)
    through = "" if proxy is None else f" through the proxy {proxy}"
    for cause in _causes(problem):
        match cause:
            case ssl.SSLCertVerificationError():
                return (
                    f"the certificate of the server at {url} is not trusted ({cause.verify_message.rstrip('.')});"
                    " SSL_CERT_FILE can name the authorities to trust"
                )
            case ssl.SSLError() if isinstance(problem, httpx.ConnectError):
                return f"no TLS connection can be made to {url}{through} ({cause.reason or cause}); is it http://?"
            case socket.gaierror():
                return f"no server can be reached at {url}{through}: the host is not known ({cause.strerror})"
            case httpx.ProxyError():
                return f"the proxy {proxy} makes no connection to {url} ({cause}); NO_PROXY names hosts without one"
    reason = _own_words(problem)
    match problem:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return f"no server can be reached at {url}{through} ({reason})"
        case httpx.InvalidURL() | httpx.LocalProtocolError() | httpx.UnsupportedProtocol() | UnicodeError():
            return f"no request can be made to {url} ({reason})"
        case httpx.RemoteProtocolError() if (
            url.startswith("http:") and "without sending a response" in reason
        ):
            return (
                f"the server at {url}{through} did not answer ({reason}); one with TLS has a URL with https"
            )
    return f"the server at {url}{through} did not answer ({reason})"


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


def _own_words(problem: Exception) -> str:
    """The problem's own words without an error number, else its name."""
    words = re.sub(r"^\[Errno -?\d+\] ", "", str(problem)).rstrip(".")
    return words or type(problem).__name__


def _proxy_before(url: str) -> str | None:
    """The proxy that the environment names for this URL, without the password that it may have."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None or proxy_bypass(parts.hostname or ""):
        return None
    return re.sub(r"//[^/]*@", "//", proxy)
