"""Whom the clients trust: who they are told, else SSL_CERT_FILE or SSL_CERT_DIR, else the authorities of certifi."""

import os
import ssl

from forq_trio.client.address import Address
from forq_trio.client.proxies import Proxy


def context_for(
    address: Address, proxy: Proxy | None, authorities: str | None = None
) -> ssl.SSLContext | None:
    """The settings of TLS; None where it is not used, for loading the authorities takes longer than a request.

    authorities: the certificates of those to trust, in PEM. Raises OSError for a file without certificates, naming it.
    """
    if not (address.tls or (proxy is not None and proxy.address.tls)):
        return None
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
