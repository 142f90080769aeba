"""The client of a command."""

from typing import TYPE_CHECKING

from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.client.address import address_of
from forq_trio.client.environment import server_secret
from forq_trio.model.client_errors import InvalidSecret

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

RETRY_SECONDS = 1.0


def connect(url: str, *, retry_seconds: float = RETRY_SECONDS) -> "ForqClient":
    """A client of the server at `url`, with the secret of `secret_for`. Raises CliFailure if either is invalid."""
    secret = secret_for(url)
    from forq_trio.client.sync import ForqClient

    try:
        return ForqClient(url, secret, retry_seconds=retry_seconds)
    except OSError as problem:
        raise CliFailure(problem.strerror or type(problem).__name__, Exit.USAGE) from None
    except ValueError as problem:
        raise CliFailure(f"the proxy of the environment cannot be used: {problem}", Exit.USAGE) from None


def secret_for(url: str) -> str:
    """The secret in FORQ_AUTH_SECRET, or in the file that FORQ_AUTH_SECRET_FILE names.

    Raises CliFailure if it, or the URL of the server, is invalid.
    """
    try:
        address_of(url)
    except ValueError as problem:
        raise CliFailure(str(problem), Exit.USAGE) from None
    try:
        secret = server_secret()
    except InvalidSecret as problem:
        raise CliFailure(str(problem), Exit.USAGE) from None
    if not secret:
        raise CliFailure(
            "FORQ_AUTH_SECRET is not set; it has to hold the server's secret or an access token", Exit.USAGE
        )
    return secret
