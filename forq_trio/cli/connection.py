"""The client of a command, without what httpx and httpcore load beside it.

Both import their extras when these are installed: a command line of their own, HTTP/2, and the event loops. The server
needs the same packages, so they are installed; a command uses none of them, and they took more processor time than all
the rest of it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from forq_trio.cli.exits import Exit, Failure
from forq_trio.client.address import DEFAULT_URL, is_server_url

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

RETRY_SECONDS = 1.0
_EXTRAS = ("pygments", "h2", "trio", "anyio")


def connect(url: str, *, retry_seconds: float = RETRY_SECONDS) -> "ForqClient":
    """A client of the server at `url`, with the secret of FORQ_AUTH_SECRET. Raises Failure when one is not valid."""
    no_url = Failure(f"{url!r} is not the URL of a server, such as {DEFAULT_URL}", Exit.USAGE)
    if not is_server_url(url):
        raise no_url
    secret = os.environ.get("FORQ_AUTH_SECRET", "")
    if not secret:
        raise Failure(
            "FORQ_AUTH_SECRET is not set; it has to hold the server's secret or an access token", Exit.USAGE
        )
    if not (secret.isascii() and secret.isprintable()):
        raise Failure("FORQ_AUTH_SECRET has characters that an HTTP header cannot carry", Exit.USAGE)
    with _without_extras():
        import httpx

        from forq_trio.client.sync import ForqClient

        try:
            return ForqClient(url, secret, retry_seconds=retry_seconds)
        except httpx.InvalidURL:
            raise no_url from None
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            raise Failure(
                f"SSL_CERT_FILE or SSL_CERT_DIR names no certificates ({reason})", Exit.USAGE
            ) from None
        except (ValueError, ImportError) as problem:
            raise Failure(f"the proxy of the environment cannot be used: {problem}", Exit.USAGE) from None


@contextmanager
def _without_extras() -> Iterator[None]:
    """What the body imports finds no extra that is not loaded already: None in sys.modules means "not installed"."""
    modules = cast("dict[str, Any]", sys.modules)
    absent = [name for name in _EXTRAS if name not in modules]
    modules.update(dict.fromkeys(absent))
    try:
        yield
    finally:
        for name in absent:
            del modules[name]
