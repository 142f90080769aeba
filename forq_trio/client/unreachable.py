"""Why no answer came, in words."""

import re
import socket
from collections.abc import Iterator

from forq_trio.client.address import without_credentials
from forq_trio.client.failures import (
    CannotSend,
    ClosedUnanswered,
    ConnectFailed,
    OtherCertificate,
    ProxyRefused,
    TlsFailed,
    TransportError,
    UntrustedCertificate,
)
from forq_trio.client.proxies import proxy_url
from forq_trio.model.errors import ForqUnreachable


def unreachable(url: str, problem: TransportError, advice: str) -> ForqUnreachable:
    """The error for a request to the server at `url` that got no answer. advice: is added to its sentence."""
    sentence = f"{_sentence(without_credentials(url), problem)}{advice}"
    return ForqUnreachable(sentence, sent=problem.sent, lasting=isinstance(problem, TlsFailed))


def _sentence(url: str, problem: TransportError) -> str:
    named = proxy_url(url)
    proxy = None if named is None else without_credentials(named)
    through = "" if proxy is None else f" through the proxy {proxy}"
    for cause in _causes(problem):
        match cause:
            case socket.gaierror():
                return f"no server can be reached at {url}{through}: the host is not known ({cause.strerror})"
            case ProxyRefused():
                return f"the proxy {proxy} makes no connection to {url} ({cause}); NO_PROXY names hosts without one"
    reason = _own_words(problem)
    match problem:
        case OtherCertificate():
            return f"the certificate of the server at {url} is another's ({reason})"
        case UntrustedCertificate():
            return (
                f"the certificate of the server at {url} is not trusted ({reason});"
                " SSL_CERT_FILE can name the authorities to trust"
            )
        case TlsFailed():
            return f"no TLS connection can be made to {url}{through} ({reason}); is it http://?"
        case ConnectFailed():
            return f"no server can be reached at {url}{through} ({reason})"
        case CannotSend():
            return f"no request can be made to {url} ({reason})"
        case ClosedUnanswered() if url.startswith("http:"):
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
