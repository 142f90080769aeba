"""The errors that a transport raises when a request gets no answer. The client turns them into `ForqUnreachable`."""


class TransportError(Exception):
    """A request got no answer. sent: False if it certainly did not reach the server."""

    sent = True


class ConnectFailed(TransportError):
    """No connection could be made; the client tries again while there is time."""

    sent = False


class TlsFailed(ConnectFailed):
    """No TLS connection could be made, and another try will not make one either."""


class OtherCertificate(TlsFailed):
    """The certificate is for another name."""


class UntrustedCertificate(TlsFailed):
    """The certificate is of an authority that is not trusted, or has ended."""


class ProxyRefused(TransportError):
    """The proxy makes no connection to the server."""

    sent = False


class CannotSend(TransportError):
    """The request is one that cannot be sent: its URL, its secret, or no connection is free."""

    sent = False


class NoAnswer(TransportError):
    """The answer did not come, not in time, not whole, or is not HTTP; the request may have been carried out."""


class ClosedUnanswered(NoAnswer):
    """The server closed the connection instead of answering."""
