"""The errors that only clients raise; `errors` has them, too."""

from forq_trio.model.forq_error import ForqError


class InvalidSecret(ForqError, ValueError):
    """The secret is not one that a request can carry; the message says why, without the secret"""

    code = "client.secret"


class InvalidServerUrl(ForqError, ValueError):
    """The URL cannot be that of a server"""

    code = "client.url"


class ClientClosed(ForqError):
    """The client was closed before the answer came; the request may or may not have been carried out"""

    code = "client.closed"


class ForqProtocolError(ForqError):
    """A client got an answer that is not one of Forq's: probably the URL belongs to another service.

    refused: True if its HTTP status says that the request was not carried out.
    """

    code = "client.protocol"

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        code: str | None = None,
        refused: bool = False,
    ) -> None:
        super().__init__(message, field=field, code=code)
        self.refused = refused
