"""TLS of both clients: whom they trust, its session over memory, and its failures.

Trusted is who the client is told, else SSL_CERT_FILE or SSL_CERT_DIR, else the authorities of certifi. Only what has a
URL with https imports this file: ssl takes a fifth of what a process of Spark's data source imports.
"""

import os
import ssl
from typing import Generic

from forq_trio.client.failures import ConnectFailed, OtherCertificate, TlsFailed, UntrustedCertificate
from forq_trio.client.streams import BaseStream, StreamT
from forq_trio.model.bounds.client import CLIENT_RECEIVE_BYTES

_OTHER_NAME = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


def context_for(authorities: str | None = None) -> ssl.SSLContext:
    """The settings of TLS. Loading the authorities takes longer than a request.

    authorities: the certificates of those to trust, in PEM. Raises OSError for a file without certificates, naming it.
    """
    if authorities is not None:
        context = ssl.create_default_context(cadata=authorities)
    elif file := os.environ.get("SSL_CERT_FILE"):
        try:
            context = ssl.create_default_context(cafile=file)
        except OSError as problem:  # OpenSSL does not say which file
            problem.strerror = f"SSL_CERT_FILE: {file} cannot be used ({problem.strerror})"
            raise
    elif directory := os.environ.get("SSL_CERT_DIR"):
        context = ssl.create_default_context(capath=directory)
    else:
        import certifi

        context = ssl.create_default_context(cafile=certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


def failure_of(problem: OSError) -> ConnectFailed | None:
    """Why no connection could be made, if it is TLS that failed."""
    match problem:
        case ssl.SSLCertVerificationError():
            kind = OtherCertificate if problem.verify_code in _OTHER_NAME else UntrustedCertificate
            return kind(problem.verify_message.rstrip("."))
        case ssl.SSLError():
            return TlsFailed(problem.reason or str(problem))
    return None


class TlsSession(BaseStream, Generic[StreamT]):
    """TLS over another stream."""

    def __init__(self, below: StreamT, context: ssl.SSLContext, host: str) -> None:
        self._below = below
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    def receive_now(self) -> bytes | None:
        """What is there; b"" at the end, None if nothing is there."""
        while (data := self._below.receive_now()) is not None:
            self._feed(data)
            if not data:
                break
        try:
            return self._tls.read(CLIENT_RECEIVE_BYTES)
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLZeroReturnError:
            return b""

    def close(self) -> None:
        """Close the socket without TLS's close_notify: after a fork another process may use the same session."""
        self._below.close()

    def _feed(self, data: bytes) -> None:
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
